# SPDX-License-Identifier: Apache-2.0
"""The structure of a program's blocks, and how far each of their accesses moves in memory along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from ...arith import Analyzer
from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars, substitute, walk, walk_data
from ...target import Target

MOST_STRIDE = 4  # of elements that are loaded in vectors


@dataclass(frozen=True)
class Access:
    """A load or store of a block. ``stride(v)`` is in elements of the (compact) buffer."""

    buffer: tir.Buffer
    indices: tuple[tir.Expr, ...]
    is_store: bool

    @cached_property
    def offset(self) -> tir.Expr:
        """The element's position as one expression."""
        strides = self.buffer.strides or row_major(self.buffer.shape)
        return tir.sum_of([i * s for i, s in zip(self.indices, strides, strict=True)])

    def stride(self, var: tir.Var) -> int | tir.Expr | None:
        """How far the element moves when ``var`` grows by one: a number, an expression of sizes, or None where it varies."""
        if var not in self._strides:
            self._strides[var] = self._stride(var)
        return self._strides[var]

    @cached_property
    def _strides(self) -> dict[tir.Var, int | tir.Expr | None]:
        return {}

    def _stride(self, var: tir.Var) -> int | tir.Expr | None:
        moving = [(i, s) for i, s in zip(self.indices, self.buffer.strides or row_major(self.buffer.shape), strict=True) if var in free_vars(i)]
        if not moving:
            return 0
        offset = tir.sum_of([i * s for i, s in moving])  # what is looked up beside it stays the same
        step = Analyzer().simplify(substitute(offset, {var: var + 1}) - offset)
        if isinstance(step, tir.IntImm):
            return step.value
        return None if any(not v.size for v in free_vars(step)) or not step.is_index else step

    def steps(self, var: tir.Var, size: int) -> bool:
        """Whether the stride along ``var`` is this number."""
        stride = self.stride(var)
        return isinstance(stride, int) and stride == size

    def alike(self, var: tir.Var) -> int:
        """How many neighbours along ``var``, from a multiple of that number on, share one element, as the channels of a group share what it reads: 1 if
        each has its own, 0 if all share it."""
        return math.gcd(*(_alike(i, var) for i in self.indices))

    def in_vectors(self, var: tir.Var, lanes: int) -> bool:
        """Whether neighbours along ``var`` are one element, lie side by side or, where they are loaded, so near that a few vectors hold them."""
        stride = self.stride(var)
        if self.is_store:
            return isinstance(stride, int) and stride in (0, 1)
        return abs(stride) <= MOST_STRIDE if isinstance(stride, int) else stride is None and self._is_near(var, lanes)

    def _is_near(self, var: tir.Var, lanes: int) -> bool:
        """Whether a quotient or remainder in the last index moves lanes by numbers, and not far."""
        if any(var in free_vars(i) for i in self.indices[:-1]) or self.buffer.strides or not self.indices[-1].is_index:
            return False
        an, index, group = Analyzer(), self.indices[-1], tir.Var("group", var.dtype)
        first = substitute(index, {var: group * lanes})
        steps = [an.simplify(substitute(index, {var: group * lanes + k}) - first) for k in range(lanes)]
        return all(isinstance(x, tir.IntImm) and abs(x.value) < MOST_STRIDE * lanes for x in steps)


def row_major(shape: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
    """Strides of a compact tensor."""
    out: list[tir.Expr] = []
    step: tir.Expr = tir.index_const(1)
    for n in reversed(shape):
        out.append(step)
        step = step * n
    return tuple(reversed(out))


def _alike(e: tir.Expr, var: tir.Var) -> int:
    """The same of an index."""
    if var not in free_vars(e):
        return 0
    if type(e) is tir.FloorDiv and isinstance(e.b, tir.IntImm):
        return _alike(e.a, var) * e.b.value
    return math.gcd(_alike(e.a, var), _alike(e.b, var)) if type(e) in (tir.Add, tir.Sub, tir.Mul) else 1


@dataclass(frozen=True)
class BlockInfo:
    """A block with its accesses."""

    block: tir.Block

    @property
    def name(self) -> str:
        """The block's name."""
        return self.block.name

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Loads, then stores, of the body (each different one once)."""
        found: dict[Any, Access] = {}
        for node in walk_data(self.block.body):
            if type(node) is tir.BufferLoad:
                found.setdefault(node, Access(node.buffer, node.indices, False))
            elif type(node) is tir.BufferStore:
                found[node] = Access(node.buffer, node.indices, True)
        return tuple(found.values())

    @cached_property
    def stores(self) -> tuple[Access, ...]:
        """What the body writes."""
        return tuple(a for a in self.accesses if a.is_store)

    @cached_property
    def loads(self) -> tuple[Access, ...]:
        """Loads of other buffers than those the block writes."""
        written = {a.buffer for a in self.stores}
        return tuple(a for a in self.accesses if not a.is_store and a.buffer not in written)

    @cached_property
    def spatial(self) -> tuple[tir.IterVar, ...]:
        """The axes of the result."""
        return tuple(i for i in self.block.iter_vars if i.kind is tir.IterKind.SPATIAL)

    @cached_property
    def reduce(self) -> tuple[tir.IterVar, ...]:
        """The axes that are summed over."""
        return tuple(i for i in self.block.iter_vars if i.kind is tir.IterKind.REDUCE)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the block is a loop nest over spatial and reduce axes with one store, the kind that rules schedule."""
        kinds = {i.kind for i in self.block.iter_vars}
        return (
            kinds <= {tir.IterKind.SPATIAL, tir.IterKind.REDUCE}
            and len(self.stores) == 1
            and not self.block.alloc_buffers
            and isinstance(self.block.body, tir.BufferStore)
        )

    @cached_property
    def cost(self) -> float:
        """Rough cycles per iteration of a scalar: loads and stores count half, elementary functions ten."""
        total = 0.5 * len(self.accesses)
        for node in walk(self.block.body):
            total += (
                _COST.get(node.op, 1.0)
                if type(node) is tir.Call and isinstance(node.op, str)
                else 0.25 * isinstance(node, tir.BinaryOp)
            )
        return total


_COST = {
    name: 10.0
    for name in (
        "exp",
        "exp_flushed",
        "log",
        "tanh",
        "erf",
        "sigmoid",
        "pow",
        "sin",
        "cos",
        "tan",
        "exp2",
        "log2",
        "log1p",
        "expm1",
        "sinh",
        "cosh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "atan2",
        "exp10",
        "log10",
        "erfc",
    )
}


def blocks_of(func: tir.PrimFunc) -> list[BlockInfo]:
    """The blocks directly under the root, in order."""
    root = func.root_block
    return [info_of(b) for b in _children(root.body)] if root is not None else []


@lru_cache(maxsize=1024)
def info_of(block: tir.Block) -> BlockInfo:
    """The block with its accesses; the same object, with what is known of it, as long as no step has changed the block."""
    return BlockInfo(block)


def _children(stmt: tir.Stmt) -> Iterator[tir.Block]:
    stack = [stmt]
    while stack:
        node = stack.pop()
        if type(node) is tir.BlockRealize:
            yield node.block
            continue
        stack += reversed(_statements(node))


def _statements(node: tir.Stmt) -> list[tir.Stmt]:
    return [c for c in node._below() if isinstance(c, tir.Stmt)]


def extent_of(axis: tir.IterVar) -> int | None:
    """The extent of an axis where it is a number."""
    return axis.dom.extent.value if isinstance(axis.dom.extent, tir.IntImm) else None


def product(extents: list[int | None], unknown: int) -> int:
    """The product of extents, unknown ones taken as ``unknown``."""
    out = 1
    for n in extents:
        out *= unknown if n is None else n
    return out


def conditional(info: BlockInfo) -> frozenset[tir.Var]:
    """The variables in conditions of the block's value."""
    return frozenset().union(*(free_vars(n.condition) for n in walk(info.block.body) if type(n) in (tir.IfThenElse, tir.Select)))


def vector_lanes(info: BlockInfo, target: Target) -> int:
    """Elements of a vector register, for the widest type that the block touches."""
    return lanes_of(info.accesses, target)


def lanes_of(accesses: Sequence[Access], target: Target) -> int:
    """Elements of a vector register, for the widest type of these accesses."""
    bits = max(max(a.buffer.dtype.storage_bits for a in accesses), 8)
    return max(target.vector_bytes * 8 // bits, 1) if bits <= 64 else 1
