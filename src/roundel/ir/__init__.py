# SPDX-License-Identifier: Apache-2.0
"""The intermediate representation: nodes of both levels, visiting, rewriting, equality, operators' table, errors, options."""

from . import errors, graph, tir
from .attrs import Attrs
from .constants import ConstData
from .dtype import DType
from .equal import assert_structural_equal, structural_equal, structural_hash, structural_mismatch
from .graph import Function, GlobalVar
from .module import IRModule
from .node import Node, Span, Token, node
from .op import FuseKind, OpDef, all_ops, get_op, register
from .saved import load_json, save_json
from .tir import BaseFunc, Buffer, Expr, PrimFunc, Var, decl_buffer
from .visit import Rewriter, Visitor, children, free_vars, map_functions, on, substitute, walk

__all__ = ["Attrs", "BaseFunc", "Buffer", "ConstData", "DType", "Expr", "Function", "FuseKind", "GlobalVar", "IRModule", "Node", "OpDef", "PrimFunc",
           "Rewriter", "Span", "Token", "Var", "Visitor", "all_ops", "assert_structural_equal", "children", "decl_buffer", "free_vars", "get_op", "graph",
           "load_json", "map_functions", "node", "on", "register", "save_json", "structural_equal", "structural_hash", "structural_mismatch",
           "substitute", "tir", "walk"]
