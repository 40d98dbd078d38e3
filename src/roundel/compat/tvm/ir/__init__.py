# SPDX-License-Identifier: Apache-2.0
"""``tvm.ir``."""

from __future__ import annotations

from typing import Any

from .... import ir as _ir
from ....ir import BaseFunc, GlobalVar, IRModule, assert_structural_equal, get_op, load_json, save_json, structural_equal, structural_hash
from ....ir import tir as _tir
from ....ir.foreign_names import named_like
from ....ir.tir import Expr as PrimExpr
from .. import transform
from ..rooms import OPERATORS
from . import instrument


@named_like(_tir.Range)
def Range(begin: Any, end: Any = None, span: Any = None) -> _tir.Range:
    """The values from ``begin`` to before ``end``; given one number, from 0 to before it."""
    if end is None:
        return _tir.Range.of(begin)
    first, last = _tir.as_index(begin), _tir.as_index(end)
    return _tir.Range(first, last - first)


def _from_min_extent(min_value: Any, extent: Any, span: Any = None) -> _tir.Range:
    """``extent`` values from ``min_value`` on."""
    return _tir.Range(_tir.as_index(min_value), _tir.as_index(extent))


Range.from_min_extent = staticmethod(_from_min_extent)


Array = tuple
"""What functions with several results return."""


class PrimType(str):
    """A type of numbers: ``PrimType("float32")``."""

    @property
    def dtype(self) -> str:
        """The type's name."""
        return str(self)


class PointerType(str):
    """A pointer to elements of a type in a memory, for ``tir.Var("A", PointerType(PrimType("float32"), "shared"))``: a handle."""

    def __new__(cls, element_type: Any = "", storage_scope: str = "global") -> PointerType:
        made = super().__new__(cls, "handle")
        made.element_type, made.storage_scope = element_type, storage_scope
        return made

    element_type: Any
    storage_scope: str


class Op:
    """``Op.get("relax.add")``: an operator by TVM's name."""

    @staticmethod
    def get(name: str) -> Any:
        """The operator; raises RoundelError with the nearest name."""
        name = name.removeprefix("relax.")
        return get_op(OPERATORS.get(name, name))


def __getattr__(name: str) -> Any:
    return getattr(_ir, name)


__all__ = ["Array", "BaseFunc", "GlobalVar", "IRModule", "Op", "PointerType", "PrimExpr", "PrimType", "Range", "assert_structural_equal", "instrument",
           "load_json", "save_json",
           "structural_equal", "structural_hash", "transform"]
