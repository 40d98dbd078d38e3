# SPDX-License-Identifier: Apache-2.0
"""How exact results are: ``python -m benchmarks.accuracy [--models resnet18,...]`` from the project's root.

The relative L2 error against PyTorch in double precision, of Roundel, ONNX Runtime and PyTorch in single precision, on the same inputs.
Prints a table, writes ``results/accuracy.json``, and fails when Roundel's error is more than 20 times that of ONNX Runtime.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import typer

from .models import Case, cases, data, load, onnx_file, run
from .results import FOLDER, machine

LIMIT = 20.0
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


def errors(case: Case) -> dict[str, float]:
    """Relative L2 error of each engine."""
    import onnxruntime

    import roundel as rd

    inputs, single = data(case)
    exact = _exact(case, inputs)
    session = onnxruntime.InferenceSession(str(onnx_file(case)), providers=["CPUExecutionProvider"])
    ours = rd.compile(str(onnx_file(case)))(**inputs)
    results = {"roundel": ours[0] if isinstance(ours, tuple) else ours, "onnxruntime": session.run(None, inputs)[0], "pytorch": single}
    return {name: float(np.linalg.norm(r.astype(np.float64) - exact) / np.linalg.norm(exact)) for name, r in results.items()}


def _exact(case: Case, inputs: dict[str, Any]) -> np.ndarray:
    module, _ = load(case)
    return run(module.double(), {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in inputs.items()})


@app.command()
def main(models: str = typer.Option("all", help="Names, separated by commas.")) -> None:
    """Measure and print."""
    found = {}
    print("model".ljust(16) + "".join(c.rjust(14) for c in ("roundel", "onnxruntime", "pytorch", "roundel / ort")))
    for case in cases(models.split(","), [1]):
        found[case.name] = e = errors(case)
        print(case.name.ljust(16) + "".join(f"{v:14.2e}" for v in e.values()) + f"{e['roundel'] / e['onnxruntime']:14.2f}", flush=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "accuracy.json").write_text(json.dumps({"machine": machine(), "models": found}, indent=1) + "\n")
    over = [n for n, e in found.items() if e["roundel"] > LIMIT * e["onnxruntime"]]
    if over:
        raise SystemExit(f"error above {LIMIT:g} times ONNX Runtime's: {', '.join(over)}")


if __name__ == "__main__":
    app()
