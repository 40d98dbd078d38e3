# SPDX-License-Identifier: Apache-2.0
"""Caches that are damaged, full, shared with processes that are killed, or written to by other users.

Each attempt takes a whole cache, does something to it, and compiles a model with it in a child process, which runs the model, saves it,
loads what was saved and runs that. Right results are right; anything else is a finding: another result, an error, a signal, a hang, code
of another user's that ran.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path

import numpy as np

import roundel as rd
from roundel.ir import options

from .attempts import attempts

OTHER = 54321  # a user that is not us
SECONDS = 120  # for one attempt
SIZE = 48
X = np.arange(SIZE, dtype=np.float32)[None]
AS_ROOT = os.geteuid() == 0
HEAVY = ("onnx", "llvmlite.binding", "roundel.driver", "roundel.frontend.onnx.model", "roundel.frontend.onnx.ops", "roundel.build.kept",
         "roundel.runtime.loader", "roundel.passes.progress", "concurrent.futures.thread", "logging")


class Place:
    """Models, a whole cache of them, and a library that tells when it was loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.whole, self.cache, self.ran = folder, folder / "whole", folder / "cache", folder / "ran"
        self.models = [_write(folder / f"{number}.onnx", number) for number in range(3)]
        self.planted = folder / "planted.so"
        source = f'#include <stdio.h>\n__attribute__((constructor)) static void f(void) {{ fclose(fopen("{self.ran}", "w")); }}'
        subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", self.planted], input=source, text=True, check=True)
        for path in self.models:
            os.utime(path, (time.time() - 100,) * 2)
        time.sleep(2.1)  # the models are old from now on, and their hashes are believed
        if wrong := in_child(lambda: [self.use(number, self.whole) for number in range(3)]):
            raise RuntimeError(f"a whole cache cannot be made: {wrong}")

    def fresh(self) -> None:
        """A whole cache again."""
        subprocess.run(["rm", "-rf", self.cache], check=True)
        shutil.copytree(self.whole, self.cache)
        for path in self.folder.glob("aside*"):
            subprocess.run(["rm", "-rf", path], check=True)
        self.ran.unlink(missing_ok=True)

    def use(self, number: int, cache: Path, save: bool = False) -> None:
        """Compile a model with a cache, run it, and with ``save`` run what was saved. Raises AssertionError for another result."""
        expected = X.sum() * np.float32(number + 1)
        with options.override(cache=True, cache_dir=str(cache), workers=1):
            model = rd.compile(self.models[number], threads=1)
            assert (model(X) == expected).all(), "another result"
            if save:
                out = model.save(self.folder / f"saved{os.getpid()}.so")
                assert (rd.load(out, threads=1)(X) == expected).all(), "another result of the saved file"
                out.unlink()


def _write(path: Path, number: int) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    w = np.full((SIZE, SIZE), number + 1, np.float32)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", SIZE]) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def fork(work: Callable[[], object], tell: int | None = None) -> int:
    """A child process that does something; it writes to ``tell`` what was wrong, and its status is 0 or 1."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(SECONDS)
        work()
        status = 0
    except BaseException as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        if tell is not None:
            os.write(tell, f"{type(error).__name__}: {error} ({Path(line.filename).name}:{line.lineno})"[:2000].encode())
    finally:
        os._exit(status)


def in_child(work: Callable[[], object]) -> str:
    """Do something in a child process; what was wrong, or an empty text."""
    told, tell = os.pipe()
    child = fork(work, tell)
    os.close(tell)
    with os.fdopen(told, "rb") as stream:
        said = stream.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said or (signal.Signals(-status).name if status < 0 else f"status {status}" if status else "")


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` attempts: damages of one to three places each; of 25 attempts one on a disk that refuses, one with processes that are killed."""
    rng = random.Random(seed)
    for name in HEAVY:  # so that children need not
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="roundel-hostile-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder))
        for attempt in attempts(range(count)):
            kind = {12: _refuse, 24: _share}.get(attempt % 25, _damage)
            yield from (f"attempt {attempt}: {finding}" for finding in kind(place, rng))


# --- damage -------------------------------------------------------------------------------------------------------------------------------


def _flip(path: Path, rng: random.Random, place: Place) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 8)) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut(path: Path, rng: random.Random, place: Place) -> None:
    os.truncate(path, rng.choice((0, 1, rng.randrange(path.stat().st_size + 1))))


def _grow(path: Path, rng: random.Random, place: Place) -> None:
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.choice((1, 64, 5000))))


def _exchange(path: Path, rng: random.Random, place: Place) -> None:
    """With another file of its kind."""
    other, aside = rng.choice([p for p in _files(place.cache) if p.suffix == path.suffix]), path.with_name("aside")
    path.rename(aside)
    if other != path:
        other.rename(path)
        aside.rename(other)


def _become_folder(path: Path, rng: random.Random, place: Place) -> None:
    path.unlink()
    path.mkdir(mode=rng.choice((0o700, 0o000, 0o777)))


def _become_fifo(path: Path, rng: random.Random, place: Place) -> None:
    path.unlink()
    os.mkfifo(path)


def _become_device(path: Path, rng: random.Random, place: Place) -> None:
    path.unlink()
    with suppress(OSError):
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero


def _become_link(path: Path, rng: random.Random, place: Place) -> None:
    path.unlink()
    path.symlink_to(rng.choice((place.planted, path, Path("/etc/passwd"), Path("/nowhere"), place.folder)))


def _mode(path: Path, rng: random.Random, place: Place) -> None:
    path.chmod(rng.choice((0o000, 0o666, 0o777, 0o620, 0o200)))


def _plant(path: Path, rng: random.Random, place: Place) -> None:
    """Another user's file, or one that another user could have written."""
    path.write_bytes(place.planted.read_bytes())
    _give(path, rng, 0o666)


def _give(path: Path, rng: random.Random, mode: int = 0o777) -> None:
    """To another user, or to all."""
    os.chown(path, OTHER, OTHER) if AS_ROOT and rng.random() < 0.5 else path.chmod(mode)


ON_FILES = (_flip, _flip, _flip, _cut, _cut, _grow, _exchange, _become_folder, _become_fifo, _become_device, _become_link, _mode, _plant, _plant)


def _move(path: Path, rng: random.Random, place: Place) -> None:
    """A folder away, and something else in its place."""
    aside, kind = place.folder / f"aside{rng.random()}", rng.randrange(4)
    path.rename(aside)
    if kind == 0:
        path.write_bytes(b"no folder")
    elif kind == 1:
        path.symlink_to(aside)
    elif kind == 2 and (others := sorted(p for p in path.parent.iterdir() if p.is_dir())):
        rng.choice(others).rename(path)


def _open_up(path: Path, rng: random.Random, place: Place) -> None:
    """A folder that others may write to, with planted libraries in it."""
    for file in path.rglob("*.so"):
        if file.is_file():  # and no pipe of an earlier attempt, which waits for a reader
            file.write_bytes(place.planted.read_bytes())
    _give(path, rng)


def _files(cache: Path) -> list[Path]:
    return sorted(p for p in cache.rglob("*") if p.is_file() and not p.is_symlink())


def _damage(place: Place, rng: random.Random) -> Iterator[str]:
    place.fresh()
    done = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.05:
            how, targets = rng.choice((_move, _open_up)), sorted(p for p in place.cache.rglob("*") if p.is_dir() and not p.is_symlink())
        else:  # seldom the runtime, which takes seconds to compile
            group = rng.choices(("models", "objects", "files", "host", "runtime"), (60, 20, 10, 8, 1))[0]
            how, targets = rng.choice(ON_FILES), [p for p in _files(place.cache) if group in p.relative_to(place.cache).parts[0]]
        if targets:
            target = rng.choice(targets)
            done.append(f"{how.__name__[1:]} {target.relative_to(place.cache)}")
            how(target, rng, place)
    if rng.random() < 0.3:  # as if no model had been kept, so that objects matter
        subprocess.run(["rm", "-rf", place.cache / "models"], check=True)
    number, save = rng.randrange(3), rng.random() < 0.3
    wrong = in_child(lambda: [place.use(number, place.cache, save), place.use(number, place.cache)])
    if place.ran.exists():
        wrong += " planted code ran"
    if wrong:
        yield f"{', '.join(done)}: {wrong}"


# --- disks --------------------------------------------------------------------------------------------------------------------------------


def _mounted(stack: ExitStack, folder: Path, *how: str | Path) -> bool:
    """Mount something on a folder for as long as the stack lasts; whether we may."""
    done = subprocess.run(["mount", *how, folder], capture_output=True, check=False).returncode == 0
    if done:
        stack.callback(subprocess.run, ["umount", "-l", folder], check=True)
    return done


def _refuse(place: Place, rng: random.Random) -> Iterator[str]:
    """A disk that gets full at some byte, is read-only, or is not there."""
    place.fresh()
    kind, number, cache = rng.choice(("full", "full", "full", "read-only", "missing", "below a file")), rng.randrange(3), place.cache
    with ExitStack() as stack:
        if kind == "full":
            subprocess.run(["rm", "-rf", cache], check=True)
            cache.mkdir(mode=0o700)
            size, runtime = rng.randrange(1, 60) * 8192, place.whole / "runtime"
            if _mounted(stack, cache, "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs") and runtime.exists() and rng.random() < 0.8:
                with suppress(shutil.Error, OSError):
                    shutil.copytree(runtime, cache / "runtime")
        elif kind == "read-only":
            _mounted(stack, cache, "--bind", "-o", "ro", cache)
            cache = rng.choice((cache, cache / "below"))
        elif kind == "missing":
            cache = Path("/proc/no/such/folder")
        else:
            cache = place.models[0] / "below"
        wrong = in_child(lambda: place.use(number, cache))
    if wrong:
        yield f"a disk that is {kind}: {wrong}"


# --- processes ----------------------------------------------------------------------------------------------------------------------------


def _share(place: Place, rng: random.Random) -> Iterator[str]:
    """Processes with one cache, too small for all models, of which some are killed at some moment."""
    place.fresh()
    size = sum(p.stat().st_size for p in _files(place.cache / "models")) // 2

    def work(first: int) -> None:
        with options.override(cache_size=size):
            for step in range(6):
                place.use((first + step) % 3, place.cache)

    told, tell = os.pipe()
    children = [fork(lambda first=first: work(first), tell) for first in range(4)]  # type: ignore[misc]
    os.close(tell)
    for child in children[:2]:
        time.sleep(rng.random() * 0.5)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(told, "rb") as stream:
        said = stream.read().decode(errors="replace")
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if said or any(statuses[2:]):
        yield f"processes that share a cache: {statuses} {said}"
    for number in range(3):
        if wrong := in_child(lambda number=number: place.use(number, place.cache)):  # type: ignore[misc]
            yield f"after processes were killed: {wrong}"
