# SPDX-License-Identifier: Apache-2.0
"""Python's operators between tensors of tensor expressions: ``x + 1``, ``x * y``, element by element, broadcast as NumPy does."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from roundel.ir import tir
from roundel.ir.errors import RoundelError

from .compute import compute
from .tensor import Tensor


def elementwise(fn: Callable[..., tir.Expr], *operands: Any, name: str = "elementwise") -> Tensor:
    """``fn`` of the elements of tensors and scalars; dimensions of 1 are stretched. Raises RoundelError where shapes do not go together."""
    ndim = max(t.ndim for t in operands if isinstance(t, Tensor))
    shape: list[tir.Expr] = [tir.index_const(1)] * ndim
    for t in operands:
        for k, n in enumerate(t.shape if isinstance(t, Tensor) else (), start=ndim - getattr(t, "ndim", 0)):
            shape[k] = _together(shape[k], n)

    def element(*at: tir.Expr) -> tir.Expr:
        return fn(*(_element(t, at[ndim - t.ndim :]) if isinstance(t, Tensor) else t for t in operands))

    return compute(tuple(shape), element, name)


def _together(a: tir.Expr, b: tir.Expr) -> tir.Expr:
    if _is_one(a):
        return b
    if a is b or _is_one(b):
        return a
    raise RoundelError(f"dimensions {a!r} and {b!r} do not go together")


def _is_one(n: tir.Expr) -> bool:
    return isinstance(n, tir.IntImm) and n.value == 1


def _element(t: Tensor, at: tuple[tir.Expr, ...]) -> tir.Expr:
    return t(*(tir.index_const(0) if _is_one(n) else i for i, n in zip(at, t.shape, strict=True)))


def _install() -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        apply = getattr(operator, name)

        def forward(self: Tensor, other: Any, apply: Any = apply, name: str = name) -> Any:
            alone = not self.shape and not isinstance(other, Tensor)  # a tensor without dimensions beside a scalar is one
            return apply(self.asexpr(), other) if alone else elementwise(apply, self, other, name=f"T_{name}")

        def backward(self: Tensor, other: Any, apply: Any = apply, name: str = name) -> Any:
            return elementwise(apply, other, self, name=f"T_{name}") if self.shape else apply(other, self.asexpr())

        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", backward)
    Tensor.__neg__ = lambda self: elementwise(operator.neg, self, name="T_negative")  # type: ignore[attr-defined]


_install()
