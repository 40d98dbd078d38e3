# SPDX-License-Identifier: Apache-2.0
"""Saved models whose files are damaged, cut off, exchanged or something else: an error or the right result, never a signal.

Models with small and large weights, embedded and in a file of their own, are damaged at every kind of place. Processes load and run what
is left: without ``verify`` where the damage is of the kind that every load finds, with it where large weights were touched, and both ways
of loading must give one of Roundel's errors or the right result bit for bit. A process that dies is a finding, and so is one that hangs.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from .attempts import attempts

_SECONDS = 60.0  # for one load, on a slow machine
_WIDTHS = {"small": 24, "large": 1200}  # of a square matrix of weights: 2 KB are always compared, 5.8 MB when it is asked for

# Reads paths, one a line, and says of each: `right`, `wrong`, `error` and its class.
_WORKER = """
import sys
from pathlib import Path
import numpy as np
import roundel as rd
for line in sys.stdin:
    path, verify, answer = line.rstrip("\\n").split("\\t")
    expected = np.load(answer)
    try:
        model = rd.load(path, verify=verify == "True", threads=2)
        got = model(expected["x"])
        said = "right" if got.tobytes() == expected["y"].tobytes() else "wrong"
    except rd.RoundelError as error:
        said = "error " + type(error).__name__
    except Exception as error:
        said = "raw " + repr(error)[:200].replace("\\n", " ")
    print(said, flush=True)
"""


@dataclass(frozen=True)
class Saved:
    """A model as it was saved: its library, the file of its weights if it has one, inputs and right results; places in the library by name."""

    name: str
    library: Path
    weights: Path | None
    answer: Path
    places: dict[str, tuple[int, int]]

    @property
    def files(self) -> list[Path]:
        return [self.library] if self.weights is None else [self.library, self.weights]


def make_models(folder: Path) -> list[Saved]:
    """One for each size of the weights and each place where they can be."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    import roundel as rd
    from roundel.runtime.integrity import SavedFile

    out = []
    for size, width in _WIDTHS.items():
        w = np.random.default_rng(width).standard_normal((width, width)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Tanh", ["p"], ["y"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", width])], [numpy_helper.from_array(w, "w")])
        model = rd.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString())
        assert onnx
        x = np.random.default_rng(1).standard_normal((3, width)).astype(np.float32)
        for kind in ("embedded", "beside"):
            library = model.save(folder / f"{size}-{kind}" / "m.so", side_file=kind == "beside")
            answer = library.with_name("answer.npz")
            np.savez(answer, x=x, y=rd.load(library, threads=2)(x))
            with SavedFile(library) as saved:
                weights, t = saved.weights_path, saved.trailer
            out.append(Saved(f"{size} weights {kind}", library, weights, answer, {**_places(library.read_bytes()), "trailer": (t.image, 120),
                       **({"weights": (t.start, t.nbytes)} if t.start else {})}))
    return out


def _places(elf: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of the ELF header, its tables and its sections."""
    fields = struct.unpack("<16sHHIQQQIHHHHHH", elf[:64])
    programs, sections, size, count, names = fields[5], fields[6], fields[11], fields[12], fields[13]
    rows = [struct.unpack("<IIQQQQIIQQ", elf[sections + k * size : sections + k * size + 64]) for k in range(count)]
    text = elf[rows[names][4] : rows[names][4] + rows[names][5]]
    found = {"header": (0, 64), "program headers": (programs, fields[9] * fields[10]), "section headers": (sections, size * count)}
    for row in rows:
        if row[1] not in (0, 8) and row[5]:
            found[text[row[0] : text.index(b"\0", row[0])].decode()] = (row[4], row[5])
    return found


def _edit(path: Path, change: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    changed = change(data)
    path.write_bytes(changed if isinstance(changed, bytes | bytearray) else data)


def _flip(at: int, mask: int, data: bytearray) -> None:
    data[at] ^= mask


def _fill(at: int, content: bytes, data: bytearray) -> None:
    data[at : at + len(content)] = content


def _cut(at: int, data: bytearray) -> bytearray:
    return data[:at]


def _drop(at: int, count: int, data: bytearray) -> bytearray:
    return data[:at] + data[at + count :]


def _append(content: bytes, data: bytearray) -> bytearray:
    return data + content


def _swap(at: int, to: int, count: int, data: bytearray) -> None:
    data[at : at + count], data[to : to + count] = data[to : to + count], data[at : at + count]


def _otherwise(make: Callable[[Path], object], path: Path) -> None:
    path.unlink()
    make(path)


_NO_FILES: dict[str, Callable[[Path], object]] = {
    "is missing": lambda p: None, "is empty": lambda p: p.write_bytes(b""), "is a folder": lambda p: p.mkdir(), "is a pipe": os.mkfifo,
    "is a link to itself": lambda p: p.symlink_to(p.name), "is a link to nothing": lambda p: p.symlink_to("nowhere"),
    "is a device": lambda p: p.symlink_to("/dev/zero"), "is a text": lambda p: p.write_text("no library\n" * 1000),
    "is Python": lambda p: shutil.copy(os.path.realpath(sys.executable), p), "is the C library": lambda p: shutil.copy(_c_library(), p),
    "cannot be read": lambda p: (p.write_bytes(b"x" * 5000), p.chmod(0)),
}


def _c_library() -> str:
    maps = Path("/proc/self/maps").read_text()
    return next(line.split()[-1] for line in maps.splitlines() if "/libc.so" in line or "/libc-" in line or "musl" in line)


def damages(saved: Saved, others: list[Saved], source: random.Random) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """What can be done to the copy of a saved model in a folder, in words and as a function; without end."""
    size = {f.name: f.stat().st_size for f in saved.files}

    def one(what: str, file: str, change: Callable[[bytearray], object]) -> tuple[str, Callable[[Path], None]]:
        return f"{saved.name}: {file} {what}", lambda folder: _edit(folder / file, change)

    def other(file: str, name: str) -> tuple[str, Callable[[Path], None]]:
        return f"{saved.name}: {file} {name}", lambda folder: _otherwise(_NO_FILES[name], folder / file)

    while True:
        file = source.choice(saved.files).name
        place, (begin, count) = source.choice([*saved.places.items()]) if file == "m.so" else ("", (0, size[file]))
        at = min(begin + source.randrange(max(count, 1)), size[file] - 1)
        kind = source.randrange(12)
        if kind <= 3:
            mask = 1 << source.randrange(8) if kind else source.randrange(1, 256)
            yield one(f"with byte {at} of {place or 'weights'} changed by {mask}", file, partial(_flip, at, mask))
        elif kind == 4:
            length = source.choice((1, 8, 64, 4096, count))
            yield one(f"with {length} zero bytes from {at} in {place or 'weights'}", file, partial(_fill, at, bytes(min(length, size[file] - at))))
        elif kind == 5:
            length = min(source.choice((1, 8, 64, 4096)), size[file] - at)
            yield one(f"with {length} random bytes from {at} in {place or 'weights'}", file, partial(_fill, at, source.randbytes(length)))
        elif kind == 6:
            end = source.choice((begin, begin + count, at, at // 4096 * 4096, source.randrange(size[file]), size[file] - source.randrange(1, 200)))
            yield one(f"cut off at {end} ({place or 'weights'})", file, partial(_cut, end))
        elif kind == 7:
            yield one("with bytes behind it", file, partial(_append, source.randbytes(source.choice((1, 64, 120, 5000)))))
        elif kind == 8:
            yield one(f"without bytes from {at} on", file, partial(_drop, at, source.choice((1, 64, 4096))))
        elif kind == 9:
            to, length = source.randrange(size[file]), source.choice((1, 16, 4096))
            low, high = sorted((at, to))
            length = min(length, high - low, size[file] - high)
            yield one(f"with {length} bytes at {low} and {high} exchanged", file, partial(_swap, low, high, length))
        elif kind == 10:
            yield other(file, source.choice([*_NO_FILES]))
        else:
            stranger = source.choice(others)
            given = source.choice(stranger.files)
            yield f"{saved.name}: {file} is {given.name} of {stranger.name}", lambda folder, f=file, g=given: shutil.copy(g, folder / f) and None
            field, value = source.choice(((4, 1), (5, 2), (16, 1), (16, 2), (18, 183), (18, 3), (18, 243), (7, 9)))
            yield one(f"with byte {field} of its header {value}", "m.so", partial(_fill, field, bytes([value])))


class _Process:
    """A process that loads one file after another, started again when it has died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, path: Path, verify: bool, answer: Path) -> str:
        """What it says, or how it ended."""
        import select

        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                            text=True)
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{path}\t{verify}\t{answer}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        said = process.stdout.readline().strip() if ready else ""
        if said:
            return said
        status = process.poll() if ready else None
        self.close()
        return f"hung for {_SECONDS:.0f} s" if not ready else f"died ({status if status is not None else process.returncode})"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` damages; each is loaded with ``verify``, and without it unless it touched large weights."""
    source = random.Random(seed)
    process = _Process()
    with tempfile.TemporaryDirectory(prefix="roundel-files-") as name:
        folder = Path(name)
        models = make_models(folder)
        streams = [damages(m, models, source) for m in models]
        try:
            for k in attempts(range(count)):
                saved = models[k % len(models)]
                what, damage = next(streams[k % len(models)])
                copy = folder / f"copy{k}"
                copy.mkdir()
                for file in saved.files:
                    shutil.copy(file, copy)
                damage(copy)
                for verify in (False, True):
                    said = process.ask(copy / "m.so", verify, saved.answer)
                    hidden = said == "wrong" and not verify and saved.name.startswith("large") and _only_weights(saved, copy)
                    if not (said == "right" or said.startswith("error ") or hidden):
                        yield f"{what}: {'verified, ' if verify else ''}{said}"
                shutil.rmtree(copy)
        finally:
            process.close()


def _only_weights(saved: Saved, copy: Path) -> bool:
    """Whether the weights are all that is not as it was, in files of the same length: what is compared on demand."""
    for file in saved.files:
        was, now = file.read_bytes(), (copy / file.name).read_bytes()
        begin, count = saved.places.get("weights", (0, 0)) if file == saved.library else (0, len(was) - 64)
        if len(was) != len(now) or was[:begin] != now[:begin] or was[begin + count :] != now[begin + count :]:
            return False
    return True
