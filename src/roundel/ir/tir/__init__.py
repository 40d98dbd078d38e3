# SPDX-License-Identifier: Apache-2.0
"""Nodes of tensor programs: expressions, buffers, statements, functions."""

from .buffer import Buffer, decl_buffer
from .expr import (EQ, GE, GT, LE, LT, NE, Add, And, BinaryOp, Broadcast, BufferLoad, Call, Cast, Compare, Div, Expr, FloatImm,
                   FloorDiv, FloorMod, IfThenElse, IntImm, Max, Min, Mod, Mul, Not, Or, Ramp, Select, Shuffle, StringImm, Sub, Var)
from .func import BaseFunc, PrimFunc
from .index_map import IndexMap
from .intrin import Effect, effect
from .ops import (add, as_index, call, cast, ceildiv, const, div, eq, floordiv, floormod, ge, gt, if_then_else, index_const, le,
                  logical_and, logical_not, logical_or, lt, max_, min_, mul, ne, product_of, promote, select, sub, sum_of, truncdiv, truncmod)
from .stmt import (Allocate, Assert, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, Evaluate, For, ForKind,
                   If, IterKind, IterVar, Let, MatchBufferRegion, Range, Seq, Stmt, While, seq)

__all__ = [n for n in dir() if not n.startswith("_")]
