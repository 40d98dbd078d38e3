# SPDX-License-Identifier: Apache-2.0
"""The intermediate representation: nodes of both levels, visiting, rewriting, equality, operators' table, errors, options."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .node import Node, Span, Token, node  # before anything can import the file: the package has the function of this name

if TYPE_CHECKING:
    from . import errors, graph, tir
    from .attrs import Attrs
    from .constants import ConstData
    from .dtype import DType
    from .equal import assert_structural_equal, structural_equal, structural_hash, structural_mismatch
    from .graph import Function, GlobalVar
    from .module import IRModule
    from .op import FuseKind, OpDef, all_ops, get_op, register
    from .saved import load_json, save_json
    from .tir import BaseFunc, Buffer, Expr, PrimFunc, Var, decl_buffer
    from .visit import Rewriter, Visitor, children, free_vars, map_functions, on, substitute, walk

_HOMES = {
    "Attrs": "attrs", "ConstData": "constants", "DType": "dtype", "IRModule": "module",
    **dict.fromkeys(("assert_structural_equal", "structural_equal", "structural_hash", "structural_mismatch"), "equal"),
    **dict.fromkeys(("Function", "GlobalVar"), "graph"),
    **dict.fromkeys(("FuseKind", "OpDef", "all_ops", "get_op", "register"), "op"),
    **dict.fromkeys(("load_json", "save_json"), "saved"),
    **dict.fromkeys(("BaseFunc", "Buffer", "Expr", "PrimFunc", "Var", "decl_buffer"), "tir"),
    **dict.fromkeys(("Rewriter", "Visitor", "children", "free_vars", "map_functions", "on", "substitute", "walk"), "visit"),
}

__all__ = ["Attrs", "BaseFunc", "Buffer", "ConstData", "DType", "Expr", "Function", "FuseKind", "GlobalVar", "IRModule", "Node", "OpDef", "PrimFunc",
           "Rewriter", "Span", "Token", "Var", "Visitor", "all_ops", "assert_structural_equal", "children", "decl_buffer", "free_vars", "get_op", "graph",
           "load_json", "map_functions", "node", "on", "register", "save_json", "structural_equal", "structural_hash", "structural_mismatch",
           "substitute", "tir", "walk"]


def __getattr__(name: str) -> Any:
    """Everything else is imported on first use: a model of the cache needs errors and options, and no nodes."""
    if name in ("errors", "graph", "tir"):
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
