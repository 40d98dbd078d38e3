# SPDX-License-Identifier: Apache-2.0
"""The reference has every public name: those of ``rd`` with an example, those of the modules that pages tell users to import with a description."""

from __future__ import annotations

import importlib.util
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import roundel as rd

from .test_blocks import _BLOCK, PAGES, ROOT

_SPEC = importlib.util.spec_from_file_location("reference", ROOT / ".ci" / "reference.py")
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

FOR_EXTENSIONS = (
    "build", "codegen", "compat", "embed.onnx", "interp.", "intrinsics.", "ir.", "ops.", "passes.", "reports", "runtime.toolchain", "schedule.",
    "strategy.", "target.", "tune.", "graph.partition", "relax.merge_composites", "relax.fuse_by_pattern", "relax.frontend", "backends.",
)
"""Beginnings of modules inside of rooms, which pages import to show how Roundel itself is extended or looked at."""
IMPORT = re.compile(r"^(?:from roundel\.([\w.]+) import|import roundel\.([\w.]+)|from roundel import (.+))", re.M)


def test_each_top_level_name_has_an_example():
    text = (ROOT / "docs" / "reference.md").read_text()
    sections = dict(zip(re.findall(r"^## `rd\.(\w+)`$", text, re.M), re.split(r"^## .*$", text, flags=re.M)[1:]))
    assert set(sections) == {n for n in rd.__all__ if not n.startswith("_")}
    for name, section in sections.items():
        code = "".join(block for language, block in _BLOCK.findall(section) if language == "python")
        assert re.search(rf"rd\.{name}\b", code) or name == "Model", f"rd.{name} has no example"


def test_modules_that_pages_import_are_in_the_reference():
    for page in PAGES:
        for _, block in _BLOCK.findall(page.read_text()):
            for module, other, names in IMPORT.findall(block):
                for found in filter(None, [module, other, *(re.sub(r" as .*", "", n).strip() for n in names.split(","))]):
                    inside = (found + ".").startswith(tuple(f"{beginning.rstrip('.')}." for beginning in FOR_EXTENSIONS))
                    known = found in reference.PUBLIC or found in rd.__all__ or inside
                    assert known, f"{page.name}: roundel.{found} is imported and is not in .ci/reference.py"


@pytest.mark.parametrize("room", ["", *reference.PUBLIC])
def test_every_public_name_says_what_it_is(room):
    """In words of its own, in more than one, and not in what it inherits."""
    if room.startswith("frontend.torch"):
        pytest.importorskip("torch")
    module = import_module(f"roundel.{room}".rstrip("."))
    silent = []
    for name in [n for n in reference.public_names(module) if not n.startswith("_")]:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isroutine(thing)) or isinstance(thing, ModuleType):
            continue
        found = {name: thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__}
        if inspect.isclass(thing):
            for member, value in reference.members(thing):
                found[f"{name}.{member}"] = inspect.unwrap(value.fget if isinstance(value, property) else value).__doc__
        silent += [n for n, text in found.items() if not text or len(text.split()) < 2]
    assert not silent


def test_signatures_are_as_one_writes_them():
    def function(a: int, /, b: str | None = None, *rest, key=("x, y", [1, 2]), **named) -> dict[str, int]:
        """An example."""

    assert reference.signature(function, "function") == "function(a: int, /, b: str | None = None, *rest, key=('x, y', [1, 2]), **named) -> dict[str, int]"
    assert reference.split_arguments("a: int = f(1, 2), b='x, y', *, c") == ["a: int = f(1, 2)", "b='x, y'", "*", "c"]


def test_signs_in_docstrings_mean_nothing():
    assert reference.prose("``a`` * b_c of `d*e`\n- f[g]\n    code * stays") == "``a`` \\* b\\_c of `d*e`\n- f\\[g]\n    code * stays"


def test_the_contents_have_every_page():
    """MkDocs finds out too; here it takes no MkDocs."""
    listed = set(re.findall(r"([\w-]+\.md)\b", (ROOT / "mkdocs.yml").read_text().split("nav:\n  - README")[1])) | {"README.md"}
    assert {page.name for page in Path(ROOT / "docs").glob("*.md")} <= listed
