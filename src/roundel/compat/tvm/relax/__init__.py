# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax``."""

from __future__ import annotations

from typing import Any

from .... import relax as _relax
from ....ir import graph
from ....relax import *  # noqa: F403
from ....relax import expr_functor
from ....relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..rooms import missing
from ..running import VirtualMachine, build
from . import analysis, frontend, pipeline, transform
from .pipeline import get_pipeline, register_pipeline

Expr, StructInfo, Binding, BindingBlock, DataflowBlock = graph.GraphExpr, graph.StructInfo, graph.Binding, graph.BindingBlock, graph.DataflowBlock
MatchCast = graph.MatchCast


def __getattr__(name: str) -> Any:
    try:
        return getattr(_relax, name)
    except AttributeError:
        raise missing(f"tvm.relax.{name}", name) from None


__all__ = ["Binding", "BindingBlock", "DataflowBlock", "Expr", "MatchCast", "PyExprMutator", "PyExprVisitor", "StructInfo", "VirtualMachine", "analysis",
           "build", "expr_functor", "frontend", "get_pipeline", "mutator", "pipeline", "register_pipeline", "transform", "visitor"]
