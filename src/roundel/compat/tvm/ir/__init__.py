# SPDX-License-Identifier: Apache-2.0
"""``tvm.ir``."""

from __future__ import annotations

from typing import Any

from .... import ir as _ir
from ....ir import BaseFunc, GlobalVar, IRModule, assert_structural_equal, get_op, load_json, save_json, structural_equal, structural_hash
from ....ir.tir import Expr as PrimExpr
from ....ir.tir import Range
from .. import transform


class Op:
    """``Op.get("relax.add")``: an operator by TVM's name."""

    @staticmethod
    def get(name: str) -> Any:
        """The operator; raises RoundelError with the nearest name."""
        return get_op(name.removeprefix("relax."))


def __getattr__(name: str) -> Any:
    return getattr(_ir, name)


__all__ = ["BaseFunc", "GlobalVar", "IRModule", "Op", "PrimExpr", "Range", "assert_structural_equal", "load_json", "save_json", "structural_equal",
           "structural_hash", "transform"]
