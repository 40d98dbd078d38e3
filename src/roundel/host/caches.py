# SPDX-License-Identifier: Apache-2.0
"""Caches: results that append to an input, as decoders' keys and values do, written behind what is there instead of copied.

    present = concat(past, new)   ->   present = append(past, new)   ->   for each outer index: copy rows of new behind those of past

Where ``past`` is an input whose length is symbolic and ``present`` a result, the host function gets memory for ``present`` in which
``past`` lies already, with ``room`` more rows than it needs; its caller puts it there or finds it there (csrc/cache.c). Kernels that
read ``present`` see a buffer with that many rows more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..arith import Analyzer
from ..graph.programs.appends import Append, Flow, appending
from ..graph.programs.legalize import VIEWS
from ..graph.rewriter import is_call
from ..ir import graph, tir
from ..ir.dtype import INT64, VOID
from ..ir.op import CALL_TIR
from ..ir.visit import free_vars, substitute
from .host_builder import Cache, HostBuilder, unless_empty
from .host_memory import Storage, Tensor, address, nbytes

Room = tuple[int, tir.Var]


def caches(host: HostBuilder, flow: Flow) -> dict[graph.Var, Cache]:
    """The results that can grow in place, for each call that makes them: all that reads them can read a buffer with more rows."""
    infos = list(_leaves(host.func.body.sinfo))
    found: dict[graph.Var, Cache] = {}
    if len(infos) != len(flow.results) or not all(isinstance(i, graph.TensorInfo | graph.PrimInfo | graph.ShapeInfo) for i in infos):
        return {}  # then positions say nothing
    known = {v for p in host.func.params if isinstance(p.sinfo, graph.TensorInfo) for d in p.sinfo.shape or () for v in free_vars(d)}
    names = host.func.attrs.get("output_names") or ()
    for index, ways in appending(host.func, flow, lambda call: _append(host, call)).items():
        info = infos[index]
        if info.shape is None or not all(free_vars(d) <= known for d in info.shape) or not all(_readable(host, flow, v, w[2]) for v, w in ways.items()):
            continue
        ((axis,), room) = {w[2] for w in ways.values()}, tir.Var("room", INT64, True)
        buffer = tir.decl_buffer(_with_rows(info.shape, axis, room), info.dtype, names[index] if index < len(names) else f"out_{index}")
        tensor = Tensor(buffer, Storage(nbytes(buffer), "output", home=buffer), room=(axis, room))
        found |= {v: Cache(flow.source(w[0]), axis, index, room, tensor) for v, w in ways.items()}
    return found


def held(host: HostBuilder, branch: graph.Var) -> list[Tensor | None]:
    """For each result of a branch: the cache that it is."""
    return [host.caches[leaf[0]].tensor if leaf and leaf[0] in host.caches else None for leaf in host.flow.branches.get(branch, ())]


def described(host: HostBuilder, arguments: Sequence[Any]) -> dict[str, Any]:
    """The attribute that tells callers of the host function: (input, output, axis) of each cache."""
    places = dict(zip(host.func.params, arguments, strict=True))
    return {"caches": tuple(dict.fromkeys((places[c.past], c.index, c.axis) for c in host.caches.values()))} if host.caches else {}


def rooms(host: HostBuilder) -> list[tir.Var]:
    """How many rows more than it needs each cache has."""
    return list(dict.fromkeys(c.room for c in host.caches.values()))


def _leaves(info: graph.StructInfo) -> Iterator[graph.StructInfo]:
    if isinstance(info, graph.TupleInfo):
        for field in info.fields:
            yield from _leaves(field)
    else:
        yield info


def _append(host: HostBuilder, value: Any) -> Append | None:
    axis = host.mod[value.args[0]].attrs.get("append") if is_call(value, CALL_TIR) else None
    if axis is None or not isinstance(value.args[1], graph.Tuple) or len(value.args[1].fields) != 2:
        return None
    return *value.args[1].fields, axis


def _with_rows(shape: Sequence[tir.Expr], axis: int, room: tir.Expr) -> tuple[tir.Expr, ...]:
    return tuple(d + room if k == axis else d for k, d in enumerate(shape))


def _readable(host: HostBuilder, flow: Flow, var: graph.Var, axis: int) -> bool:
    """Whether everything that reads the variable is a kernel, or a view of it that keeps its rows apart."""
    for b in flow.read.get(var, ()):
        if not isinstance(b, graph.VarBinding) or not isinstance(b.value, graph.Call):
            return False
        if b.value.op is CALL_TIR:
            if not isinstance(b.value.args[1], graph.Tuple) or not _takes_room(host.mod[b.value.args[0]], b.value.args[1].fields, var):
                return False
            continue
        inner = _axis_of_view(var.sinfo.shape, b.var.sinfo.shape, axis) if any(is_call(b.value, v) for v in VIEWS) else None
        if inner is None or any(b.var in leaf for leaf in flow.results) or not _readable(host, flow, b.var, inner):
            return False
    return True


def _takes_room(kernel: tir.PrimFunc, fields: Sequence[Any], var: graph.Var) -> bool:
    buffers = [kernel.buffers[p] for p in kernel.params if p in kernel.buffers]
    mine = [b for b, f in zip(buffers, fields, strict=False) if f is var]
    return {"view", "append"}.isdisjoint(kernel.attrs) and all(
        b.ndim == var.sinfo.ndim and not b.strides and b.elem_offset is None and b.dtype.storage_bits >= 8 for b in mine)


def _axis_of_view(before: tuple[tir.Expr, ...], after: tuple[tir.Expr, ...], axis: int) -> int | None:
    """Where the dimension is in another shape of the same elements, if what is before it and behind it stays so."""
    an = Analyzer()
    for k, dim in enumerate(after):
        if an.prove_equal(dim, before[axis]) and an.prove_equal(tir.product_of(before[:axis]), tir.product_of(after[:k])) \
                and an.prove_equal(tir.product_of(before[axis + 1:]), tir.product_of(after[k + 1:])):
            return k
    return None


def append(host: HostBuilder, cache: Cache, value: graph.Call, var: graph.Var) -> Tensor:
    """Write the new rows behind the past, which is there already."""
    (past, new), made, axis = value.args[1].fields, cache.tensor, cache.axis
    if made.shape != var.sinfo.shape:  # a branch knows more about it
        buffer = tir.decl_buffer(_with_rows(var.sinfo.shape, axis, cache.room), made.buffer.dtype, var.name)
        made = host.declare(buffer, made.storage)
        made.room = (axis, cache.room)
    past, new = past.sinfo.shape, host.tensor(host.use(new))
    outer, inner = tir.product_of(past[:axis]), tir.product_of(past[axis + 1:])
    dtype, rows = made.buffer.dtype, new.shape[axis]
    target = host.declare(tir.decl_buffer((outer, made.buffer.shape[axis], inner), dtype, f"{made.buffer.name}_rows"), made.storage)
    source = host.view(new, graph.TensorInfo((outer, rows, inner), dtype), f"{new.buffer.name}_rows")
    at, zero = tir.Var("i", INT64), tir.index_const(0)
    nbytes_of_rows = host.an.simplify(rows * inner * (dtype.storage_bits // 8))
    ends = [tir.Call("address_of", (tir.BufferLoad(b, (at, row, zero)),), address(b).dtype)
            for b, row in ((target.buffer, past[axis]), (source.buffer, zero))]
    copy = tir.Evaluate(tir.Call("copy_bytes", (*ends, nbytes_of_rows), VOID))
    host.emit(unless_empty(tir.For(at, zero, host.an.simplify(outer), tir.ForKind.SERIAL, copy), new.shape))
    return made


def view(host: HostBuilder, source: Tensor, var: graph.Var) -> Tensor:
    """A cache under another shape."""
    before, room = source.room
    axis = _axis_of_view(source.shape, var.sinfo.shape, before)
    made = host.declare(tir.decl_buffer(_with_rows(var.sinfo.shape, axis, room), source.buffer.dtype, var.name), source.storage, source.offset)
    made.room = (axis, room)
    return made


def roomy(host: HostBuilder, callee: graph.GlobalVar, rooms: Sequence[Room | None]) -> tuple[graph.GlobalVar, dict[tir.Var, tir.Expr]]:
    """A variant of the kernel whose operands have room behind their rows, as a further parameter each; and what these are."""
    name = callee.name + "_room_" + "_".join(f"{k}_{r[0]}" for k, r in enumerate(rooms) if r)
    kernel = host.mod[callee]
    if name not in host.mod:
        host.mod = host.mod.with_functions({name: _with_room(kernel, rooms)})
    variant = host.mod[name]
    given = [r[1] for r in rooms if r]
    return graph.GlobalVar(name), dict(zip(variant.params[len(kernel.params):], given, strict=True))


def _with_room(kernel: tir.PrimFunc, rooms: Sequence[Room | None]) -> tir.PrimFunc:
    places = [p for p in kernel.params if p in kernel.buffers]
    table, extra = {}, []
    for p, room in zip(places, rooms, strict=False):
        if room is None:
            continue
        buffer = kernel.buffers[p]
        extra.append(tir.Var(f"room_{buffer.name}", INT64, True))
        table[buffer] = buffer.replace(shape=_with_rows(buffer.shape, room[0], extra[-1]))
    made = substitute(kernel, {}, table)
    return made.replace(params=(*made.params, *extra))
