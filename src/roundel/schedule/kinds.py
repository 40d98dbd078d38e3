# SPDX-License-Identifier: Apache-2.0
"""How loops run, and annotations: parallel, vectorize, unroll, bind, annotate, set_scope, storage_align."""

from __future__ import annotations

import re
from typing import Any

from roundel.intrinsics.chips import is_scope
from roundel.ir import Buffer, on, tir
from roundel.ir.annotations import BUFFER_DIM_ALIGN
from roundel.ir.tir import Block, For, ForKind
from roundel.ir.visit import Substitution

from .accesses import memory_of
from .ordering import check_parallel, require_no_races
from .primitive import BlockToken, Change, Loop, Printable, Target, primitive, refuse
from .tree import Tree

THREAD_AXES = frozenset({f"{a}.{x}" for a in ("blockIdx", "threadIdx", "vthread", "clusterCtaIdx") for x in "xyz"} | {"vthread"})


def _set_kind(tree: Tree, loop: Loop, kind: ForKind, thread: str | None = None) -> Change:
    node: For = tree.nodes[loop]
    return Change(tree.edit({node: node.replace(kind=kind, thread=thread)}))


@primitive
def parallel(tree: Tree, loop: Loop) -> Change:
    """for i in range(n)   ->   for i in T.parallel(n)

    No iteration touches what another one stores, but for memory made here of which each iteration stores all that it reads, and which is not read
    after the loop: that is each iteration's own. So also for vectorize and bind.
    """
    check_parallel(tree, tree.nodes[loop], "parallelize")
    return _set_kind(tree, loop, ForKind.PARALLEL)


@primitive
def vectorize(tree: Tree, loop: Loop, reassociate: bool = False) -> Change:
    """for i in range(8)   ->   for i in T.vectorized(8)

    A reduction loop needs ``reassociate``: its terms are then added up across the vector, in another order.
    """
    check_parallel(tree, tree.nodes[loop], "vectorize", reduce_too=reassociate)
    return _set_kind(tree, loop, ForKind.VECTORIZED)


@primitive
def unroll(tree: Tree, loop: Loop) -> Change:
    """for i in range(4)   ->   for i in T.unroll(4)"""
    return _set_kind(tree, loop, ForKind.UNROLLED)


@primitive
def bind(tree: Tree, loop: Loop, thread_axis: str) -> Change:
    """for i in range(n)   ->   for i in T.thread_binding(n, thread="threadIdx.x")"""
    if thread_axis not in THREAD_AXES:
        refuse(tree, loop, f"there is no thread axis {thread_axis!r}", hint="blockIdx.x, threadIdx.y, vthread.x, ...")
    node: For = tree.nodes[loop]
    check_parallel(tree, node, "bind", reduce_too=thread_axis.startswith("threadIdx."), own=node.replace(thread=thread_axis).own_scopes)
    return _set_kind(tree, loop, ForKind.THREAD_BINDING, thread_axis)


def _annotated(tree: Tree, target: Target, annotations: Any) -> Change:
    node = tree.nodes[target]
    return Change(tree.edit({node: node.replace(annotations=annotations)}))


@primitive
def annotate(tree: Tree, block_or_loop: Target, ann_key: str, ann_val: Printable) -> Change:
    """Set an annotation of a loop or block."""
    return _annotated(tree, block_or_loop, tree.nodes[block_or_loop].annotations | {ann_key: ann_val})


@primitive
def unannotate(tree: Tree, block_or_loop: Target, ann_key: str) -> Change:
    """Remove an annotation of a loop or block."""
    node = tree.nodes[block_or_loop]
    if ann_key not in node.annotations:
        refuse(
            tree,
            block_or_loop,
            f"there is no annotation {ann_key!r} to remove",
            f"there are {', '.join(node.annotations) or 'none'}",
        )
    return _annotated(tree, block_or_loop, node.annotations.without(ann_key))


# --- buffers


def replace_buffers(node: Any, table: dict[Buffer, Buffer]) -> Any:
    """The statement, expression or function with buffers replaced, and pointers to their memory."""
    return _Replaced({old.data: new.data for old, new in table.items()}, table).rewrite(node)


class _Replaced(Substitution):
    """Blocks that do not refer to the memory stay as they are."""

    @on(Block)
    def _block(self, block: Block) -> Block:
        return block if self.variables.keys().isdisjoint(memory_of(block)) else self.generic(block)


def written_buffer(tree: Tree, block: Block, index: Any) -> Buffer:
    """The buffer that a block writes as number ``index`` (or the name of a buffer)."""
    return _one_of(tree, block, [r.buffer for r in block.writes], index, "writes")


def read_buffer(tree: Tree, block: Block, index: Any) -> Buffer:
    """The buffer that a block reads as number ``index`` (or the name of a buffer)."""
    return _one_of(tree, block, [r.buffer for r in block.reads], index, "reads")


def _one_of(tree: Tree, block: Block, found: list[Buffer], index: Any, verb: str) -> Buffer:
    if isinstance(index, str):
        named = [b for b in found if b.name == index]
        if named:
            return named[0]
    elif 0 <= int(index) < len(found):
        return found[int(index)]
    listed = ", ".join(f"{k}: {b.name}" for k, b in enumerate(found))
    refuse(tree, block, f"block {block.name} {verb} no buffer {index!r}", f"it {verb} {listed or 'none'}")


SCOPES = re.compile(
    r"(global|shared|local|warp|texture|workspace)(\.\w+)*|wmma\.(matrix_a|matrix_b|accumulator)|m16n8k8\.matrix[ABC]|amx\.tmm|metal\.simdgroup"
)


def known_scope(tree: Tree, at: Any, scope: str) -> str:
    """A scope of memory by its name; raises ScheduleError where there is none of this name."""
    if not (SCOPES.fullmatch(scope) or is_scope(scope)):
        refuse(tree, at, f"there is no storage scope {scope!r}", hint="global, shared, local, shared.dyn, wmma.accumulator, ...")
    return scope


@primitive
def set_scope(tree: Tree, block: BlockToken, buffer_index: int | str, storage_scope: str) -> Change:
    """Change the scope of a buffer that the block writes, and of views of it, e.g. to "local" (registers)."""
    buffer = written_buffer(tree, tree.nodes[block], buffer_index)
    if not any(buffer in b.alloc_buffers for b in tree.blocks()):
        refuse(tree, block, f"cannot set the scope of {buffer.name}", "it is a parameter of the function")
    known_scope(tree, block, storage_scope)
    table = {b: b.replace(scope=storage_scope, data=tir.Var(b.data.name, b.data.dtype)) for b in (buffer, *views_of(tree, buffer))}
    changed = tree.with_func(replace_buffers(tree.func, table))
    require_no_races(changed, table[buffer], f"put {buffer.name} into {storage_scope} memory")
    return Change(changed)


def views_of(tree: Tree, buffer: Buffer) -> list[Buffer]:
    """What blocks match to a buffer, or to such a view of it."""
    found: dict[Buffer, None] = {}
    for b in tree.blocks():
        found.update({m.buffer: None for m in b.match_buffers if m.source.buffer is buffer or m.source.buffer in found})
    return list(found)


@primitive
def storage_align(tree: Tree, block: BlockToken, buffer_index: int, axis: int, factor: int, offset: int) -> Change:
    """Ask that the stride of dimension ``axis`` of a written buffer is ``factor * k + offset`` (an annotation)."""
    node: Block = tree.nodes[block]
    buffer = written_buffer(tree, node, buffer_index)
    if not any(buffer in b.alloc_buffers for b in tree.blocks()):
        refuse(tree, block, f"cannot align {buffer.name}", "it is a parameter of the function, whose strides are the caller's")
    if factor <= 0 or not -buffer.ndim <= axis < buffer.ndim:
        refuse(tree, block, "storage_align needs a positive factor and an axis of the buffer")
    old = [e for e in node.annotations.get(BUFFER_DIM_ALIGN, ()) if tuple(e[:2]) != (buffer_index, axis % buffer.ndim)]
    return _annotated(tree, block, node.annotations | {BUFFER_DIM_ALIGN: (*old, (buffer_index, axis % buffer.ndim, factor, offset))})
