# SPDX-License-Identifier: Apache-2.0
"""Which questions a primitive asks before it changes a program: the table in code and on the page says what the primitives call."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import roundel.schedule
from roundel.schedule.primitive import PRIMITIVES
from roundel.schedule.questions import QUESTIONS, WHERE

ROOM = Path(roundel.schedule.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "schedule-primitives.md"


@cache
def calls(module: str) -> dict[str, set[tuple[str, str]]]:
    """What each function and class of a module of the room names of this module and others of the room."""
    tree = ast.parse((ROOM / f"{module}.py").read_text())
    names = {n.name: (module, n.name) for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    modules = {}
    for n in tree.body:
        if isinstance(n, ast.ImportFrom) and n.level == 1:
            for a in n.names:
                if n.module is None:
                    modules[a.asname or a.name] = a.name
                else:
                    names[a.asname or a.name] = (n.module, a.name)
    out = {}
    for n in tree.body:
        if isinstance(n, ast.FunctionDef | ast.ClassDef):
            found = {names[x.id] for x in ast.walk(n) if isinstance(x, ast.Name) and x.id in names}
            parts = [x for x in ast.walk(n) if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name)]
            found |= {(modules[x.value.id], x.attr) for x in parts if x.value.id in modules}
            out[n.name] = found
    return out


def asked(module: str, name: str) -> set[str]:
    """The questions that a function leads to."""
    seen, stack, found = set(), [(module, name)], set()
    while stack:
        at = stack.pop()
        if at in seen or not (ROOM / f"{at[0]}.py").is_file():
            continue
        seen.add(at)
        found |= {question for question, rooms in WHERE.items() if at[0] in rooms}
        if not any(at[0] in rooms for rooms in WHERE.values()):
            stack += calls(at[0]).get(at[1], ())
    return found


def test_the_table_says_what_primitives_ask():
    table = {name: asked(p.apply.__module__.rpartition(".")[2], name) for name, p in PRIMITIVES.items()}
    assert {k: sorted(v) for k, v in table.items() if v} == {k: sorted(v) for k, v in QUESTIONS.items()}


def test_the_page_has_the_table():
    lines = [f"| `{name}` | {' | '.join('x' if q in QUESTIONS[name] else '' for q in WHERE)} |" for name in sorted(QUESTIONS)]
    assert "\n".join(lines) in PAGE.read_text()
