# SPDX-License-Identifier: Apache-2.0
"""``@T.macro``: a function whose statements are read in place of each call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .core import Scope
from .source import Source


class Macro:
    """The syntax of a macro with the names it sees (a hygienic one does not see those at the call)."""

    def __init__(self, source: Source, node: ast.FunctionDef, captured: dict[str, Any], hygienic: bool) -> None:
        self.source, self.node, self.captured, self.hygienic = source, node, captured, hygienic

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method of a class: the object is the first argument of each call."""
        return self if instance is None else BoundMacro(self, instance)

    def expand(self, parser: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Reads the body where ``parser`` is, parameters bound to the arguments."""
        outer_source, outer_scope = parser.source, parser.scope
        parser.source = self.source
        if self.hygienic:
            parser.scope = Scope(self.captured)
        try:
            values = self._signature(parser)(*args, **kwargs)
            with parser.scope.frame(values):
                for statement in self.node.body:
                    parser.visit(statement)
        finally:
            parser.source, parser.scope = outer_source, outer_scope

    def _signature(self, parser: Any) -> Callable[..., dict[str, Any]]:
        """A Python function with the macro's parameters that returns what they are bound to."""
        given = self.node.args
        held = {f"_{k}": parser.visit(d) for k, d in enumerate([*given.defaults, *(d for d in given.kw_defaults if d)])}
        names = iter([ast.Name(n, ast.Load()) for n in held])
        plain = ast.arguments(
            [ast.arg(a.arg) for a in given.posonlyargs],
            [ast.arg(a.arg) for a in given.args],
            given.vararg and ast.arg(given.vararg.arg),
            [ast.arg(a.arg) for a in given.kwonlyargs],
            [],
            given.kwarg and ast.arg(given.kwarg.arg),
            [],
        )
        plain.defaults = [next(names) for _ in given.defaults]
        plain.kw_defaults = [next(names) if d else None for d in given.kw_defaults]
        body = ast.Lambda(plain, ast.Call(ast.Name("locals", ast.Load()), [], []))
        made = eval(compile(ast.fix_missing_locations(ast.Expression(body)), self.source.file, "eval"), held)
        made.__name__ = made.__qualname__ = f"macro {self.node.name}"
        return made


class BoundMacro:
    """A macro of a class with the object it belongs to."""

    def __init__(self, macro: Macro, instance: Any) -> None:
        self.macro, self.instance = macro, instance

    def expand(self, parser: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """``Macro.expand`` with the object in front."""
        self.macro.expand(parser, [self.instance, *args], kwargs)


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
