# SPDX-License-Identifier: Apache-2.0
"""Programs that use indices check them: each index is read once, and not a first time for the check.

    flag = index_flag(i, (n,))                   both = call_tir(checked_take, (x, i), (r, flag))
    c = check_indices(i, (n,), flag)      ->     r = check_indices(i, (n,), both[1], both[0])
    r = call_tir(take, (x, c))

What is read at an index that is not a position is read at the last one instead; that there was one is told, both in vectors. What is written
at an index is written if that is a position. So nothing outside is touched, and a result that is not right is not handed out.

    for p in T.parallel(m // 1024):                                  for j in range(m):
        found = 0                                                        if -n <= i[j] < n: out[i[j]] = u[j]
        for j in range(1024 * p, 1024 * (p + 1)):                        else: flag = -1
            k = i[j] + n if i[j] < 0 else i[j]
            found |= k ^ unsigned_min(k, n - 1)
            out[j] = x[unsigned_min(k, n - 1)]
        if found != 0: flag = -1

This is for scheduled programs in which one nest of loops, with no other loop outside, goes over all indices.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.dtype import INT64, DType
from ..ir.module import IRModule
from ..ir.op import CALL_TIR
from ..ir.visit import OnceVisitor, Rewriter, on, substitute, walk
from ..ops.bounds import limit_of, wide
from ..passes import pass_
from .index_ranges import static
from .rewriter import GraphRewriter, is_call, uses

PIECE = 1024
"""Iterations of a parallel loop, at most, after which one thread tells what it found."""


@pass_("checks_in_programs")
def checks_in_programs(mod: IRModule) -> IRModule:
    """Let programs that use checked indices make the checks."""
    return _InPrograms(mod).module()


class _InPrograms(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.made: dict[tuple[Any, ...], graph.GlobalVar | None] = {}
        self.count: dict[graph.Var, int] = {}

    def function(self, func: graph.Function) -> graph.Function:
        self.count = uses(func)
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not is_call(call, CALL_TIR) or not isinstance(call.args[1], graph.Tuple) or not isinstance(call.sinfo, graph.TensorInfo):
            return call
        for position, operand in enumerate(call.args[1].fields):
            check = self.producer(operand)
            if _has_flag(check) and self.count.get(operand) == 1 and any(b.var is operand for b in self._out):
                changed = self.checking(call, position, check)  # type: ignore[arg-type]
                if changed is not None:
                    return changed
        return call

    def checking(self, call: graph.Call, position: int, check: graph.Call) -> graph.Call | None:
        """The call of the program that makes the check, and what fails where it found something; None where there is no such program."""
        limits, negative = check.args[1].values, check.attrs["negative"]
        key = call.args[0].name, position, tuple(map(static, limits)), negative
        if key not in self.made:
            func = self.mod[call.args[0].name]
            program = with_check(func, position, limits, negative) if isinstance(func, tir.PrimFunc) else None
            self.made[key] = None if program is None else self.add_function(f"checked_{call.args[0].name}", program)
        name = self.made[key]
        if name is None:
            return None
        operands = [check.args[0] if k == position else f for k, f in enumerate(call.args[1].fields)]
        scalars = (*(call.args[2].values if len(call.args) > 2 else ()), *(n for n in limits if static(n) is None))
        info = graph.TupleInfo((call.sinfo, graph.TensorInfo((), self.mod[name.name].buffer_params[-1].dtype)))  # type: ignore[union-attr]
        extra = (graph.ShapeExpr(scalars),) if scalars else ()
        both = self.emit(graph.Call(CALL_TIR, (name, graph.Tuple(tuple(operands)), *extra), sinfo_args=(info,), sinfo=info), "both")
        result, flag = (self.emit(graph.TupleGetItem(both, k), hint) for k, hint in enumerate(("unchecked", "flag")))
        return check.replace(args=(check.args[0], check.args[1], flag, result), sinfo=call.sinfo)


def _has_flag(made: Any) -> bool:
    return is_call(made, "check_indices") and len(made.args) == 3 and isinstance(made.args[2], graph.Var)


def with_check(func: tir.PrimFunc, position: int, limits: tuple[tir.Expr, ...], negative: bool) -> tir.PrimFunc | None:
    """The program with a check of its buffer ``position``: a last buffer more, for a number that is negative where an index is not a
    position, and a scalar more for each of the limits that is not a number. None where its loops do not allow that."""
    if func.root_block is None or func.attrs.keys() & {"append", "view", "checks"}:
        return None
    indices = func.buffer_params[position]
    sizes = tuple(n if static(n) is not None else tir.Var(f"limit{k}", INT64) for k, n in enumerate(limits))
    flag = tir.decl_buffer((), wide(indices.dtype, sizes), "flag")
    found = _Accesses(indices)
    found.visit(func.body)
    if not found.all_once():
        return None
    root: Any = func.body
    check = _Check(indices, sizes, negative and indices.dtype.kind == "int", flag, found)
    body = check.within(root.block.body)
    if body is None:
        return None
    body = tir.seq(tir.BufferStore(flag, tir.const(0, flag.dtype), ()), body)
    handle = tir.Var("flag_handle", func.buffer_map[-1][0].dtype)
    last = max(k for k, p in enumerate(func.params) if p in func.buffers)
    params = (*func.params[: last + 1], handle, *func.params[last + 1 :], *(n for n in sizes if type(n) is tir.Var))
    return func.replace(params=params, buffer_map=(*func.buffer_map, (handle, flag)), body=root.replace(block=root.block.replace(body=body)),
                        attrs=func.attrs | {"checks": 1})


class _Accesses(OnceVisitor):
    """The loads of a buffer, in variables of loops."""

    def __init__(self, buffer: tir.Buffer) -> None:
        super().__init__()
        self.buffer = buffer
        self.values: dict[tir.Var, tir.Expr] = {}
        self.loads: dict[tuple[tir.Expr, ...], None] = {}
        self.dims: dict[tir.Expr, int] = {}  # a loop's variable -> the dimension that it goes over

    def all_once(self) -> bool:
        """Whether the loads are of all elements, each dimension gone over by one loop or by numbers."""
        for d, n in enumerate(self.buffer.shape):
            at = {load[d] for load in self.loads}
            first = next(iter(at), None)
            if len(at) == 1 and type(first) is tir.Var and first not in self.dims:
                self.dims[first] = d
            elif not at or {static(i) for i in at} != set(range(static(n) or 0)):
                return False
        return bool(self.dims)

    @on(tir.For)
    def _for(self, loop: tir.For) -> None:
        if static(loop.extent) == 1 and static(loop.min) == 0:
            self.values[loop.loop_var] = tir.index_const(0)
        self.generic(loop)

    @on(tir.BlockRealize)
    def _realize(self, realize: tir.BlockRealize) -> None:
        block = realize.block
        self.values.update({iv.var: substitute(v, self.values) for iv, v in zip(block.iter_vars, realize.iter_values, strict=True)})
        for part in (*realize.iter_values, realize.predicate, *(m.source for m in block.match_buffers), block.init, block.body):
            if part is not None:
                self.visit(part)

    @on(tir.BufferRegion)
    def _region(self, region: tir.BufferRegion) -> None:
        if region.buffer is self.buffer:  # under another name: not known
            self.loads[(tir.index_const(-1),) * self.buffer.ndim] = None

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> None:
        if load.buffer is self.buffer:
            self.loads[tuple(substitute(i, self.values) for i in load.indices)] = None
        self.generic(load)


class _Check(Rewriter):
    """Puts the check into the loops over the indices; as a rewriter, has what is read at an index read at a position."""

    def __init__(self, indices: tir.Buffer, limits: tuple[tir.Expr, ...], negative: bool, flag: tir.Buffer, found: _Accesses) -> None:
        self.indices, self.limits, self.negative, self.flag, self.accesses = indices, limits, negative, flag, found
        self.found = tir.decl_buffer((), flag.dtype, "found", scope="local")

    def within(self, stmt: tir.Stmt) -> tir.Stmt | None:
        """The statement with the check in its nest of loops over the indices; None where there are other loops around or between."""
        if isinstance(stmt, tir.Seq):
            using = [k for k, s in enumerate(stmt.stmts) if self.uses(s)]
            inner = self.within(stmt.stmts[using[0]]) if len(using) == 1 else None
            return inner and tir.Seq((*stmt.stmts[: using[0]], inner, *stmt.stmts[using[0] + 1 :]))
        if isinstance(stmt, tir.BlockRealize):
            plain = stmt.block.init is None and type(stmt.predicate) is tir.IntImm and bool(stmt.predicate.value)
            inner = self.within(stmt.block.body) if plain else None
            return inner and stmt.replace(block=stmt.block.replace(body=inner))
        if not isinstance(stmt, tir.For) or not self.is_plain(stmt):
            return None
        if stmt.loop_var in self.accesses.dims:
            return self.nest(stmt)
        inner = self.within(stmt.body) if static(stmt.extent) == 1 else None
        return inner and stmt.replace(body=inner)

    def uses(self, node: Any) -> bool:
        return any(type(n) is tir.BufferLoad and n.buffer is self.indices for n in walk(node))

    def is_plain(self, loop: tir.For) -> bool:
        """Whether a loop goes over all there is along a dimension, and each iteration for itself."""
        d = self.accesses.dims.get(loop.loop_var)
        whole = d is None or Analyzer().prove_equal(loop.extent, self.indices.shape[d])
        return whole and static(loop.min) == 0 and loop.step is None and loop.thread is None and loop.kind in (tir.ForKind.SERIAL, tir.ForKind.PARALLEL)

    def nest(self, outer: tir.For) -> tir.Stmt | None:
        """The loops over the indices, checked."""
        loops, left = [outer], self.accesses.dims.keys() - {outer.loop_var}
        while left:
            inner = loops[-1].body
            if not isinstance(inner, tir.For) or inner.loop_var not in left or not self.is_plain(inner) or inner.kind is not tir.ForKind.SERIAL:
                return None
            loops.append(inner)
            left = left - {inner.loop_var}
        body = loops[-1].body
        loads = [tir.BufferLoad(self.indices, at) for at in self.accesses.loads]
        if any(type(n) is tir.For for n in walk(body)):
            return None  # rows: what is done with an index is far more than its check
        if self.writes_there(body):
            out: tir.Stmt = tir.If(tir.logical_and(*map(self.inside, loads)), body, self.fail())
            for loop in reversed(loops):
                out = loop.replace(body=out)
            return out
        moved = [tir.call("bitwise_xor", *self.nearest(i)) for i in loads]
        join = tir.BufferStore(self.found, reduce(lambda a, b: tir.call("bitwise_or", a, b), moved, tir.BufferLoad(self.found, ())), ())
        if len(loads) > 1:  # so much at once that fewer elements are on their way
            return self.in_pieces(outer, join, body) if outer.kind is tir.ForKind.PARALLEL and len(loops) == 1 else None
        out = tir.seq(join, self.rewrite(body))
        for loop in reversed(loops[1:]):
            out = loop.replace(body=out)
        out = self.joined(outer.replace(body=out)) if outer.kind is tir.ForKind.SERIAL else self.in_pieces(outer, out)
        some = [tir.gt(n, 0) for n in dict.fromkeys(self.limits) if (static(n) or 0) < 1]
        return tir.If(tir.logical_and(*some), out, self.fail()) if some else out

    def writes_there(self, body: tir.Stmt) -> bool:
        return any(type(n) is tir.BufferStore and any(map(self.uses, n.indices)) for n in walk(body))

    def fail(self) -> tir.Stmt:
        return tir.BufferStore(self.flag, tir.const(-1, self.flag.dtype), ())

    def joined(self, loop: tir.For, then: tir.Stmt | None = None) -> tir.Stmt:
        """The loop with what it finds: the bits of all indices that are moved, told behind it; ``then``: what is done if there are none."""
        none = tir.eq(tir.BufferLoad(self.found, ()), 0)
        tell = tir.If(tir.logical_not(none), self.fail()) if then is None else tir.If(none, then, self.fail())
        return tir.Allocate(self.found, tir.seq(tir.BufferStore(self.found, tir.const(0, self.flag.dtype), ()), loop, tell))

    def in_pieces(self, loop: tir.For, body: tir.Stmt, then: tir.Stmt | None = None) -> tir.Stmt:
        """A parallel loop, each piece of which tells what it found; ``then``: what is done for its iterations afterwards, unless it found something."""
        n, grain = loop.extent, loop.annotations.get("grain", 0)
        rows = min(PIECE, grain) if grain > 0 else 1
        piece = tir.Var("piece", INT64)
        even = static(n) is not None and static(n) % rows == 0  # type: ignore[operator]
        count = tir.index_const(rows) if even else tir.min_(rows, n - piece * rows)

        def part(body: tir.Stmt) -> tir.For:
            row = tir.Var(loop.loop_var.name, loop.loop_var.dtype)
            return tir.For(row, tir.index_const(0), count, tir.ForKind.SERIAL,
                           substitute(body, {loop.loop_var: tir.cast(piece * rows + row, row.dtype)}))

        inner = self.joined(part(body), None if then is None else part(then))
        notes = loop.annotations | ({"grain": max(1, grain // rows)} if grain else {})
        return loop.replace(loop_var=piece, extent=tir.floordiv(n + (rows - 1), rows), body=inner, annotations=notes)

    def index(self, load: tir.BufferLoad) -> tuple[tir.Expr, tir.Expr]:
        """An index and the limit of its column."""
        dtype = self.flag.dtype
        return tir.cast(load, dtype), tir.cast(limit_of(self.limits, load.indices[-1], dtype), dtype)

    def inside(self, load: tir.BufferLoad) -> tir.Expr:
        index, limit = self.index(load)
        return tir.logical_and(index >= (0 - limit if self.negative else 0), index < limit)

    def nearest(self, load: tir.BufferLoad) -> tuple[tir.Expr, tir.Expr]:
        """An index counted from the beginning, and the same if it is a position, else the last: as unsigned numbers all others are larger."""
        index, limit = self.index(load)
        start = tir.select(index < 0, index + limit, index) if self.negative else index
        unsigned = DType(f"uint{index.dtype.bits}")
        return start, tir.cast(tir.min_(tir.cast(start, unsigned), tir.cast(limit - 1, unsigned)), index.dtype)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        load = self.generic(load)
        return tir.cast(self.nearest(load)[1], load.dtype) if load.buffer is self.indices else load
