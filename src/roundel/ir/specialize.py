# SPDX-License-Identifier: Apache-2.0
"""Copies of tensor programs: for given sizes and buffers, and with variables of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import tir
from .errors import BuildError
from .tir import ops
from .tir.buffer import Buffer
from .visit import Substitution, free_vars, walk

_FOLDED = {
    tir.Add: ops.add, tir.Sub: ops.sub, tir.Mul: ops.mul, tir.FloorDiv: ops.floordiv, tir.FloorMod: ops.floormod, tir.Min: ops.min_,
    tir.Max: ops.max_, tir.EQ: ops.eq, tir.NE: ops.ne, tir.LT: ops.lt, tir.LE: ops.le, tir.GT: ops.gt, tir.GE: ops.ge,
}


class _Folding(Substitution):
    """Substitution that computes what becomes constant."""

    def generic(self, node: Any) -> Any:
        made = super().generic(node)
        fold = _FOLDED.get(type(made))
        return made if fold is None or made is node else fold(made.a, made.b)


def substitute_and_fold(expr: tir.Expr, table: Mapping[tir.Var, tir.Expr]) -> tir.Expr:
    """An expression with others in the place of variables; what becomes constant is computed."""
    return _Folding(table, {}).rewrite(expr)


def specialize(func: tir.PrimFunc, params: Mapping[tir.Var, Any]) -> tir.PrimFunc:
    """The program for given parameters: a number or expression for a scalar, a buffer for a handle, whose shape, strides, offset and
    pointer take the place of the parameter's. Parameters that are known thereby are left out. The same function where nothing changes.

    Raises BuildError for a variable that is no parameter, and for a buffer that does not fit.
    """
    known = dict(func.buffers)
    table: dict[tir.Var, Any] = {}
    for p, value in params.items():
        if p not in func.params:
            raise BuildError(f"{getattr(p, 'name', p)!r} is no parameter of {func.__name__}", why=f"it has {', '.join(v.name for v in func.params)}")
        if isinstance(value, Buffer) != (p in known):
            raise BuildError(f"parameter {p.name} is {'a buffer' if p in known else 'a scalar'}, and is given a {type(value).__name__}")
        if isinstance(value, Buffer):
            _match_buffer(known[p], value, table)
        else:
            _match(p, tir.const(value, p.dtype) if not isinstance(value, tir.Expr) else value, table, f"parameter {p.name}")
    if not table:
        return func
    made = _Folding(table, {}).rewrite(func)
    return made.replace(params=tuple(p for p in func.params if p not in table))


def _match_buffer(old: Buffer, new: Buffer, table: dict[tir.Var, Any]) -> None:
    """What the variables of a buffer are for a given one; raises BuildError."""
    if old.dtype is not new.dtype or len(old.shape) != len(new.shape):
        of = (f"{len(b.shape)} dimensions of {b.dtype}" for b in (new, old))
        raise BuildError("buffer {} does not fit: it has {}, not {}".format(old.name, *of))
    strides = new.strides or (() if not old.strides else tuple(tir.product_of(new.shape[k + 1 :]) for k in range(len(new.shape))))
    for kind, pairs in (("dimension", zip(old.shape, new.shape)), ("stride", zip(old.strides, strides))):
        for k, (a, b) in enumerate(pairs):
            _match(a, b, table, f"{kind} {k} of buffer {old.name}")
    if old.elem_offset is not None:
        _match(old.elem_offset, tir.IntImm(0, old.elem_offset.dtype) if new.elem_offset is None else new.elem_offset, table, f"offset of buffer {old.name}")
    table[old.data] = new.data


def _match(old: tir.Expr, new: tir.Expr, table: dict[tir.Var, Any], what: str) -> None:
    """``old`` is a variable, which becomes ``new``, or is ``new`` already."""
    if type(old) is tir.Var:
        new = tir.cast(new, old.dtype)
        if old is not new and table.setdefault(old, new) is not new:
            raise BuildError(f"{what} is {new.script()} and {table[old].script()}")
    elif free_vars(old) or (isinstance(new, tir.IntImm) and isinstance(old, tir.IntImm) and old.value != new.value):
        if old is not new:
            raise BuildError(f"{what} is {old.script()}, which {new.script()} cannot stand for")


def renew_defs(func: tir.PrimFunc) -> tir.PrimFunc:
    """An equal program that shares no variable and no buffer with this one, so that both can be parts of one program."""
    buffers = [b for _, b in func.buffer_map]
    variables = [*func.params]
    for n in walk(func.body):
        if isinstance(n, tir.Block):
            buffers += [*n.alloc_buffers, *(m.buffer for m in n.match_buffers)]
        elif isinstance(n, tir.Allocate | tir.DeclBuffer):
            buffers.append(n.buffer)
        variables += [n.loop_var] if isinstance(n, tir.For) else [n.var] if isinstance(n, tir.Let | tir.IterVar) else []
    declared = [e for b in buffers for e in (*b.shape, *b.strides, *(() if b.elem_offset is None else (b.elem_offset,)))]
    variables += [v for e in declared for v in walk(e) if type(v) is tir.Var]
    variables += [b.data for b in buffers]
    table = {v: tir.Var(v.name, v.dtype, v.size) for v in dict.fromkeys(variables)}
    made = Substitution(table, {}).rewrite(func)
    return made.replace(params=tuple(table[p] for p in func.params), buffer_map=tuple((table[p], b) for p, b in made.buffer_map))
