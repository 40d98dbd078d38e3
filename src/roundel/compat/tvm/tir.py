# SPDX-License-Identifier: Apache-2.0
"""``tvm.tir``. Constructors whose arguments stand in another order in TVM take TVM's."""

from typing import Any

from ... import schedule as _schedule
from ... import tir as _tir
from ...intrinsics import TensorIntrin
from ...ir import tir as _nodes
from ...ir.errors import ScheduleError
from ...ir.foreign_names import named_like
from ...ir.tir import Expr as PrimExpr
from ...ir.tir import Seq
from ...schedule import BlockRV, LoopRV, Schedule, Trace
from ...tir import *  # noqa: F403
from . import tir_transform as transform
from .running import build

SBlockRV = BlockRV
_AXES = (_nodes.IterKind.SPATIAL, None, _nodes.IterKind.REDUCE, _nodes.IterKind.SCAN, _nodes.IterKind.OPAQUE)
"""By TVM's numbers of kinds of axes."""


@named_like(_nodes.IntImm)
def IntImm(dtype: str, value: int, span: Any = None) -> _nodes.IntImm:
    """An integer constant."""
    return _nodes.IntImm(value, dtype)


@named_like(_nodes.FloatImm)
def FloatImm(dtype: str, value: float, span: Any = None) -> _nodes.FloatImm:
    """A floating-point constant."""
    return _nodes.FloatImm(value, dtype)


@named_like(_nodes.IterVar)
def IterVar(dom: Any, var: Any, iter_type: Any, thread_tag: str = "", span: Any = None) -> _nodes.IterVar:
    """An axis of a block."""
    variable = _nodes.Var(var, "int32") if isinstance(var, str) else var
    kind = _AXES[iter_type] if isinstance(iter_type, int) else iter_type
    if kind is None:
        raise ScheduleError("an axis of threads is no axis of a block", hint="bind a loop: sch.bind(loop, \"threadIdx.x\")")
    return _nodes.IterVar(variable, dom, kind)


@named_like(Seq)
def SeqStmt(seq: Any, span: Any = None) -> Seq:
    """Statements one after another."""
    return Seq(tuple(seq))


__all__ = ["BlockRV", "FloatImm", "IntImm", "IterVar", "LoopRV", "PrimExpr", "SBlockRV", "Schedule", "ScheduleError", "SeqStmt", "TensorIntrin", "Trace",
           "build", "transform"]


def __getattr__(name: str) -> Any:
    return _schedule if name == "schedule" else getattr(_tir, name)
