# SPDX-License-Identifier: Apache-2.0
"""Where a script comes from: its text, the syntax tree of a function or class, and errors that point into it."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import FunctionType
from typing import Any

from ...ir.errors import RoundelError, ScriptError
from ...ir.node import Span


class Source:
    """A file (or text) with its syntax tree. Lines and columns count from 1 in messages."""

    def __init__(self, text: str, file: str = "<script>") -> None:
        self.text, self.file, self.lines = text, file, text.splitlines()
        try:
            self.tree = ast.parse(text, file)
        except SyntaxError as e:
            line = self.lines[(e.lineno or 1) - 1] if self.lines else ""
            raise ScriptError(
                f"not valid Python: {e.msg}",
                where=Span(file, e.lineno or 1, e.offset or 1),
                why=_pointed(line, (e.offset or 1) - 1, 1),
            ) from None

    def span(self, node: ast.AST) -> Span:
        """Where ``node`` starts."""
        return Span(self.file, getattr(node, "lineno", 1), self._column(node) + 1)

    def _column(self, node: ast.AST) -> int:
        """Column in characters (the syntax tree counts bytes)."""
        line = self._line(node)
        return len(line.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))

    def _line(self, node: ast.AST) -> str:
        number = getattr(node, "lineno", 1)
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def error(self, node: ast.AST, what: str, hint: str = "") -> ScriptError:
        """An error at ``node``: file:line:column, the line, a caret, and what would be right."""
        column, line = self._column(node), self._line(node)
        same_line = getattr(node, "end_lineno", None) == getattr(node, "lineno", 1)
        width = (
            (getattr(node, "end_col_offset", column + 1) - getattr(node, "col_offset", column))
            if same_line
            else len(line) - column
        )
        return ScriptError(what, where=self.span(node), why=_pointed(line, column, width), hint=hint)


def _pointed(line: str, column: int, width: int) -> str:
    return f"    {line}\n    {' ' * column}{'^' * max(1, min(width, max(1, len(line) - column)))}"


@lru_cache(maxsize=64)
def _source_of(file: str, text: str) -> Source:
    return Source(text, file)


def file_source(file: str, module_globals: dict[str, Any] | None = None) -> Source:
    """The source of a Python file (or notebook cell); raises ScriptError when it cannot be read."""
    linecache.checkcache(file)
    lines = linecache.getlines(file, module_globals)
    if not lines:
        raise ScriptError(
            f"the source of {file} cannot be read", hint="put the script into a file, or use roundel.script.parse(text)"
        )
    return _source_of(file, "".join(lines))


def function_node(fn: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The syntax tree of a function, found by file and line."""
    code = fn.__code__
    source = file_source(code.co_filename, fn.__globals__)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name == fn.__name__ and code.co_firstlineno in _first_lines(node):
            return source, node
    raise RoundelError(
        f"the source of function {fn.__name__} was not found in {code.co_filename}",
        hint="has the file changed since it was loaded?",
    )


def class_node(cls: type, line: int, file: str) -> tuple[Source, ast.ClassDef]:
    """The syntax tree of a class: the one of this name around its first function, or with its decorator at ``line``."""
    inside = [f.__code__.co_firstlineno for f in vars(cls).values() if isinstance(f, FunctionType)]
    source = file_source(file)
    found = [
        n
        for n in ast.walk(source.tree)
        if isinstance(n, ast.ClassDef)
        and n.name == cls.__name__
        and min(_first_lines(n)) <= (inside[0] if inside else line) <= (n.end_lineno or 0)
    ]
    if not found:
        raise RoundelError(
            f"the source of class {cls.__name__} was not found in {file}",
            hint="has the file changed since it was loaded?",
        )
    return source, max(found, key=lambda n: n.lineno)


def _first_lines(node: Any) -> set[int]:
    return {node.lineno, *(d.lineno for d in node.decorator_list)}
