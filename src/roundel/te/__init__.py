# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: the notation in which operators are defined."""

from roundel.ir.tir import IndexMap

from .arithmetic import elementwise
from .compute import compute, extern, extern_primfunc
from .create_prim_func import create_prim_func
from .math import *  # noqa: F403
from .reduce import Combiner, Reduce, comm_reducer, highest, lowest, max_value, min_value, reduce_axis
from .reduce import all_over as all  # noqa: A004
from .reduce import any_over as any  # noqa: A004
from .reduce import max_finite_over as max_finite
from .reduce import max_number_over as max_number
from .reduce import max_over as max  # noqa: A004
from .reduce import min_over as min  # noqa: A004
from .reduce import prod_over as prod
from .reduce import sum_over as sum  # noqa: A004
from .scan import scan
from .tag import tag_scope
from .tensor import (
    Compute,
    ComputeOp,
    Definition,
    Extern,
    ExternOp,
    Literal,
    Operation,
    Placeholder,
    PlaceholderOp,
    Scan,
    ScanOp,
    Tensor,
    literal,
    placeholder,
    size_var,
    var,
)

AXIS_SEPARATOR = IndexMap.AXIS_SEPARATOR

__all__ = [n for n in dir() if not n.startswith("_")]
