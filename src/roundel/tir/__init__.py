# SPDX-License-Identifier: Apache-2.0
"""Names for building and asking about tensor programs in Python, the way TVM's documentation does: ``from roundel import tir``.

    i = tir.Var("i", "int32")
    A = tir.decl_buffer((128,), "float32", name="A")
    loop = tir.For(i, 0, 128, tir.ForKind.SERIAL, tir.BufferStore(A, tir.const(0.0, "float32"), [i]))
    tir.analysis.estimate_tir_flops(loop)

Nodes and their constructors are those of ``roundel.ir.tir``; intrinsics and functions of expressions those of the script's ``T``.
"""

from __future__ import annotations

from typing import Any

from ..ir import tir as _nodes
from ..ir.dtype import DType
from ..ir.tir import *  # noqa: F403
from ..script import tir as _script
from . import analysis, stmt_functor
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .stmt_functor import stmt_list

_HERE = ["BijectiveLayout", "DType", "Layout", "analysis", "bijective_layout", "layout", "stmt_functor", "stmt_list"]


def __getattr__(name: str) -> Any:
    """What else there is: nodes and constructors, then the functions of ``T``."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_nodes, name) if hasattr(_nodes, name) else getattr(_script, name)


__all__ = [*_HERE]
