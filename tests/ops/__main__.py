# SPDX-License-Identifier: Apache-2.0
"""Operators and real models on machines with vectors of other widths, scheduled as users compile them.

    python -m tests.ops                                # all operator tests and three models with vectors of 4, 16, 32 and 64 bytes
    python -m tests.ops --vector-bytes 4 64 --models   # two widths, no models
    python -m tests.ops --models ppocr-cls --no-operators

Operator tests compare with NumPy; models (`tests.boards.real_models`, those whose package is installed) with this machine's code. Each width is a process
of pytest of its own; the exit status is 1 where a test failed or a model differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.boards.real_models import MODELS, differences

import roundel as rd
from roundel.target import Target

WIDTHS, THREE, MOST = (4, 16, 32, 64), ("ppocr-cls", "silero-vad", "minilm"), 1e-4


def models(names: list[str], widths: list[int], folder: Path) -> bool:
    """Whether all of these models give the same with vectors of each width as this machine's own code."""
    folder.mkdir(parents=True, exist_ok=True)
    held = True
    for name in names:
        real = MODELS[name]
        if find_spec(real.package) is None:
            print(f"{name}: the package {real.package} is not installed")
            continue
        file = real.file(folder)
        want = real.calls(rd.compile(file), 1)
        for nbytes in widths:
            off, integers = differences(real.calls(rd.compile(file, target=Target.host().with_(vector_bytes=nbytes)), 1), want)
            print(f"{name} with vectors of {nbytes} bytes: off by {off:.1e}, {integers} integers differ", flush=True)
            held &= off <= MOST and integers == 0
    return held


def operators(widths: list[int], only: str, workers: int) -> bool:
    """Whether all operator tests hold with vectors of each width; ``only`` is pytest's ``-k``."""
    held = True
    for nbytes in widths:
        command = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent), "--vector-bytes", str(nbytes), "-n", str(workers)]
        status = subprocess.run([*command, *(["-k", only] if only else [])], env={**os.environ, "OPCHECK_SCHEDULED": "1"}, check=False).returncode
        print(f"operators with vectors of {nbytes} bytes: {'held' if status == 0 else f'pytest ended with {status}'}", flush=True)
        held &= status in (0, 5)  # 5: no test was asked for
    return held


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.ops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vector-bytes", nargs="*", type=int, default=list(WIDTHS))
    parser.add_argument("--models", nargs="*", default=list(THREE), choices=list(MODELS), help="they come before the operators")
    parser.add_argument("--no-operators", action="store_true", help="models alone")
    parser.add_argument("--only", default="", help="pytest's -k")
    parser.add_argument("--workers", type=int, default=0, help="pytest's -n")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "roundel-real-models"), help="where exported models are kept")
    given = parser.parse_args()
    held = models(given.models, given.vector_bytes, given.folder)
    if not given.no_operators:
        held &= operators(given.vector_bytes, given.only, given.workers)
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
