# SPDX-License-Identifier: Apache-2.0
"""How buffers lie in memory, whatever language the code is generated in: bytes of an element, strides, bytes of a buffer."""

from __future__ import annotations

from functools import cache

from ..ir import tir
from ..ir.dtype import DType


def is_packed(dtype: DType) -> bool:
    """Several elements per byte (int4, uint4, int2, uint2, 4-bit floats)."""
    return dtype.storage_bits < 8


@cache
def element_bytes(dtype: DType) -> int:
    """Bytes of one element in memory (1 for packed types: their unit of access)."""
    return max(1, dtype.storage_bits // 8)


def strides(buffer: tir.Buffer) -> tuple[tir.Expr, ...]:
    """Elements between neighbours along each dimension."""
    if buffer.strides:
        return buffer.strides
    out: list[tir.Expr] = []
    step: tir.Expr = tir.index_const(1)
    for extent in reversed(buffer.shape):
        out.append(step)
        step = tir.mul(step, extent)
    return tuple(reversed(out))


def buffer_bytes(buffer: tir.Buffer) -> tir.Expr:
    """Bytes of a buffer's memory, as an index expression."""
    if buffer.strides:
        count: tir.Expr = tir.index_const(1)
        for extent, stride in zip(buffer.shape, strides(buffer), strict=True):
            count = tir.add(count, tir.mul(tir.sub(extent, 1), stride))
    else:
        count = tir.product_of(buffer.shape)
    count = tir.mul(count, buffer.dtype.lanes)
    if buffer.elem_offset is not None:
        count = tir.add(count, buffer.elem_offset)
    return tir.ceildiv(count, 8 // buffer.dtype.bits) if is_packed(buffer.dtype) else tir.mul(count, element_bytes(buffer.dtype.element))
