# SPDX-License-Identifier: Apache-2.0
"""What a run takes for activations: ``python -m benchmarks.memory [--models resnet18,...]`` from the project's root.

Of ours the arena, which is planned when the model is compiled. Of ONNX Runtime what the resident memory of a process grows by at most during
a run (its second, results included, with freed memory given back to the system at once), its own arena switched off: that keeps more
than a run needs. One thread, no weights. Prints a table in MB and writes ``results/memory.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

_PEER = """
import sys
import numpy as np
import onnxruntime as ort
from pathlib import Path
kilobytes = lambda key: int(Path("/proc/self/status").read_text().partition(key + ":")[2].split()[0])
settings = ort.SessionOptions()
settings.intra_op_num_threads, settings.enable_cpu_mem_arena, settings.log_severity_level = 1, False, 3
with np.load(sys.argv[2]) as found:
    inputs = {k: found[k] for k in found.files if k != "__ref"}
session = ort.InferenceSession(sys.argv[1], settings, providers=["CPUExecutionProvider"])
session.run(None, inputs)
Path("/proc/self/clear_refs").write_text("5")  # proc(5): the peak starts anew
before = kilobytes("VmRSS")
session.run(None, inputs)
print((kilobytes("VmHWM") - before) / 1024)
"""


def peer(model: Path, data: Path) -> float:
    """MB of ONNX Runtime, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
    done = subprocess.run([sys.executable, "-c", _PEER, str(model), str(data)], capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout)


def ours(model: Path, sizes: dict[str, int]) -> float:
    """MB of the arena and of the results, which the caller gets."""
    import roundel as rd

    compiled = rd.compile(str(model), threads=1)
    return compiled.arena_nbytes(**sizes) / 2**20


@app.command()
def main(models: str = typer.Option("all", help="Names, separated by commas.")) -> None:
    """Measure and print."""
    from .models import cases, folder, onnx_file
    from .models import data as make_data
    from .results import FOLDER, machine

    found: dict[str, dict[str, float]] = {}
    print(f"{'model':16}{'roundel':>10}{'ort':>10}")
    for case in cases(models.split(","), [1]):
        path, (_, result) = onnx_file(case), make_data(case)
        data = folder() / f"{case.name}.npz"
        sizes = {"seq": case.length} if case.length else {}
        row = {"roundel": ours(path, sizes) + result.nbytes / 2**20, "ort": peer(path, data if data.exists() else folder() / f"{case.onnx_stem}.npz")}
        found[case.name] = row
        print(f"{case.name:16}{row['roundel']:10.1f}{row['ort']:10.1f}", flush=True)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "memory.json"
    before = json.loads(path.read_text())["models"] if path.is_file() else {}
    path.write_text(json.dumps({"machine": machine(), "models": before | found}, indent=1) + "\n")


if __name__ == "__main__":
    app()
