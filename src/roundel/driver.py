# SPDX-License-Identifier: Apache-2.0
"""From a module of graph functions and tensor programs to an executable: the default pipelines and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph.common_subexpressions import eliminate_common_subexpressions
from .graph.dead_code import eliminate_dead_code
from .graph.fold_constants import fold_constants
from .graph.fold_scale import decompose_batch_norm, fold_scale
from .graph.fuse import fuse
from .graph.legalize import decompose, legalize
from .graph.lower_host import lower_host
from .graph.simplify import simplify
from .ir.module import IRModule
from .passes import run
from .select import schedule_module

Pass = Callable[[IRModule], IRModule]

OPTIMIZE: list[Pass] = [
    eliminate_dead_code, decompose_batch_norm, fold_constants, simplify, fold_constants, fold_scale, fold_constants,
    eliminate_common_subexpressions, eliminate_dead_code,
]
"""Graph to graph: rewriting on operators."""

LOWER: list[Pass] = [decompose, fold_constants, simplify, eliminate_common_subexpressions, legalize, fuse, eliminate_dead_code]
"""Operators to fused tensor programs, not scheduled yet."""

FINISH: list[Pass] = [schedule_module, lower_host, eliminate_dead_code]
"""Fused tensor programs to scheduled ones, graph functions to host functions."""

DEFAULT: list[Pass] = [*OPTIMIZE, *LOWER, *FINISH]
"""What ``rd.compile`` runs before code generation."""


def prepare(mod: IRModule, *, target: Any = None, pipeline: Sequence[Pass] | None = None, observers: Sequence[Any] = (), verify: bool = False) -> IRModule:
    """The module after the pipeline (default ``DEFAULT``): host functions and scheduled kernels."""
    if target is not None:
        mod = mod.replace(attrs=mod.attrs | {"target": target})
    return run(mod, DEFAULT if pipeline is None else list(pipeline), observers=observers, verify=verify)
