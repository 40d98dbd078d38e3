# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax``."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

from .... import relax as _relax
from ....ir import graph
from ....relax import *  # noqa: F403
from ....relax import expr_functor
from ....relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..rooms import missing
from ..running import VirtualMachine, VMInstrumentReturnKind, build
from . import analysis, backend, frontend, pipeline, testing, training, transform
from .of_2022 import DynTensorType, Operators, Var, const, in_script
from .pipeline import get_pipeline, register_pipeline

Expr, StructInfo, Binding, BindingBlock, DataflowBlock = graph.GraphExpr, graph.StructInfo, graph.Binding, graph.BindingBlock, graph.DataflowBlock
MatchCast = graph.MatchCast
op = Operators()
vm = vm_build = SimpleNamespace(build=build, VirtualMachine=VirtualMachine, VMInstrumentReturnKind=VMInstrumentReturnKind)


def __getattr__(name: str) -> Any:
    for found in (partial(getattr, _relax), in_script):
        with suppress(AttributeError):
            return found(name)
    raise missing(f"tvm.relax.{name}", name)


__all__ = [
    "Binding",
    "BindingBlock",
    "DataflowBlock",
    "DynTensorType",
    "Expr",
    "MatchCast",
    "PyExprMutator",
    "PyExprVisitor",
    "StructInfo",
    "VMInstrumentReturnKind",
    "Var",
    "VirtualMachine",
    "analysis",
    "backend",
    "build",
    "const",
    "expr_functor",
    "frontend",
    "get_pipeline",
    "mutator",
    "op",
    "pipeline",
    "register_pipeline",
    "testing",
    "training",
    "transform",
    "visitor",
    "vm",
    "vm_build",
]
