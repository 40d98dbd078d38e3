# SPDX-License-Identifier: Apache-2.0
"""The pattern language by TVM's name, ``from roundel.relax.dpl import *``: patterns of values, of graphs, and rewriting."""

from ..common_patterns import make_fused_bias_activation_pattern
from ..graph_patterns import PatternContext, PatternSeq
from ..pattern_rewriter import PatternRewriter
from ..patterns import (
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DataTypePattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    FunctionPattern,
    GlobalVarPattern,
    NotPattern,
    OrPattern,
    PrimArrPattern,
    ShapePattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
    get_var2val,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from ..rewriting import rewrite_bindings, rewrite_call

__all__ = [n for n in dir() if not n.startswith("_")]
