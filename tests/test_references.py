# SPDX-License-Identifier: Apache-2.0
"""Names of Roundel in tests, benchmarks and examples, also in what only a slow test or a command runs: every one of them is there. So is every test
and attack that a page of the documentation names."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))
_REPLACING = ("setattr", "delattr", "patch", "object")  # monkeypatch.setattr("path", ...), patch.object(owner, "name", ...)


def _found(name: str) -> Any:
    """What a dotted name stands for: a module, or an attribute of one. Raises ImportError and AttributeError."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, dot, last = name.rpartition(".")
        if not dot:
            raise
        return getattr(_found(parent), last)


def _imported(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, name in the file and name in Roundel of all that is imported anywhere in a file."""
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom) and not n.level and (n.module or "").split(".")[0] == "roundel":
            yield from ((n.lineno, a.asname or a.name, f"{n.module}.{a.name}") for a in n.names)
        elif isinstance(n, ast.Import):
            yield from ((n.lineno, a.asname or a.name, a.name) for a in n.names if a.name.split(".")[0] == "roundel")


def _scripts(tree: ast.AST) -> Iterator[ast.AST]:
    """The programs in a file: itself, and those in texts, which tests run in processes of their own."""
    yield tree
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and "import " in n.value and "roundel" in n.value:
            with suppress(SyntaxError):
                yield ast.parse(textwrap.dedent(n.value))


def _replaced(tree: ast.AST, names: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Line and name of each attribute that is replaced, which is told by a text: all of its path, or its own name beside that of its owner."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] in _REPLACING and n.args:
            of, attribute = n.args[0], n.args[1] if len(n.args) > 1 else None
            owner, _, path = ast.unparse(of).partition(".")
            if isinstance(of, ast.Constant | ast.JoinedStr):
                whole = of.value if isinstance(of, ast.Constant) else ast.unparse(of)[2:-1]  # what is put together of parts is found nowhere
                yield from [(n.lineno, whole)] if str(whole).startswith("roundel") else []
            elif owner in names and isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                yield n.lineno, ".".join(filter(None, (names[owner], path, attribute.value)))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_of_roundel_are_there(path):
    tree = ast.parse(path.read_text())
    used = [name for script in _scripts(tree) for name in _imported(script)]
    missing = []
    for line, name in [*((line, name) for line, _, name in used), *_replaced(tree, {own: name for _, own, name in used})]:
        try:
            _found(name)
        except (ImportError, AttributeError) as error:
            missing.append(f"line {line}: {name} ({error})")
    assert not missing


def _defined(path: Path) -> set[str]:
    return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_tests_that_a_page_names_are_there(page):
    for file, name in re.findall(r"\b(tests/[\w/]+\.py)(?:::(\w+))?", page.read_text()):
        assert (ROOT / file).is_file(), file
        assert not name or name in _defined(ROOT / file), f"{file}::{name}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_commands_of_a_page_are_those_that_users_have(page):
    """Emulators have one name everywhere, that of the package which a page says to install; macros of a file are shown as depending on its name."""
    text = page.read_text()
    assert not re.findall(r"qemu-(?:aarch64|arm|i386|riscv64|x86_64)(?!-static)\b", text)
    assert "_MEMORY_BYTES" not in text or "<NAME>_MEMORY_BYTES" in text


def test_each_danger_has_tests_and_each_attack_a_danger():
    rows = [line.split("|")[1:-1] for line in (ROOT / "docs" / "security.md").read_text().splitlines() if line.startswith("|") and "::test_" in line]
    named = {name for row in rows for name in re.findall(r"`(\w+)\.py`", row[1])}
    hostile = {p.stem for p in (ROOT / "tests" / "hostile").glob("*.py") if "attack" in _defined(p)}
    assert len(rows) > 15
    assert named <= hostile
    assert hostile - named <= {"accelerators", "arithmetic", "c_source", "copies", "drawn_chips", "emulated", "flat_c", "generic_schedules", "instructions",
                                "irregular", "mappings", "operand_orders", "primitives", "schedules", "vector_widths", "wasm"}
