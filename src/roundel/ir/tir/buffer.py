# SPDX-License-Identifier: Apache-2.0
"""Buffers: multi-dimensional memory with shape, strides, offset, scope and element type."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..dtype import HANDLE, DType
from ..node import Node, Span, node
from .expr import BufferLoad, Expr, IntImm, Ramp, Var
from .ops import as_index, call, product_of, sub, sum_of


@node
class Buffer(Node):
    """A typed region of memory, by identity.

    ``shape`` in elements; ``strides`` in elements (empty: C-contiguous); ``elem_offset`` in elements from ``data``
    (None: 0); ``scope`` ``"global"``, ``"local"`` (registers / private), ``"shared"``, ...; ``data`` the pointer
    variable (buffers with one ``data`` alias); ``align`` in bytes; ``axis_separators`` where the dimensions are cut into groups,
    each of which is one dimension of the memory (of texture memory; elsewhere memory has one). Make one with ``decl_buffer``.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    elem_offset: Expr | None
    scope: str
    data: Var
    align: int = 64
    offset_factor: int = 1
    axis_separators: tuple[int, ...] = ()
    span: Span | None = None

    __hash__ = object.__hash__

    @staticmethod
    def _coerce(name: str, dtype: DType, shape: Any, strides: Any, elem_offset: Expr | None, *rest: Any) -> tuple:
        none = type(elem_offset) is IntImm and elem_offset.value == 0  # type: ignore[union-attr]
        return name, dtype, shape, strides, None if none else elem_offset, *rest

    READ, WRITE = 1, 2  # what an access pointer is for

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Any:
        """``A[i, j]`` is a load; a slice in it makes a BufferRegion."""
        items = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(i, slice) for i in items):
            from .stmt import BufferRegion, Range

            return BufferRegion(self, tuple(
                Range(as_index(0 if i.start is None else i.start),
                      as_index(n if i.stop is None else i.stop) - as_index(0 if i.start is None else i.start))
                if isinstance(i, slice) else Range.point(as_index(i)) for i, n in zip(items, self.shape, strict=True)))
        return BufferLoad(self, tuple(as_index(i) for i in items))

    def __iter__(self) -> Any:
        extent = getattr(self.shape[0], "value", self.shape[0]) if self.shape else 1
        raise TypeError(f"buffer {self.name} is no sequence: loop over its indices, for i in range({extent})")

    def vload(self, indices: Any, dtype: str | None = None) -> BufferLoad:
        """A load of ``dtype``'s lanes along the last dimension."""
        items = [as_index(i) for i in (indices if isinstance(indices, tuple | list) else (indices,))]
        lanes = DType(dtype or self.dtype).lanes // self.dtype.lanes
        if lanes > 1 and all(i.dtype.lanes == 1 for i in items):
            items[-1] = Ramp(items[-1], IntImm(1, items[-1].dtype), lanes)
        return BufferLoad(self, tuple(items))

    def access_ptr(self, access_mask: Any, ptr_type: Any = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None) -> Expr:
        """A pointer into the buffer that is handed to external code: ``access_mask`` is ``"r"``, ``"w"`` or ``"rw"``, ``offset`` in
        elements, ``extent`` how many may be touched (by default all from there on)."""
        bits = sum({"r": self.READ, "w": self.WRITE}[c] for c in access_mask) if isinstance(access_mask, str) else access_mask
        start = as_index(offset) if self.elem_offset is None else self.elem_offset + offset
        if extent is None:
            extent = sub(self.strides[0] * self.shape[0] if self.strides else product_of(self.shape), offset)
        dtype = self.dtype.with_lanes(content_lanes * self.dtype.lanes) if content_lanes > 1 else self.dtype
        return call("access_ptr", str(dtype), self.data, start, as_index(extent), bits)

    def offset_of(self, indices: Any) -> Expr:
        """The place of an element, in elements from ``data``."""
        items = [as_index(i) for i in (indices if isinstance(indices, tuple | list) else (indices,))]
        strides = self.strides or tuple(product_of(self.shape[k + 1 :]) for k in range(self.ndim))
        return sum_of([*(i * s for i, s in zip(items, strides, strict=True)), *(() if self.elem_offset is None else (self.elem_offset,))])

    def get_flattened_buffer(self) -> Buffer:
        """The same memory as a buffer of one dimension (itself where it has one), or of one for each group between ``axis_separators``."""
        if self.ndim == 1 and not self.strides:
            return self
        if self.axis_separators and not self.strides:
            cuts = (0, *self.axis_separators, self.ndim)
            groups = tuple(product_of(self.shape[a:b]) for a, b in pairwise(cuts))
            return self.replace(shape=groups, axis_separators=tuple(range(1, len(groups))))
        whole = self.strides[0] * self.shape[0] if self.strides else product_of(self.shape)
        return self.replace(shape=(whole,), strides=())


def decl_buffer(shape: Any, dtype: Any = "float32", name: str = "buffer", *, strides: Any = (), elem_offset: Any = None,
                scope: str = "global", data: Var | None = None, align: int = 64, offset_factor: int = 1,
                axis_separators: Any = ()) -> Buffer:
    """A new buffer; numbers in ``shape`` and ``strides`` become int64 constants. Raises ValueError for separators that are not in order or
    beyond the dimensions."""
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    cuts = tuple(int(k) for k in axis_separators or ())
    if list(cuts) != sorted(cuts) or not all(0 <= k <= len(shape) for k in cuts):
        raise ValueError(f"axis_separators {list(cuts)} do not cut {len(shape)} dimensions: give ascending numbers from 0 to {len(shape)}")
    offset = None if elem_offset is None else as_index(elem_offset)
    return Buffer(name, DType(dtype), tuple(as_index(s) for s in shape), tuple(as_index(s) for s in strides or ()),
                  offset, scope, Var(name + "_data", HANDLE) if data is None else data, align, offset_factor,
                  cuts)
