# SPDX-License-Identifier: Apache-2.0
"""Struct info as script: ``R.Tensor((n, 4), dtype="float32")``; in signatures dimensions with variables are text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ...ir.escape import python_string
from ...ir.graph import FuncInfo, Layout, ObjectInfo, PrimInfo, ShapeInfo, StructInfo, TensorInfo, TupleInfo
from ...ir.tir import Expr, IntImm


class InfoPrinter:
    """Prints struct info with ``expr`` for dimensions; ``as_text`` quotes those that are not numbers."""

    cases: ClassVar[dict[type, Callable[..., str]]] = {}  # type of struct info to (printer, info) -> text

    def __init__(self, expr: Callable[[Expr], str], as_text: bool = False) -> None:
        self.expr, self.as_text = expr, as_text

    def __call__(self, info: StructInfo) -> str:
        return self.cases[type(info)](self, info)

    def dim(self, e: Expr) -> str:
        """A dimension."""
        text = self.expr(e)
        return python_string(text) if self.as_text and not isinstance(e, IntImm) else text

    def tensor(self, i: TensorInfo) -> str:
        """``R.Tensor((n, 4), dtype="float32")``"""
        parts = [] if i.shape is None else [f"({', '.join(map(self.dim, i.shape))}{',' if len(i.shape) == 1 else ''})"]
        parts += [f'dtype="{i.dtype}"'] if i.dtype is not None else []
        parts += [f"vdevice={i.vdevice!r}"] if i.vdevice is not None else []
        parts += [f"ndim={i.ndim}"] if i.shape is None and i.ndim != -1 else []
        parts += [f"layout={layout_text(i.layout)}"] if i.layout is not None else []
        return f"R.Tensor({', '.join(parts)})"

    def shape(self, i: ShapeInfo) -> str:
        """``R.Shape([n, 4])``"""
        if i.values is None:
            return "R.Shape()" if i.ndim == -1 else f"R.Shape(ndim={i.ndim})"
        return f"R.Shape([{', '.join(map(self.dim, i.values))}])"

    def prim(self, i: PrimInfo) -> str:
        """``R.Prim("int64")``, ``R.Prim(value=n)``"""
        if i.value is None:
            return f'R.Prim("{i.dtype}")'
        return (
            f'R.Prim("{i.dtype}", value={self.dim(i.value)})'
            if i.value.dtype is not i.dtype
            else f"R.Prim(value={self.dim(i.value)})"
        )

    def tuple(self, i: TupleInfo) -> str:
        """``R.Tuple(R.Tensor(...), ...)``"""
        return f"R.Tuple({', '.join(map(self, i.fields))})"

    def func(self, i: FuncInfo) -> str:
        """``R.Callable((R.Tensor(...),), R.Tensor(...))``"""
        params = (
            "None" if i.params is None else f"({', '.join(map(self, i.params))}{',' if len(i.params) == 1 else ''})"
        )
        return f"R.Callable({params}, {self(i.ret)}{'' if i.pure else ', pure=False'})"


def layout_text(layout: Layout) -> str:
    """``R.Layout("NCHW8c", halo=((0, 0), ...))``"""
    parts = [python_string(layout.spec)]
    parts += [f"halo={layout.halo}"] if layout.halo else []
    parts += [f"fill={layout.fill!r}"] if layout.fill is not None else []
    parts += [f"pitch={layout.pitch}"] if layout.pitch else []
    return f"R.Layout({', '.join(parts)})"


InfoPrinter.cases = {
    ObjectInfo: lambda p, i: "R.Object",
    TensorInfo: InfoPrinter.tensor,
    ShapeInfo: InfoPrinter.shape,
    PrimInfo: InfoPrinter.prim,
    TupleInfo: InfoPrinter.tuple,
    FuncInfo: InfoPrinter.func,
}
