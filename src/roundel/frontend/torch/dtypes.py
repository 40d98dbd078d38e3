# SPDX-License-Identifier: Apache-2.0
"""PyTorch's data types, tensors and symbolic sizes as Roundel's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.constants import ConstData
from ...ir.dtype import INT64, DType
from ...ir.errors import UnsupportedError
from .floats import is_rounded

_NAMES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16"}


def dtype_of(dtype: Any) -> DType:
    """A ``torch.dtype`` as a DType; raises UnsupportedError."""
    name = str(dtype).removeprefix("torch.")
    try:
        return DType(_NAMES.get(name, name))
    except ValueError:
        raise UnsupportedError(f"PyTorch's data type {dtype} is not supported") from None


def real_of(dtype: Any) -> Any:
    """The real ``torch.dtype`` of the parts of a complex one; others as they are."""
    return dtype.to_real() if dtype.is_complex else dtype


def const_data(tensor: Any) -> ConstData:
    """A tensor's content, shared where it is contiguous on the CPU."""
    t = tensor.detach().cpu().contiguous()
    dtype = dtype_of(t.dtype)
    if dtype.element in ("bfloat16",) or str(dtype).startswith("float8"):
        import torch

        raw = t.view(torch.int16 if dtype.bits == 16 else torch.uint8).numpy()
        return ConstData(raw.view(dtype.numpy))
    return ConstData(np.asarray(t.numpy()))


def only_value(size: Any) -> int | None:
    """The number that a size must be by the ranges of its symbols, as ``Min(s, 1)`` is 1 for an s that is 2 or more; None where they leave
    several."""
    if isinstance(size, int):
        return size
    e = size.node.expr
    if e.is_Integer or e.is_Symbol:
        return int(e) if e.is_Integer else None
    bounds = size.node.shape_env.bound_sympy(e)
    return int(bounds.lower) if bounds.lower == bounds.upper and bounds.lower.is_Integer else None


class Sizes:
    """Symbolic sizes of one export: sympy expressions to index expressions over one variable per symbol."""

    def __init__(self, names: dict[str, str] | None = None) -> None:
        self.names = names or {}
        self.variables: dict[str, tir.Var] = {}
        self.found: dict[Any, Any] = {}
        """Sizes made by rounding floating-point numbers."""
        self.numbers: dict[str, Any] = {}
        """Floating-point numbers that the program reads from tensors, as scalar tensors, by their symbols."""
        self.find: Callable[[Any], Any] | None = None
        """What finds the size of such an expression, while a function is being built."""

    def get(self, size: Any) -> Any:
        """An int, or the expression of a SymInt."""
        if isinstance(size, int):
            return size
        node = getattr(size, "node", None)
        return self.expr(node.expr if node is not None else size)

    def variable(self, symbol: str) -> tir.Var:
        """The size variable of a symbol."""
        if symbol not in self.variables:
            self.variables[symbol] = tir.Var(self.names.get(symbol, symbol), INT64, True)
        return self.variables[symbol]

    def declare(self, symbol: str, is_size: bool) -> None:
        """The variable of a symbol that is an input by itself; it may be negative unless it is a size."""
        self.variables.setdefault(symbol, tir.Var(self.names.get(symbol, symbol), INT64, is_size))

    def has_numbers(self, e: Any) -> bool:
        """Whether a sympy expression is about floating-point numbers that the program reads from tensors."""
        return any(str(symbol) in self.numbers for symbol in e.free_symbols)

    def expr(self, e: Any) -> Any:
        """A sympy expression as an int or an index expression, or as a truth value of them."""
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            return self.variable(str(e))
        if self.find is not None and is_rounded(e):
            if e not in self.found:
                self.found[e] = self.find(e)
            return self.found[e]
        build = _SYMPY.get(type(e).__name__)
        if build is None:
            raise UnsupportedError(f"the size {e} ({type(e).__name__}) is not supported")
        return build(*map(self.expr, e.args))


def _fold(fn: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def build(*args: Any) -> Any:
        out = args[0]
        for a in args[1:]:
            out = fn(out, a)
        return out

    return build


def _piecewise(*cases: tuple[Any, Any]) -> Any:
    """The value of the first case whose condition holds; the last one's always does."""
    out = tir.as_index(cases[-1][0])
    for value, condition in reversed(cases[:-1]):
        out = tir.select(condition, tir.as_index(value), out)
    return out


_SYMPY: dict[str, Callable[..., Any]] = {
    "Add": _fold(lambda a, b: a + b), "Mul": _fold(lambda a, b: a * b), 
    "Pow": lambda a, n: _fold(lambda x, y: x * y)(*[a] * int(n)),
    "FloorDiv": tir.floordiv, "CleanDiv": tir.floordiv, "floor": lambda a: a, "CeilDiv": tir.ceildiv,
    "Mod": tir.floormod, "PythonMod": tir.floormod, "ModularIndexing": lambda a, b, c: tir.floormod(tir.floordiv(a, b), c),
    "Max": _fold(tir.max_), "Min": _fold(tir.min_), "Identity": lambda a: a,
    **{name: lambda a, b, compare=compare: compare(tir.as_index(a), tir.as_index(b)) for name, compare in (
        ("Equality", tir.eq), ("Unequality", tir.ne), ("GreaterThan", tir.ge), ("LessThan", tir.le), ("StrictGreaterThan", tir.gt),
        ("StrictLessThan", tir.lt))},
    "And": _fold(tir.logical_and), "Or": _fold(tir.logical_or), "Not": tir.logical_not,
    "BooleanTrue": lambda: tir.const(True), "BooleanFalse": lambda: tir.const(False),
    "Piecewise": _piecewise, "ExprCondPair": lambda value, condition: (value, condition),
}
