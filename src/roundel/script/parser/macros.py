# SPDX-License-Identifier: Apache-2.0
"""``@T.macro``: a function whose statements are read in place of each call."""

from __future__ import annotations

import ast
from typing import Any

from .core import Scope
from .source import Source


class Macro:
    """The syntax of a macro with the names it sees (a hygienic one does not see those at the call)."""

    def __init__(self, source: Source, node: ast.FunctionDef, captured: dict[str, Any], hygienic: bool) -> None:
        self.source, self.node, self.captured, self.hygienic = source, node, captured, hygienic

    def expand(self, parser: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Reads the body where ``parser`` is, parameters bound to the arguments."""
        names = [a.arg for a in (*self.node.args.args, *self.node.args.kwonlyargs)]
        defaults = self.node.args.defaults
        outer_source, outer_scope = parser.source, parser.scope
        parser.source = self.source
        if self.hygienic:
            parser.scope = Scope(self.captured)
        try:
            values = {n: parser.visit(d) for n, d in zip(names[len(names) - len(defaults) :], defaults)}
            values |= {**dict(zip(names, args)), **kwargs}
            missing = [n for n in names if n not in values]
            if missing or len(args) > len(names) or set(kwargs) - set(names):
                raise TypeError(
                    f"macro {self.node.name}({', '.join(names)}) called with {len(args)} arguments and {sorted(kwargs)}"
                )
            with parser.scope.frame(**values):
                for statement in self.node.body:
                    parser.visit(statement)
        finally:
            parser.source, parser.scope = outer_source, outer_scope


def _decorators(node: ast.FunctionDef) -> list[tuple[str, list[ast.keyword]]]:
    calls = [(d.func, d.keywords) if isinstance(d, ast.Call) else (d, []) for d in node.decorator_list]
    return [(ast.unparse(name), keywords) for name, keywords in calls]


def is_macro(node: ast.FunctionDef) -> bool:
    """Whether a function is decorated with ``T.macro`` or ``T.inline``."""
    return any(name.split(".")[-1] in ("macro", "inline") for name, _ in _decorators(node))


def is_hygienic(node: ast.FunctionDef) -> bool:
    """Whether a macro sees the names where it is defined, and not those at the call (``hygienic=False``)."""
    given = [k.value for _, keywords in _decorators(node) for k in keywords if k.arg == "hygienic"]
    return all(not isinstance(v, ast.Constant) or bool(v.value) for v in given)
