# SPDX-License-Identifier: Apache-2.0
"""Symbolic shapes and struct info: ``n`` of ``R.Tensor(("n", "4 * n"))`` and of ``n = T.int64()`` is one variable."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import tir
from ...ir.dtype import INT64
from ...ir.errors import ScriptError
from ...ir.graph import StructInfo
from .. import marks
from .core import Scope, StaticEvaluator
from .source import Source


class Symbols(StaticEvaluator):
    """Reads struct info; keeps one variable per name and function."""

    def __init__(self, source: Source, scope: Scope) -> None:
        super().__init__(source, scope)
        self.symbols: dict[str, tir.Var] = {}
        self.dimensions: set[tir.Var] = set()  # those that the text of a dimension made

    def symbol(self, name: str, new: marks.NewVar) -> tir.Var:
        """The variable of this name; made by its first mention."""
        known = self.symbols.get(name)
        if known is None or known.dtype is not new.dtype or known.size != new.size:
            known = self.symbols[name] = tir.Var(name, new.dtype, new.size)
        return known

    def declare_symbols(self, body: list[ast.stmt]) -> None:
        """Variables that the body declares are known in the signature."""
        for n in body:
            if isinstance(n, ast.Assign) and len(n.targets) == 1:
                for target, value in _pairs(n.targets[0], n.value):
                    new = self.visit(value) if _declares(value) else None
                    if isinstance(target, ast.Name) and isinstance(new, marks.NewVar):
                        self.scope.define(target.id, self.symbol(target.id, new))

    def struct_info(self, node: ast.expr) -> StructInfo:
        """An annotation: struct info, or the bare name of a kind (``x: R.Tensor``)."""
        value = self._annotated_value(node)
        value = value() if callable(value) and not isinstance(value, StructInfo) else value
        try:
            value = self.resolve(value)
        except (TypeError, ValueError) as e:
            raise self.error(node, str(e)) from e
        if not isinstance(value, StructInfo):
            raise self.error(
                node,
                f"{ast.unparse(node)} is not the type of a graph value",
                'use R.Tensor((n, 4), "float32"), R.Shape, R.Tuple, R.Prim, R.Callable or R.Object',
            )
        return value

    def _annotated_value(self, node: ast.expr) -> Any:
        try:
            return self.annotation(node)
        except ScriptError as e:
            missing = e.what.startswith("name ") and e.what.endswith(" is not defined")
            if not missing:
                raise
            name = e.what.split("'")[1]
            raise self.error(node, e.what, f'a symbolic dimension is text, "{name}", or declared in the body: {name} = T.int64()') from None

    def resolve(self, value: Any) -> Any:
        """Textual dimensions read; anything else as it is."""
        return value.build(self.dimension) if isinstance(value, marks.Symbolic) else value

    def dimension(self, value: Any) -> Any:
        """A dimension: a number or expression, or text in which new names are new variables."""
        if not isinstance(value, str):
            return value
        try:
            tree = ast.parse(value.strip(), mode="eval").body
        except SyntaxError:
            raise ValueError(f"dimension {value!r} is not an expression") from None
        for n in ast.walk(tree):
            if isinstance(n, ast.Name) and n.id not in ("T", "R", "I") and not self._is_known(n.id):
                made = self.scope.frames[0][n.id] = self.symbol(n.id, marks.NewVar(INT64, True))
                self.dimensions.add(made)
        known = self.symbols.get(tree.id) if isinstance(tree, ast.Name) else None
        if known is not None and known.dtype is not INT64:
            raise TypeError(f"{known.name} is a dimension, so it is int64, not {known.dtype}")
        inner = _Dimension(Source(value), self.scope)
        inner.symbols = self.symbols
        try:
            return inner.visit(tree)
        except ScriptError as e:
            raise ValueError(f"dimension {value!r}: {e.what}") from None

    def _is_known(self, name: str) -> bool:
        if name in self.symbols:
            self.scope.frames[0].setdefault(name, self.symbols[name])
            return True
        return any(name in f for f in self.scope.frames)


class _Dimension(Symbols):
    """Evaluates the text of a dimension; variables of the function come before captured names."""


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _declares(value: ast.expr) -> bool:
    """Whether the value looks like ``T.int64()``, ``T.var("int64")`` or ``T.SizeVar(...)``."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    name = value.func.attr
    return name in ("var", "Var", "SizeVar") or (
        not value.args and name.startswith(("int", "uint", "float", "bool", "handle"))
    )
