# SPDX-License-Identifier: Apache-2.0
"""Checks of indices: what operators read and write at positions that are data has to be inside of their tensors.

``check_indices`` gives back its indices, so that what uses them cannot come before the check. ``index_flag`` is the pass over all of them,
in vectors and in parallel; only where it finds something the indices are looked at one by one, for the error to name one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.interp.positions import first_outside, require_inside
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT32, INT64, DType
from roundel.ir.op import FuseKind, OpDef, register
from roundel.ir.positions import Positions

from .dims import fail, static, tensor_info

_NARROW = 1 << 30
"""The largest limit with which the sums of 32-bit indices do not wrap."""


@register
class CheckIndices(OpDef):
    """``indices``, each of which is a position: at least 0 (or minus the limit, where ``negative`` ones count from the end) and below the
    limit, of which there is one, or one for each element along the last axis. A call with any other index fails; the message names ``node``.

    ``flag``: what says whether to look at all: a number that is negative where an index may be out of range, or a condition.
    ``result``: what is given back instead of the indices, from a program that has looked at them itself and used those that are positions.
    """

    name, operands, attributes = "check_indices", ("indices", "limits", "flag?", "result?"), {"negative": False, "node": ""}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        info = tensor_info(self, args[0], args)
        if info.dtype is not None and not info.dtype.is_int:
            fail(self, f"indices have to be integers, not {info.dtype}", *args)
        return info if len(args) < 4 or args[3] is None else args[3]

    def positions(self, infos: tuple[Any, ...], attrs: Attrs) -> tuple[Positions, ...]:
        return (Positions(0, infos[1].values, attrs["negative"]),)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        require_inside(attrs["node"] or "check_indices", args[0], args[1], attrs["negative"])
        return args[0] if len(args) < 4 or args[3] is None else args[3]


@register
class IndexFlag(OpDef):
    """A number, negative where an index is not a position (see ``check_indices``), or lies beyond 2**30 in 32 bits: the bits of
    ``index + limit`` and ``limit - 1 - index``, of which one is negative then, of all indices joined by or.
    """

    name, operands, attributes, kind = "index_flag", ("indices", "limits"), {"negative": False}, FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return graph.TensorInfo((), _wide(tensor_info(self, args[0], args).dtype))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        indices, limits = args
        dtype = _wide(indices.dtype)
        axes = [te.reduce_axis(n, f"k{d}") for d, n in enumerate(indices.shape)]
        sign = sign_of_check(indices(*(a.var for a in axes)), limits, axes[-1].var, attrs["negative"], dtype)
        return te.compute((), lambda: _or_over(sign, axis=axes), "index_flag")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        bad = first_outside(args[0], args[1], attrs["negative"]) is not None
        return np.asarray(-1 if bad else 0, _wide(DType(args[0].dtype)).numpy)


_or_over = te.comm_reducer(lambda x, y: tir.call("bitwise_or", x, y), lambda d: 0, "bitwise_or")


def sign_of_check(index: tir.Expr, limits: Sequence[tir.Expr], column: tir.Expr, negative: bool, dtype: DType) -> tir.Expr:
    """A number, computed in ``dtype``, that is negative where an index in a column is not a position (or lies beyond 2**30 in 32 bits)."""
    high, i = te.cast(limit_of(limits, column, dtype), dtype), te.cast(index, dtype)
    below = i + high if negative and index.dtype.kind == "int" else i
    return tir.call("bitwise_or", below, high - 1 - i)


def wide(dtype: DType, limits: Sequence[tir.Expr]) -> DType:
    """The type in which ``sign_of_check`` is negative for no position: 32 bits only for limits that are known to be small."""
    return _wide(dtype) if all((static(n) or _NARROW + 1) <= _NARROW for n in limits) else INT64


def _wide(dtype: DType) -> DType:
    """The type in which sums of indices of this one are made."""
    return INT64 if dtype.bits > 32 or (dtype.bits == 32 and dtype.kind == "uint") else INT32


def limit_of(limits: Sequence[tir.Expr], column: tir.Expr, dtype: DType) -> tir.Expr:
    """The limit of the indices of a column."""
    largest = tir.index_const(_NARROW if dtype is INT32 else 1 << 62)
    fitting = [n if static(n) is not None and static(n) <= largest.value else tir.min_(n, largest) for n in limits]  # type: ignore[operator]
    out = fitting[-1]
    for k in reversed(range(len(fitting) - 1)):
        out = tir.select(tir.eq(column, k), fitting[k], out)
    return out
