# SPDX-License-Identifier: Apache-2.0
"""What a buffer offers in a script beyond fields: ``A.vload``, ``A.vstore``, ``A.access_ptr``, ``A.elem_offset``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import tir
from ...ir.tir import Buffer, Expr
from .. import marks
from ..regions import operand


def _access_ptr(b: Buffer) -> Callable[..., Expr]:
    def build(mask: Any, ptr_type: Any = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None, dtype: Any = None) -> Expr:
        return b.access_ptr(mask, ptr_type, content_lanes, operand(offset), operand(extent))

    return build


def _operands(indices: Any) -> list[Any]:
    return [operand(i) for i in (indices if isinstance(indices, tuple | list) else (indices,))]


def _vload(b: Buffer) -> Callable[..., Expr]:
    def build(indices: Any, dtype: Any = None, predicate: Any = None) -> Expr:
        load = b.vload(_operands(indices), dtype)
        return load if predicate is None else tir.BufferLoad(b, load.indices, operand(predicate))

    return build


def _vstore(b: Buffer) -> Callable[..., marks.Store]:
    def build(indices: Any, value: Any, predicate: Any = None) -> marks.Store:
        value = operand(value)
        lanes = value.dtype.lanes if isinstance(value, Expr) else 1
        load = b.vload(_operands(indices), b.dtype.with_lanes(lanes * b.dtype.lanes) if lanes > 1 else None)
        return marks.Store(b, load.indices, value, None if predicate is None else operand(predicate))

    return build


METHODS: dict[str, Callable[[Buffer], Any]] = {
    "vload": _vload,
    "vstore": _vstore,
    "access_ptr": _access_ptr,
    "elem_offset": lambda b: tir.index_const(0) if b.elem_offset is None else b.elem_offset,
}
