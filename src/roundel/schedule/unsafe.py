# SPDX-License-Identifier: Apache-2.0
"""What a schedule takes at the user's word: regions that a block is said to touch, a narrower type for an inner buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from roundel.arith import Analyzer
from roundel.ir import Buffer, Rewriter, Var, on, tir
from roundel.ir.dtype import DType
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Block, BufferLoad, BufferRegion, BufferStore, Expr, IndexMap, Range, Stmt

from .accesses import accesses_of
from .arguments import applied
from .kinds import read_buffer, written_buffer
from .primitive import BlockToken, Change, Map, primitive, refuse
from .tree import Tree


def _kind(tree: Tree, block: Block, kind: str) -> bool:
    """Whether "write" is asked for (False: "read")."""
    if kind not in ("read", "write"):
        refuse(tree, tree.realize(block.token), f"{kind!r} is no kind of access", hint="read or write")  # type: ignore[arg-type]
    return kind == "write"


@primitive
def annotate_buffer_access(tree: Tree, block: BlockToken, buffer_index: int, buf_type: str, gen_new_ranges: Map) -> Change:
    """Say what region of a buffer a block reads or writes, where its index tells too little; later primitives go by it.

        with block("B"):                            with block("B"):
            reads(A[0:32])                  ->          reads(A[v * 2 - 3:v * 2 + 3])     # lambda v: [(v * 2 - 3, v * 2 + 3)]
            B[v] = A[clip(round(v * 2.1))]              B[v] = A[clip(round(v * 2.1))]

    ``gen_new_ranges`` gives for the block's variables, per dimension, an index or a pair (begin, end). A region that provably leaves out what the
    block touches is refused; otherwise it is taken at its word.
    """
    node: Block = tree.nodes[block]
    write = _kind(tree, node, buf_type)
    buffer = (written_buffer if write else read_buffer)(tree, node, buffer_index)
    region = _region(gen_new_ranges, [iv.var for iv in node.iter_vars], buffer.ndim)
    if len(region) != buffer.ndim:
        refuse(tree, tree.realize(block), f"a region of {buffer.name} has {buffer.ndim} ranges, and not {len(region)}")
    _require_not_outside(tree, node, buffer, region, write)
    regions = list(node.writes if write else node.reads)
    regions[buffer_index] = BufferRegion(buffer, region)
    key = f"explicit_{buf_type}_region"
    told = (*(k for k in node.annotations.get(key, ()) if int(k) != buffer_index), tir.const(buffer_index, "int32"))
    named = {"writes": tuple(regions)} if write else {"reads": tuple(regions)}
    new = node.replace(**named, annotations=node.annotations | {key: told})
    recorded = {"gen_new_ranges": IndexMap(tuple(iv.var for iv in node.iter_vars), tuple(e for r in region for e in (r.min, tir.add(r.min, r.extent))))}
    return Change(tree.edit({node: new}), recorded=recorded)


def _region(given: Callable | IndexMap, variables: Sequence[Var], ndim: int) -> tuple[Range, ...]:
    """A region from a function of a block's variables: per dimension an index or two ends, or all ends in a row, as traces record it."""
    found = list(given.map_indices(tuple(variables)) if isinstance(given, IndexMap) else _listed(applied(given, variables, "gen_new_ranges")))
    if len(found) == 2 * ndim and not any(isinstance(x, tuple | list) for x in found):
        found = list(zip(found[::2], found[1::2]))
    return tuple(map(_range, found))


def _listed(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else (found,)


def _range(given: Any) -> Range:
    if not isinstance(given, tuple | list):
        i = tir.as_index(given)
        return Range.point(i)
    if len(given) != 2:
        raise ScheduleError(f"{given!r} is no range", hint="an index, or a pair (begin, end)")
    low, high = map(tir.as_index, given)
    return Range(low, Analyzer().simplify(tir.sub(high, low)))


def _require_not_outside(tree: Tree, block: Block, buffer: Buffer, region: tuple[Range, ...], write: bool) -> None:
    an = tree.analyzer(block, inside=True)
    for a in accesses_of(block):
        if a.buffer is not buffer or a.store is not write:
            continue
        for v, r in a.inside.items():
            an.bind(v, r)
        for have, told in zip(a.region, region):
            below, above = tir.lt(have.min, told.min), tir.gt(tir.add(have.min, have.extent), tir.add(told.min, told.extent))
            if an.prove(below) or an.prove(above):
                why = f"index {have.min.script()} is outside of it"
                refuse(tree, tree.realize(block.token), f"block {block.name} touches more of {buffer.name} than this region", why)  # type: ignore[arg-type]


@primitive
def unsafe_hide_buffer_access(tree: Tree, block: BlockToken, buf_type: str, buf_index_array: Sequence[int]) -> Change:
    """Leave buffers out of what a block is said to read or write, so that ``tensorize`` may match it. Nothing is checked.

    reads(A[v], I[v])    ->    reads(A[v])                # unsafe_hide_buffer_access(block, "read", [1])
    """
    node: Block = tree.nodes[block]
    write = _kind(tree, node, buf_type)
    regions = node.writes if write else node.reads
    if any(not 0 <= int(k) < len(regions) for k in buf_index_array):
        refuse(tree, tree.realize(block), f"block {node.name} {buf_type}s {len(regions)} buffers", f"asked for {list(buf_index_array)}")
    kept = tuple(r for k, r in enumerate(regions) if k not in set(map(int, buf_index_array)))
    return Change(tree.edit({node: node.replace(**({"writes": kept} if write else {"reads": kept}))}))


@primitive
def unsafe_set_dtype(tree: Tree, block: BlockToken, buffer_index: int, dtype: str) -> Change:
    """Hold an inner buffer in another type; values are cast where they are stored and where they are loaded, and lose what the type cannot hold.

    B = alloc((128,), "float32")          B = alloc((128,), "float16")
    B[v] = A[v] * 2.0               ->    B[v] = cast("float16", A[v] * 2.0)
    C[v] = B[v] + 1.0                     C[v] = cast("float32", B[v]) + 1.0
    """
    node: Block = tree.nodes[block]
    if int(buffer_index) < 0:
        refuse(tree, tree.realize(block), f"block {node.name} writes no buffer {buffer_index}")
    buffer = written_buffer(tree, node, buffer_index)
    if not any(buffer in b.alloc_buffers for b in tree.blocks()):
        refuse(tree, tree.realize(block), f"cannot set the type of {buffer.name}", "it is a parameter of the function")
    return Change(tree.with_func(_SetType(buffer, DType(dtype)).rewrite(tree.func)))


class _SetType(Rewriter):
    """A buffer, and the views of it, in another type."""

    def __init__(self, buffer: Buffer, dtype: DType) -> None:
        self.dtype = dtype
        self.table: dict[Buffer, Buffer] = {}
        self.add(buffer)

    def add(self, buffer: Buffer) -> None:
        self.table[buffer] = buffer.replace(dtype=self.dtype, data=Var(buffer.data.name, buffer.data.dtype))

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.table.get(buffer, buffer)

    @on(Block)
    def _block(self, block: Block) -> Stmt:
        for m in block.match_buffers:
            if m.source.buffer in self.table:
                self.add(m.buffer)
        return self.generic(block)

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        if load.buffer not in self.table:
            return self.generic(load)
        return tir.Cast(load.dtype, BufferLoad(self.table[load.buffer], tuple(map(self.rewrite, load.indices))))

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        if store.buffer not in self.table:
            return self.generic(store)
        value = tir.Cast(self.dtype, self.rewrite(store.value))
        return store.replace(buffer=self.table[store.buffer], value=value, indices=tuple(map(self.rewrite, store.indices)))
