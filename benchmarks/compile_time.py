# SPDX-License-Identifier: Apache-2.0
"""What compiling costs: ``python -m benchmarks.compile_time [--models resnet18,...]`` from the project's root.

Per model, each in a process of its own: compile with an empty cache (*cold*) and with a full one (*cached*), the time from compiling to
the first result in both cases (what imports of NumPy and Roundel took before that is *import*), peak memory of the cold compile, and the
size of the library without weights. Prints a table and writes ``results/compile_time.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

_CHILD = """
import sys, time
start = time.perf_counter()
import json, resource
import numpy as np
import roundel as rd
imported = time.perf_counter()
path, data = sys.argv[1:3]
loaded = np.load(data)
inputs = {k: loaded[k] for k in loaded.files if k != "__ref"}
begin = time.perf_counter()
model = rd.compile(path, threads=1)
compiled = time.perf_counter()
out = model(*inputs.values())
first = time.perf_counter()
out = np.asarray(out[0] if isinstance(out, tuple) else out)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
error = float(np.abs(out - loaded["__ref"]).max() / np.abs(loaded["__ref"]).max())
if "roundel.build.compiler" in sys.modules:
    sys.modules["roundel.build.compiler"].pool().close()  # the processor time of its processes counts when they have ended
cpu = sum(t for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for t in resource.getrusage(w)[:2])
print(json.dumps({"import_s": imported - start, "compile_s": compiled - begin, "first_s": first - begin, "peak_mb": peak, "cpu_s": cpu, "error": error}))
"""


def measure(model: Path, data: Path) -> dict[str, Any]:
    """One model, cold then cached."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        _child("import roundel.runtime.library as r; r.static_library()", cache)  # in a checkout; an installed package brings it
        cold, cached = _run(model, data, cache), _run(model, data, cache)
        kept = list((cache / "models").glob("*/*"))
        library = sum(f.stat().st_size for f in kept if f.suffix == ".so")
        weights = sum(f.stat().st_size for f in kept if f.suffix == ".weights")
    return {
        "cold_s": cold["compile_s"], "cold_cpu_s": cold["cpu_s"], "cached_s": cached["compile_s"], "first_cold_s": cold["first_s"],
        "first_cached_s": cached["first_s"], "import_s": cached["import_s"], "peak_mb": cold["peak_mb"], "library_kb": library / 1024,
        "weights_mb": weights / 2**20, "file_mb": model.stat().st_size / 2**20, "error": cold["error"],
    }


def _run(model: Path, data: Path, cache: Path) -> dict[str, Any]:
    return json.loads(_child(_CHILD, cache, str(model), str(data)).strip().splitlines()[-1])


def _child(program: str, cache: Path, *arguments: str) -> str:
    """What a Python process with this cache prints; byte code is kept, as it is for an installed package."""
    environment = {**os.environ, "ROUNDEL_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


@app.command()
def main(models: str = typer.Option("all", help="Names, separated by commas.")) -> None:
    """Measure and print."""
    from .models import BUILDERS, Case, folder, onnx_file
    from .models import data as make_data
    from .results import FOLDER, machine

    columns = ("cold_s", "cold_cpu_s", "cached_s", "first_cold_s", "first_cached_s", "import_s", "peak_mb", "library_kb", "weights_mb", "file_mb")
    print("model".ljust(16) + "".join(c.rjust(15) for c in columns))
    found, failed = {}, []
    for name in BUILDERS if models == "all" else models.split(","):
        path = onnx_file(Case(name))
        make_data(Case(name, length=128 if name == "bert_dyn" else None))
        try:
            found[name] = measure(path, folder() / f"{name}.npz")
        except RuntimeError as e:
            failed.append(name)
            print(e, flush=True)
            continue
        print(name.ljust(16) + "".join(f"{found[name][c]:15.2f}" for c in columns), flush=True)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "compile_time.json"
    before = json.loads(path.read_text())["models"] if path.is_file() else {}
    path.write_text(json.dumps({"machine": machine(), "models": before | found}, indent=1) + "\n")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    app()
