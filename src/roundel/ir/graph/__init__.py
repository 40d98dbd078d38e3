# SPDX-License-Identifier: Apache-2.0
"""Nodes of graph functions: struct info, expressions, bindings, functions."""

from .expr import (
                   Binding,
                   BindingBlock,
                   Call,
                   Constant,
                   DataflowBlock,
                   DataflowVar,
                   DTypeValue,
                   ExternFunc,
                   GlobalVar,
                   GraphExpr,
                   If,
                   MatchCast,
                   PrimValue,
                   SeqExpr,
                   ShapeExpr,
                   StringValue,
                   Tuple,
                   TupleGetItem,
                   Var,
                   VarBinding,
                   While,
)
from .func import Function, bind
from .make_call import ABSENT, infer_call, make_call
from .struct_info import FuncInfo, Layout, ObjectInfo, PrimInfo, ShapeInfo, StructInfo, TensorInfo, TupleInfo

__all__ = [n for n in dir() if not n.startswith("_")]
