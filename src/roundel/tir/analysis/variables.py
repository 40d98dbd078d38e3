# SPDX-License-Identifier: Apache-2.0
"""Variables of tensor programs: where they are defined, and which are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...ir import tir
from ...ir.visit import walk

_DEFINES: dict[type, Callable[[Any], Iterator[tir.Var]]] = {
    tir.For: lambda n: iter((n.loop_var,)),
    tir.Let: lambda n: iter((n.var,)),
    tir.IterVar: lambda n: iter((n.var,)),
    tir.Allocate: lambda n: iter((n.buffer.data,)),
    tir.Block: lambda n: iter([*(b.data for b in n.alloc_buffers), *(m.buffer.data for m in n.match_buffers)]),
    tir.PrimFunc: lambda n: iter([*n.params, *dict.fromkeys(b.data for _, b in n.buffer_map)]),
}


def defined_vars(program: Any) -> list[tir.Var]:
    """The variables that a statement or function defines, once for each definition, in order."""
    return [v for n in walk(program) for v in _DEFINES.get(type(n), lambda _: iter(()))(n)]


def verify_ssa(func: tir.PrimFunc) -> bool:
    """Whether each variable is defined at one place (static single assignment)."""
    found = defined_vars(func)
    return len(found) == len(set(found))


def undefined_vars(program: tir.Stmt | tir.Expr, defs: Iterable[tir.Var] = ()) -> list[tir.Var]:
    """The variables that a statement or expression uses and does not define, in order of use; ``defs`` count as defined."""
    defined = {*defs, *defined_vars(program)}
    used: dict[tir.Var, None] = {}
    for n in walk(program):
        if type(n) is tir.Var:
            used[n] = None
        elif isinstance(n, tir.BufferLoad | tir.BufferStore | tir.BufferRegion):
            used[n.buffer.data] = None
            for e in (*n.buffer.shape, *n.buffer.strides, *((n.buffer.elem_offset,) if n.buffer.elem_offset is not None else ())):
                used.update((v, None) for v in walk(e) if type(v) is tir.Var)
    return [v for v in used if v not in defined]


def expr_deep_equal(a: tir.Expr, b: tir.Expr) -> bool:
    """Whether two expressions are the same, variables compared by identity (expressions are interned, so they are one object)."""
    return a is b
