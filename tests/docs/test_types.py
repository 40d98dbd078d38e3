# SPDX-License-Identifier: Apache-2.0
"""What users write type-checks: results have types, misspellings are found, and the pages' blocks have no error of a type."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import roundel as rd

from .test_blocks import _BLOCK, PAGES

api = pytest.importorskip("mypy.api")

USER = """\
import numpy as np
import roundel as rd
from roundel import te

model = rd.compile("model.onnx", threads=2)
reveal_type(model)
reveal_type(model.inputs)
reveal_type(rd.load("model.so"))
reveal_type(rd.Target.host().lanes("float32"))
a = te.placeholder((3,), "float32")
reveal_type(te.exp(a[0]) * 2 + 1 < a[1])
rd.complie("model.onnx")
model.sav("model.so")
rd.compile("model.onnx", treads=2)
rd.compile("model.onnx", threads="2")
te.placehodler((3,))
"""
_OFF = ("valid-type", "name-defined", "misc", "assignment", "no-redef", "has-type", "import-untyped", "syntax", "var-annotated", "dict-item")
"""Of the pages: annotations of scripts are calls, a page is one namespace whose names are used again, and examples know that a result is not None."""
_SCRIPT = re.compile(r"^ *@(I|T|R)\.|^ *@strategy\.|onnx", re.M)  # mypy does not know that these decorators make modules and functions of another kind


CONFIG = """\
[mypy]
ignore_missing_imports = True
follow_imports = silent

[mypy-torch.*,tokenizers.*,PIL.*,onnx.*,onnxruntime.*,timm.*,transformers.*,llvmlite.*,rich.*,typer.*]
follow_imports = skip
"""


def checked(folder: Path, *options: str) -> list[str]:
    """mypy's messages about the files of a folder, each from the line number on."""
    (folder / "mypy.ini").write_text(CONFIG)
    out, err, _ = api.run([*options, "--config-file", str(folder / "mypy.ini"), "--cache-dir", str(folder / "cache"), str(folder)])
    assert not err, err
    return [re.sub(r"^.*?(\w+\.py:)", r"\1", line) for line in out.splitlines()[:-1]]


def pyright(folder: Path) -> list[dict[str, Any]]:
    """What pyright says of the files of a folder."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(rd.__file__).parents[1])], "pythonVersion": "3.11"}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    return json.loads(done.stdout)["generalDiagnostics"]


def test_a_program_of_a_user(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    said = checked(tmp_path, "--strict")
    types = [re.search(r'Revealed type is "(.*)"', line)[1] for line in said if "Revealed" in line]
    assert types == ["roundel.runtime.model.Model", "tuple[roundel.runtime.metadata.TensorInfo, ...]", "roundel.runtime.model.Model", "int",
                     "roundel.ir.tir.expr.Expr"]
    wrong = {int(line.split(":")[1]): line for line in said if "error" in line}
    assert sorted(wrong) == list(range(12, 17)), said
    for line, words in {13: 'maybe "save"', 14: 'mean "threads"', 15: "int | None"}.items():
        assert words in wrong[line]


def test_a_program_of_a_user_as_pyright_sees_it(tmp_path):
    """The same types, and the same five mistakes."""
    pytest.importorskip("pyright")
    (tmp_path / "user.py").write_text(USER)
    said = pyright(tmp_path)
    types = [m["message"].rpartition(" is ")[2].strip('"') for m in said if m["severity"] == "information"]
    assert types == ["Model", "tuple[TensorInfo, ...]", "Model", "int", "Expr"]
    assert [m["range"]["start"]["line"] + 1 for m in said if m["severity"] == "error"] == list(range(12, 17))


_FOUND = (Path(__file__).resolve().parents[2] / "examples").rglob("*.py")
EXAMPLES = sorted(path for path in _FOUND if not re.search(r"^ *@T\.", path.read_text(), re.M))  # annotations of tensor programs are no types


def test_examples_are_strict(tmp_path):
    """As users who check their own programs strictly see them; packages without types are not read, so that what derives from theirs may."""
    for example in EXAMPLES:
        (tmp_path / example.name).write_text(example.read_text())
    assert not checked(tmp_path, "--strict", "--allow-subclassing-any")


@pytest.mark.parametrize(("right", "wrong"), [("rd.compile(", "rd.complie("), ("compiled.save(", "compiled.sav(")])
def test_a_misspelling_in_an_example_is_found(right, wrong, tmp_path):
    misspelt = {example.name: text.replace(right, wrong) for example in EXAMPLES if right in (text := example.read_text())}
    for name, text in misspelt.items():
        (tmp_path / name).write_text(text)
    said = checked(tmp_path, "--strict", "--allow-subclassing-any")
    assert misspelt and {line.split(":")[0] for line in said if "[attr-defined]" in line} == set(misspelt)


def test_examples_as_pyright_sees_them(tmp_path):
    pytest.importorskip("pyright")
    for example in EXAMPLES:
        (tmp_path / example.name).write_text(example.read_text())
    assert not [m["message"] for m in pyright(tmp_path) if m["severity"] == "error" and m.get("rule") != "reportMissingImports"]


def write_pages(folder: Path) -> None:
    """Blocks stand at their lines, so a message names the page's own."""
    for page in PAGES:
        text = page.read_text()
        lines = [""] * (text.count("\n") + 1)
        for found in _BLOCK.finditer(text):
            if found[1] == "python" and not _SCRIPT.search(found[2]):
                start = text.count("\n", 0, found.start(2))
                lines[start : start + found[2].count("\n")] = found[2].splitlines()
        (folder / f"page_{page.stem.replace('-', '_')}.py").write_text("\n".join(lines))


def test_pages(tmp_path):
    write_pages(tmp_path)
    found = [m for m in checked(tmp_path, "--no-strict-optional", *(f"--disable-error-code={code}" for code in _OFF)) if "error" in m]
    assert not found, "\n".join(found)


def test_pages_as_pyright_sees_them(tmp_path):
    """Names of blocks that are left out (scripts) are not there, and what may be None is known not to be."""
    pytest.importorskip("pyright")
    write_pages(tmp_path)
    off = {"reportUndefinedVariable", "reportUnboundVariable", "reportOptionalMemberAccess", "reportMissingImports", "reportArgumentType"}
    found = [m for m in pyright(tmp_path) if m["severity"] == "error" and m.get("rule") not in off and '"Unbound"' not in m["message"]]
    assert not found, "\n".join(f"{m['file']}:{m['range']['start']['line'] + 1}: {m['message']}" for m in found)


def named(package: ModuleType) -> set[str]:
    """The names that a package's stub makes public."""
    stub = Path(str(package.__file__)).with_suffix(".pyi").read_text()
    listed = re.search(r"^__all__ = \[(.*?)\]", stub, re.M | re.S)
    if listed:
        return set(re.findall(r'"(\w+)"', listed[1]))
    return set(re.findall(r"^(?:from .* import \w+ as )?([a-z]\w*|[A-Z]\w+)(?:: Any| = \w+)?(?:  # noqa: A004)?$", stub, re.M))


def test_stubs_name_what_the_packages_have():
    """Who adds a name to a package adds it to its stub."""
    assert named(rd) == {"build", "tune", *rd._HOMES, *rd._ROOMS, *rd._FRONTENDS}
    assert named(rd.te) == {n for n in rd.te.__all__ if not isinstance(getattr(rd.te, n), ModuleType)}
    assert named(rd.script) == set(rd.script.__all__)
