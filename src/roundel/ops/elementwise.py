# SPDX-License-Identifier: Apache-2.0
"""The base of operators that compute each element from the corresponding elements of broadcast operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import BOOL, DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import broadcast, broadcast_shapes, fail, same_dtype, static, tensor_info

_ACCEPTS: dict[str, Callable[[DType], bool]] = {
    "float": lambda d: d.is_float,
    "int": lambda d: d.is_int,
    "bool": lambda d: d.is_bool,
    "bits": lambda d: d.is_int or d.is_bool,
    "number": lambda d: d.is_int or d.is_float,
    "any": lambda d: True,
}


class Elementwise(OpDef):
    """``fn`` of elements (expressions) and attributes gives an element; ``reference`` does the same with arrays.

    ``accepts`` says which types; ``result`` is a dtype where it is not the operands'; ``widen`` evaluates ``fn`` in
    float32 for narrower floats (not needed where it is one operation, rounded once).
    """

    kind = FuseKind.ELEMENTWISE

    def __init__(
        self,
        name: str,
        operands: Sequence[str],
        fn: Callable[..., Any],
        reference: Callable[..., Any],
        *,
        accepts: str = "float",
        result: DType | None = None,
        widen: bool = True,
        doc: str = "",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.operands = name, tuple(operands)
        self.fn, self.reference, self.accepts, self.result, self.widen = fn, reference, accepts, result, widen
        self.attributes = dict(attributes or {})
        self.kind = FuseKind.ELEMENTWISE if len(operands) == 1 else FuseKind.BROADCAST
        self.__doc__ = doc or f"{name} of each element"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = [tensor_info(self, a, args) for a in args]
        dtype = same_dtype(self, infos)
        if dtype is not None and not _ACCEPTS[self.accepts](dtype):
            fail(self, f"operands have to be {self.accepts}, not {dtype}", *args)
        shape, ndim = broadcast(self, infos)
        return graph.TensorInfo(shape, self.result or dtype, ndim, infos[0].vdevice)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape = broadcast_shapes(self, [a.shape for a in args])
        body = lambda *xs: self.fn(*xs, **attrs)
        fn = te.widened(body) if self.widen and self.result is None else body
        return te.compute(shape, lambda *i: fn(*(element(a, i, shape) for a in args)), label(self))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        arrays = [np.asarray(a) for a in args]
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            out = np.asarray(self.reference(*map(widen, arrays), **attrs))
        return out.astype(dtype if self.result is None else self.result.numpy, copy=False)


def element(t: te.Tensor, at: Sequence[Any], shape: Sequence[Any]) -> tir.Expr:
    """The element of ``t`` that broadcasting puts at ``at`` of a result of ``shape``."""
    skip = len(shape) - len(t.shape)
    return t[
        tuple(
            tir.index_const(0) if static(d) == 1 and static(s) != 1 else i
            for d, i, s in zip(t.shape, at[skip:], shape[skip:])
        )
    ]


def only_element(t: te.Tensor | tir.Expr) -> tir.Expr:
    """The element of a tensor of one element, or a number itself."""
    return t if isinstance(t, tir.Expr) else t(*(tir.index_const(0) for _ in t.shape))


def widen(array: np.ndarray) -> np.ndarray:
    """Narrow floats as float32."""
    return array.astype(np.float32) if DType(array.dtype).is_float and DType(array.dtype).bits < 32 else array


def label(op: OpDef) -> str:
    """The operator's name as that of a block."""
    return op.name.rpartition(".")[2]


def unary(name: str, fn: Callable[..., Any], reference: Callable[..., Any], **options: Any) -> None:
    """Register an operator of one operand."""
    register(Elementwise(name, ("x",), fn, reference, **options))


def binary(name: str, fn: Callable[..., Any], reference: Callable[..., Any], **options: Any) -> None:
    """Register an operator of two operands that broadcast."""
    register(Elementwise(name, ("x1", "x2"), fn, reference, **options))


def comparison(name: str, fn: Callable[..., Any], reference: Callable[..., Any], accepts: str = "any") -> None:
    """Register an operator of two operands with a bool result."""
    binary(name, fn, reference, accepts=accepts, result=BOOL, doc=f"whether x1 is {name.replace('_', ' ')} x2")


__all__ = ["Elementwise", "binary", "comparison", "element", "label", "only_element", "unary", "widen"]


def pick(index: Any, values: Sequence[Any]) -> Any:
    """``values[index]``, for an index that a schedule unrolls."""
    out = values[-1]
    for k in range(len(values) - 2, -1, -1):
        out = te.if_then_else(tir.eq(index, k), values[k], out)
    return out
