# SPDX-License-Identifier: Apache-2.0
"""Prints the number of lines by room, and fails for files and functions that have outgrown their budget."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

FILE_LIMIT, FUNCTION_LIMIT = 600, 90


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    rooms: Counter[str] = Counter()
    too_long = []
    for path in sorted([*root.glob("src/roundel/**/*.py"), *root.glob("csrc/*.[ch]"), *root.glob("tests/**/*.py")]):
        name = path.relative_to(root)
        text = path.read_text()
        lines = text.count("\n")
        rooms["/".join(name.parts[1:-1][:2]) if name.parts[0] == "src" else name.parts[0]] += lines
        if lines > FILE_LIMIT and name.parts[0] != "tests":
            too_long.append(f"{name} has {lines} lines, at most {FILE_LIMIT} are allowed")
        if path.suffix == ".py" and name.parts[0] == "src":
            too_long += [
                f"{name}:{f.lineno} {f.name} has {n} lines, at most {FUNCTION_LIMIT} are allowed"
                for f, n in long_functions(text)
            ]
    for room, count in sorted(rooms.items()):
        print(f"{count:7} {room}")
    print(f"{sum(n for r, n in rooms.items() if r.startswith('roundel')):7} in all of src")
    print(*too_long, sep="\n", end="\n" if too_long else "")
    return bool(too_long)


def long_functions(text: str) -> list[tuple[ast.FunctionDef, int]]:
    """Functions beyond the limit, with their lines."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    sizes = [(f, (f.end_lineno or f.lineno) - f.lineno + 1 - described(f)) for f in functions]
    return [(f, n) for f, n in sizes if n > FUNCTION_LIMIT]


def described(function: ast.FunctionDef) -> int:
    """Lines of the docstring, which are not counted."""
    first = function.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1 if ast.get_docstring(function, clean=False) is not None else 0


if __name__ == "__main__":
    sys.exit(main())
