# SPDX-License-Identifier: Apache-2.0
"""Struct info: what is known of a graph value. Interned, so equal means identical."""

from __future__ import annotations

from typing import Any

from ..dtype import DType
from ..node import Node, node
from ..tir.expr import Expr, IntImm
from ..tir.ops import as_index


class StructInfo(Node):
    """Base of all struct info."""

    __slots__ = ()
    __hash__ = object.__hash__


@node(intern=True)
class Layout(Node):
    """Physical layout of a tensor (design decision 11): ``spec`` names it, upper case the logical axes in order, a number
    before a lower case letter the block (``"NCHW8c"``); ``halo`` gives (before, after) elements around each logical axis;
    ``fill`` is the value that the producer writes there; ``pitch`` the allocated extents where larger than needed.
    """

    spec: str
    halo: tuple[tuple[int, int], ...] = ()
    fill: float | None = None
    pitch: tuple[int, ...] = ()


@node(intern=True)
class ObjectInfo(StructInfo):
    """Anything (``R.Object``)."""


@node(intern=True)
class PrimInfo(StructInfo):
    """A scalar of ``dtype`` (``R.Prim``); ``value`` is its expression where known."""

    dtype: DType
    value: Expr | None = None


@node(intern=True)
class ShapeInfo(StructInfo):
    """A shape (``R.Shape``): its ``values``, or only its rank ``ndim`` (-1: unknown)."""

    values: tuple[Expr, ...] | None = None
    ndim: int = -1

    @staticmethod
    def _coerce(values: Any, ndim: int) -> tuple:
        return (None, ndim) if values is None else (tuple(as_index(v) for v in values), len(values))


@node(intern=True)
class TensorInfo(StructInfo):
    """A tensor (``R.Tensor``): ``shape`` (expressions; None: unknown), ``dtype`` (None: unknown), rank ``ndim`` (-1: unknown),
    the device it lives on and its physical layout (None: row-major).
    """

    shape: tuple[Expr, ...] | None = None
    dtype: DType | None = None
    ndim: int = -1
    vdevice: str | None = None
    layout: Layout | None = None

    @staticmethod
    def _coerce(shape: Any, dtype: Any, ndim: int, vdevice: str | None, layout: Layout | None) -> tuple:
        if shape is not None:
            shape = tuple(as_index(s) for s in shape)
            ndim = len(shape)
        return shape, None if dtype is None else DType(dtype), ndim, vdevice, layout

    @property
    def unknown(self) -> str:
        """What is not known, in words: the rank or the sizes, the element type; empty where all is known."""
        lacks = {"rank": self.ndim < 0, "sizes": self.shape is None and self.ndim >= 0, "element type": self.dtype is None}
        return " and ".join(name for name, lacking in lacks.items() if lacking)

    @property
    def completed(self) -> str:
        """Such a tensor as a script declares it with nothing unknown: sizes that only the run knows have names."""
        known = () if self.shape is None else self.shape
        dims = [d.script() if isinstance(d, IntImm) else f'"{d.script()}"' for d in known] or [f'"n{k}"' for k in range(max(self.ndim, 1))]
        return f'R.Tensor(({", ".join(dims)}{"," * (len(dims) == 1)}), "{self.dtype or "float32"}")'

    @property
    def size(self) -> Expr | None:
        """Number of elements, where the shape is known."""
        from ..tir.ops import product_of

        return None if self.shape is None else product_of(self.shape)


@node(intern=True)
class TupleInfo(StructInfo):
    """A tuple of values (``R.Tuple``)."""

    fields: tuple[StructInfo, ...]


@node(intern=True)
class FuncInfo(StructInfo):
    """A function (``R.Callable``): parameter and result info; None parameters: anything."""

    params: tuple[StructInfo, ...] | None
    ret: StructInfo
    pure: bool = True
