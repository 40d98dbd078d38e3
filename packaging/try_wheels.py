# SPDX-License-Identifier: Apache-2.0
"""Tries the wheels of ``packaging/wheels.py`` as a stranger would: ``python packaging/try_wheels.py dist``.

Installs each into an empty environment. The compiler compiles and runs a model, and the runtime loads and runs what the compiler saved, with an
empty PATH: no C compiler, no linker, no tool of the system is found. What saves the file has zig's compiler, from its package.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILE = """
import shutil, numpy as np, roundel as rd
assert not any(map(shutil.which, ("cc", "gcc", "clang", "ld")))
model = rd.compile("model.onnx")
np.save("scores.npy", model(np.ones((3, 3, 32, 32), np.float32)))
try:
    model.save("model.so")
except rd.RoundelError as error:
    assert "pip install ziglang" in str(error), error
else:
    raise SystemExit("something linked a library without a compiler")
"""
SAVE = """
import numpy as np, roundel as rd
model = rd.compile("model.onnx")
model.save("model.so")
np.testing.assert_array_equal(model(np.ones((3, 3, 32, 32), np.float32)), np.load("scores.npy"))
"""
RUN = """
import sys, numpy as np, roundel_runtime as rd
model = rd.load("model.so", verify=True)
np.testing.assert_array_equal(model(np.ones((3, 3, 32, 32), np.float32)), np.load("scores.npy"))
foreign = sorted({name.split(".")[0] for name in sys.modules} & {"llvmlite", "onnx", "roundel", "ml_dtypes", "torch", "rich", "typer"})
assert not foreign, foreign
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the wheels are")
    folder = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        compiler = environment(work / "compiler", only(folder, f"roundel-*_{platform.machine()}.whl"))
        example = Path(__file__).resolve().parent.parent / "examples" / "small_model.py"
        python(compiler, work, example.read_text())
        python(compiler, work, COMPILE)
        pip(compiler, "ziglang")
        python(compiler, work, SAVE)
        python(environment(work / "runtime", only(folder, "roundel_runtime-*.whl")), work, RUN)
    print("the compiler compiled and ran a model without a C compiler, and saved it with zig's; the runtime loaded and ran the file")
    return 0


def only(folder: Path, pattern: str) -> Path:
    """The one wheel of that form: a file and not a name, which an index could have too."""
    (path,) = folder.glob(pattern)
    return path


def environment(path: Path, wheel: Path) -> Path:
    """A new virtual environment with a wheel in it; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", path], check=True)
    pip(path / "bin" / "python", str(wheel))
    return path / "bin" / "python"


def pip(python: Path, *arguments: str) -> None:
    """Install."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)


def python(command: Path, work: Path, text: str) -> None:
    """Run a program with nothing of this environment but a home and an empty PATH."""
    (work / "program.py").write_text(text)
    bare = {"HOME": str(work), "PATH": str(work / "empty"), "ROUNDEL_CACHE_DIR": str(work / "cache"), "TMPDIR": os.environ.get("TMPDIR", tempfile.gettempdir())}
    subprocess.run([command, "program.py"], cwd=work, env=bare, check=True)


if __name__ == "__main__":
    sys.exit(main())
