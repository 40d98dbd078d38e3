# SPDX-License-Identifier: Apache-2.0
"""What is published: the package that only runs models needs NumPy alone, and building leaves nothing in the source tree."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import roundel as rd

from .docs import small_model

ROOT = Path(__file__).resolve().parents[1]
WHEELS = runpy.run_path(str(ROOT / "packaging" / "wheels.py"))
OPTIONAL = {"ml_dtypes", "tvm_ffi", "rich", "ziglang"}  # imported where they are there
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"roundel", "llvmlite", "onnx", "torch", *OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
import numpy as np
import roundel_runtime as rd
model = rd.load("model.so", verify=True)
np.save("found.npy", model(np.load("x.npy")))
try:
    model(np.zeros((1, 2)))
except rd.RoundelError as error:
    print(error)
print(rd.__version__)
""".replace("OPTIONAL", repr(OPTIONAL))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return WHEELS["stage_runtime"](tmp_path_factory.mktemp("runtime") / "tree")


def test_the_runtime_alone_runs_what_the_compiler_saved(package, tmp_path):
    small_model.write(tmp_path / "model.onnx")
    model, x = rd.compile(tmp_path / "model.onnx"), np.random.default_rng(0).random((3, 3, 32, 32), np.float32)
    model.save(tmp_path / "model.so")
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([sys.executable, "-I", "-c", RUN, str(package.parent)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "input 0 ('x')" in done.stdout  # errors are the compiler's
    assert done.stdout.endswith(f"{rd.__version__}\n")
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model(x))


def test_the_runtime_imports_numpy_and_the_standard_library(package):
    for path in package.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in statement.names] if isinstance(statement, ast.Import) else \
                [statement.module] if isinstance(statement, ast.ImportFrom) and not statement.level else []
            assert {n.split(".")[0] for n in names} <= {"numpy", *sys.stdlib_module_names, *OPTIONAL}, path
    assert sum(p.stat().st_size for p in package.rglob("*")) < WHEELS["LARGEST_RUNTIME"] / 5


def test_types_that_numpy_has_not_are_refused_by_name(package, tmp_path):
    text = RUN.split("import numpy")[0] + 'from roundel_runtime.ir.dtype import DType\ntry: DType("bfloat16").numpy\nexcept TypeError as e: print(e)'
    done = subprocess.run([sys.executable, "-I", "-c", text, str(package.parent)], capture_output=True, text=True, check=False)
    assert "pip install ml-dtypes" in done.stdout, done.stderr


def test_building_leaves_nothing_in_the_source_tree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "build-dir" not in project["tool"]["scikit-build"]  # a folder of its own for each build, gone afterwards


def test_the_changelog_has_a_section_of_this_version():
    assert f"\n## [{rd.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_image_is_made_by_commands_that_are_there():
    """Docker is not needed to see that what the Dockerfile copies exists, and that its stages do."""
    lines = (ROOT / "examples" / "deploy" / "Dockerfile").read_text().splitlines()
    stages = [line.split(" AS ")[1] for line in lines if line.startswith("FROM ")]
    copied = [w for line in lines if line.startswith("COPY ") and "--from" not in line for w in line.split()[1:-1]]
    assert stages == ["compile", "program", "service"]
    assert {w for w in copied if w not in ("dist", "model.onnx")} == {"examples/deploy/program.c"}
    assert all((ROOT / w).is_file() for w in ("examples/deploy/program.c", "examples/deploy/service.py"))


def test_the_steps_of_the_common_host_name_what_is_there():
    """The files of its workflows are no more than the commands that others give by hand; here they are read, and what they name is looked for."""
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            assert {"runs-on", "steps"} <= set(job), f"{path.name}: {name}"
            assert all(("uses" in step) != ("run" in step) for step in job["steps"]), f"{path.name}: {name}"
            commands = " ".join(step.get("run", "") for step in job["steps"])
            for file in re.findall(r"[\w./]+\.py\b|\.ci/run\b", commands):
                assert (ROOT / file).is_file(), f"{path.name}: {file}"
            for extra in re.findall(r"\.\[([\w,]+)\]", commands):
                assert set(extra.split(",")) <= set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
            assert set(job.get("needs", "").split()) <= set(yaml.safe_load(path.read_text())["jobs"])
