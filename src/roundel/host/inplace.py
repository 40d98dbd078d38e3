# SPDX-License-Identifier: Apache-2.0
"""In-place kernel calls: a kernel whose operand dies writes its result over it (one buffer for both), where every element of the
result is computed from the same element of the operand, or all of them are copied first and some changed then (scatters).

    add(x, y, out)   ->   add_inplace(x, y), where x is read and written

Loop variables that an iteration changes this way, or makes anew when they are not needed any more, stay where they are.

The variant is an ordinary tensor program with one parameter less, so nothing in code generation has to know that two
parameters are the same memory.
"""

from __future__ import annotations

from ..ir import graph, tir
from ..ir.module import IRModule
from ..ir.op import FuseKind
from ..ir.visit import Rewriter, on, substitute, walk
from .host_builder import HostBuilder, InPlace
from .host_memory import Storage, Tensor


def overwrite_operands(host: HostBuilder) -> tuple[IRModule, dict[tir.Call, tir.Call]]:
    """Merge results with operands that die at their call, where the kernel allows it: the module with the kernels' variants,
    and the calls that take their places."""
    mod, calls = host.mod, {}
    for site in host.inplace:
        name = site.call.op.name
        kernel = host.mod[name]
        out = kernel.params[len(site.tensors) - 1]
        for position, operand in enumerate(site.tensors[:-1]):
            held = position == site.held
            if not (held or (site.held is None and _dies(host, site, operand) and can_overwrite(kernel, kernel.params[position], out))):
                continue
            variant = f"{name}_over_{position}"
            if variant not in mod:
                mod = mod.with_functions({variant: overwriting(kernel, kernel.params[position], out)})
            args = tuple(a for p, a in zip(kernel.params, site.call.args, strict=True) if p is not out)
            calls[site.call] = tir.Call(graph.GlobalVar(variant), args, site.call.dtype)
            if not held:
                _merge(operand.storage.settled(), site.tensors[-1].storage.settled())
            break
    return mod, calls


def keep_in_place(host: HostBuilder, held: Storage, value: Tensor) -> None:
    """Make the value that a loop's body gives for a variable where the variable is held, if what is there is not needed any more, or
    by the kernel that makes the value only."""
    made = value.storage.settled()
    if made.kind != "arena" or made.depth <= held.depth or made.region is not held.region or value.offset is not None \
            or not host.an.prove_equal(made.nbytes, held.nbytes):
        return
    if held.last >= made.first:
        site = next((s for s in reversed(host.inplace) if s.tensors[-1].storage.settled() is made and s.clock == made.first == held.last), None)
        if site is None:
            return
        found = [k for k, t in enumerate(site.tensors[:-1]) if t.storage.settled() is held]
        kernel = host.mod[site.call.op.name]
        if len(found) != 1 or site.tensors[found[0]].offset is not None or not can_overwrite(
                kernel, kernel.params[found[0]], kernel.params[len(site.tensors) - 1]):
            return
        site.held = found[0]
    made.merged = held


def _dies(host: HostBuilder, site: InPlace, operand: Tensor) -> bool:
    """Whether the operand's memory is not needed after the call and may become the result's."""
    result = site.tensors[-1]
    ours, theirs = operand.storage.settled(), result.storage.settled()
    if ours is theirs or ours.kind != "arena" or ours.last != site.clock or theirs.first != site.clock:
        return False
    if operand.offset is not None or theirs.kind not in ("arena", "output") or ours.depth != theirs.depth:
        return False
    if theirs.makes is not None and (ours.region is not theirs.region or ours.home is None):
        return False
    if sum(t.storage.settled() is ours for t in site.tensors[:-1]) > 1 or (theirs.kind == "arena" and theirs.region is not ours.region):
        return False
    return host.an.prove_equal(ours.nbytes, theirs.nbytes)


def _merge(ours: Storage, theirs: Storage) -> None:
    """``theirs`` is put where ``ours`` lies; when that is an output, both are."""
    theirs.merged = ours
    ours.last = max(ours.last, theirs.last)
    if theirs.kind == "output":
        ours.kind, ours.makes = "output", theirs.makes
        if theirs.makes is None:
            ours.home = theirs.home


def can_overwrite(kernel: tir.PrimFunc, operand: tir.Var, result: tir.Var) -> bool:
    """Whether every element of the result is computed from the same element of the operand, read once and before it is written, or
    the operand is copied before elements change."""
    kind = kernel.attrs.get("fuse_kind", FuseKind.OPAQUE)
    if FuseKind.INJECTIVE < kind < FuseKind.OPAQUE or kernel.root_block is None:
        return False
    source, target = kernel.buffers[operand], kernel.buffers[result]
    if source.shape != target.shape or source.dtype is not target.dtype or source.strides or target.strides \
            or source.elem_offset is not None or target.elem_offset is not None:
        return False
    if kind == FuseKind.OPAQUE:
        return _copies_first(kernel, source, target)
    reads, writes = set(), set()
    for n in walk(kernel.body):
        if isinstance(n, tir.MatchBufferRegion) and n.source.buffer in (source, target):
            return False
        if isinstance(n, tir.BufferLoad) and n.buffer is target:
            return False
        if isinstance(n, tir.BufferLoad) and n.buffer is source:
            reads.add(n.indices)
        elif isinstance(n, tir.BufferStore) and n.buffer is target:
            writes.add(n.indices)
        elif isinstance(n, tir.Call) and n.op in ("address_of", "access_ptr", "tvm_access_ptr"):
            return False
    return len(writes) == 1 and reads <= writes


def _copies_first(kernel: tir.PrimFunc, source: tir.Buffer, target: tir.Buffer) -> bool:
    """Whether the kernel is one block that copies elements and reads nothing more of ``source``."""
    blocks = [n for n in walk(kernel.body) if isinstance(n, tir.Block) and n is not kernel.root_block]
    if len(blocks) != 1 or type(blocks[0].body) is not tir.Seq or blocks[0].match_buffers or blocks[0].init is not None:
        return False
    first, *rest = blocks[0].body.stmts
    store = _innermost(first)
    loads = [n for n in walk(kernel.body) if isinstance(n, tir.BufferLoad) and n.buffer is source]
    return bool(rest) and type(store) is tir.BufferStore and store.buffer is target and type(store.value) is tir.BufferLoad \
        and store.value.indices == store.indices and store.predicate is None and all(n is store.value for n in loads) and bool(loads)


def _innermost(stmt: tir.Stmt) -> tir.Stmt:
    while type(stmt) is tir.For:
        stmt = stmt.body
    return stmt


class _DropCopies(Rewriter):
    """Without statements that copy elements to themselves."""

    @on(tir.Seq)
    def _seq(self, s: tir.Seq) -> tir.Stmt:
        return tir.seq(*(self.rewrite(c) for c in s.stmts if not _copies_itself(_innermost(c))))


def _copies_itself(s: tir.Stmt) -> bool:
    return type(s) is tir.BufferStore and type(s.value) is tir.BufferLoad and s.value.buffer is s.buffer and s.value.indices == s.indices


def overwriting(kernel: tir.PrimFunc, operand: tir.Var, result: tir.Var) -> tir.PrimFunc:
    """The kernel with ``operand`` read and written, and without the parameter ``result``."""
    source, target = kernel.buffers[operand], kernel.buffers[result]
    made = substitute(kernel, {target.data: source.data}, {target: source, source: source})
    made = made.replace(body=_DropCopies().rewrite(made.body))
    return made.replace(params=tuple(p for p in made.params if p is not result),
                        buffer_map=tuple((p, b) for p, b in made.buffer_map if p is not result))


class ReplaceCalls(Rewriter):
    """Kernel calls by what they became."""

    def __init__(self, calls: dict[tir.Call, tir.Call]) -> None:
        self.calls = calls

    @on(tir.Evaluate)
    def _evaluate(self, s: tir.Evaluate) -> tir.Stmt:
        return s.replace(value=self.calls.get(s.value, s.value))
