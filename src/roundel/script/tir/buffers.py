# SPDX-License-Identifier: Apache-2.0
"""Declarations of buffers: ``T.Buffer``, ``T.match_buffer``, ``T.alloc_buffer``, ``T.allocate``, ``T.decl_buffer``."""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.dtype import DType
from ..marks import BufferSpec, Literal
from ..regions import as_region
from .types import ScalarType


class _BufferType:
    """``T.Buffer((128, 128), "float32")``, and in the older spelling ``T.Buffer[(128, 128), "float32"]``."""

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = ...,
        scope: str = "global",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Any = None,
    ) -> BufferSpec:
        return _spec(
            "param",
            shape,
            dtype,
            data=data,
            strides=strides,
            elem_offset=elem_offset,
            scope=scope,
            align=align,
            offset_factor=offset_factor,
            axis_separators=axis_separators,
        )

    def __getitem__(self, key: Any) -> BufferSpec:
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], str):
            return self(*key)
        return self(key)


def _spec(role: str, shape: Any, dtype: Any, source: Any = None, annotations: Any = None, **options: Any) -> BufferSpec:
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    dtype = dtype.dtype if isinstance(dtype, ScalarType) else DType(dtype)
    return BufferSpec(role, tuple(shape), dtype, options, source, dict(annotations or {}))


Buffer = _BufferType()


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = ...,
    scope: str | None = None,
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> BufferSpec:
    """The buffer that a handle parameter is, or a view of a region inside a block."""
    if not isinstance(param, tir.Var):
        region = as_region(param)
        shape = tuple(r.extent for r in region.region) if shape is None else shape
        dtype, scope, param = dtype or region.buffer.dtype, scope or region.buffer.scope, region
    return _spec(
        "match",
        shape,
        dtype or "float32",
        param,
        data=data,
        strides=strides,
        elem_offset=elem_offset,
        scope=scope or "global",
        align=align,
        offset_factor=offset_factor,
        axis_separators=axis_separators,
    )


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> BufferSpec:
    """A buffer that lives in the enclosing block."""
    return _spec(
        "alloc",
        shape,
        dtype,
        data=data,
        strides=strides,
        elem_offset=elem_offset,
        scope=scope,
        align=align,
        offset_factor=offset_factor,
        axis_separators=axis_separators,
    )


def allocate(
    extents: Any,
    dtype: Any = "float32",
    scope: str = "global",
    condition: Any = None,
    annotations: Any = None,
    *,
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    align: int = 0,
    offset_factor: int = 0,
) -> BufferSpec:
    """Memory for the rest of the body, usable as a buffer and as a pointer."""
    if condition is not None and condition is not True:
        raise ValueError("conditional allocation is not supported; put the allocation under an if")
    return _spec(
        "allocate",
        extents,
        dtype,
        None,
        annotations,
        data=data,
        strides=strides,
        elem_offset=elem_offset,
        scope=scope,
        align=align,
        offset_factor=offset_factor,
    )


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> BufferSpec:
    """A buffer over the pointer ``data``, for the rest of the body."""
    return _spec(
        "decl",
        shape,
        dtype,
        data=data,
        strides=strides,
        elem_offset=elem_offset,
        scope=scope,
        align=align,
        offset_factor=offset_factor,
        axis_separators=axis_separators,
    )


sblock_alloc_buffer = alloc_buffer
buffer_decl = decl_buffer


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Any = None) -> BufferSpec:
    """Memory with these values, for the rest of the body."""
    return _spec("const", extents, dtype, Literal(list(data)), annotations)


def preflattened_buffer(postflattened: Any, shape: Any, dtype: Any = "float32", **options: Any) -> None:
    """The shape that a parameter had before flattening: nothing follows from it."""
