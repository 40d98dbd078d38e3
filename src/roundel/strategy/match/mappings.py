# SPDX-License-Identifier: Apache-2.0
"""Which axes of a program may be which axes of an instruction: every way in which a block computes what a TensorIntrin describes.

    program       Y[n, o, h, w] += X[n, c, h + i, w + j] * W[o, c, i, j]
    instruction   C[i] += A[k] * B[i, k]
    mappings      A = X, B = W, i = (o), k = (c) or (i) or (j) or (c, i) or ...

The expressions are compared first: which access of the program plays which operand's part, with the types and conversions that the instruction
has (of sums and products the operands may be exchanged). Then an axis of the program may be one of the instruction where it moves just those
operands that the instruction's axis moves, and is summed over where that is. Several axes may be one together; what is left runs in loops around.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

from ...intrinsics import TensorIntrin
from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars
from .accesses import Access, BlockInfo

Roles = dict[tir.Buffer, Access]


@dataclass(frozen=True)
class AxisMap:
    """``roles``: for each buffer of the description the access of the program; ``axes``: for each axis of the description the positions of the
    program's axes that it stands for, in their order."""

    intrin: TensorIntrin
    roles: Mapping[tir.Buffer, Access]
    axes: tuple[tuple[int, ...], ...]

    def operand(self, name: str) -> Access:
        """What plays the part of the operand of this name."""
        return next(access for buffer, access in self.roles.items() if buffer.name == name)

    def outer(self, count: int) -> tuple[int, ...]:
        """Those of ``count`` axes of the program that run in loops around the instruction."""
        inside = {p for axes in self.axes for p in axes}
        return tuple(p for p in range(count) if p not in inside)


def mappings(info: BlockInfo, intrin: TensorIntrin) -> Iterator[AxisMap]:
    """Every mapping of a block with one store, without its init, onto an instruction."""
    what = described(intrin)
    if what is None or type(info.block.body) is not tir.BufferStore:
        return
    places = info.block.iter_vars
    for roles in _roles(what.store, info.block.body):
        found = []
        moved = [{b for b, a in roles.items() if _moves(a.indices, place.var)} for place in places]
        for axis in what.axes:
            wanted = {b for b in roles if _moves(what.indices[b], axis.var)}
            fitting = [p for p, place in enumerate(places) if place.kind is axis.kind and moved[p] == wanted]
            found.append([c for n in range(1, len(fitting) + 1) for c in combinations(fitting, n)])
        for axes in product(*found):
            if len({p for a in axes for p in a}) == sum(map(len, axes)):
                yield AxisMap(intrin, roles, axes)


@dataclass(frozen=True)
class Described:
    """What the description of an instruction stores, its axes, and the indices of each of its buffers."""

    store: tir.BufferStore
    axes: tuple[tir.IterVar, ...]
    indices: Mapping[tir.Buffer, tuple[tir.Expr, ...]]


@cache
def described(intrin: TensorIntrin) -> Described | None:
    """The description as one store; None where it is more than that."""
    stmt: Any = intrin.desc.root_block.body if intrin.desc.root_block is not None else None
    while type(stmt) is tir.For:
        stmt = stmt.body
    if type(stmt) is not tir.BlockRealize or type(stmt.block.body) is not tir.BufferStore:
        return None
    info = BlockInfo(stmt.block)
    indices = {a.buffer: a.indices for a in info.accesses}
    return Described(stmt.block.body, stmt.block.iter_vars, indices)


def _roles(want: tir.BufferStore, have: tir.BufferStore) -> list[Roles]:
    """Every assignment of accesses to the buffers of a description under which the stores compute the same."""
    if want.buffer.dtype is not have.buffer.dtype:
        return []
    start = {want.buffer: Access(have.buffer, have.indices, True)}
    out: list[Roles] = []
    for roles in _same(want.value, have.value, start):
        if roles not in out:
            out.append(roles)
    return out


def _same(want: tir.Expr, have: tir.Expr, roles: Roles) -> Iterator[Roles]:
    if type(want) is not type(have) or want.dtype is not have.dtype:
        return
    if isinstance(want, tir.BufferLoad):
        assert isinstance(have, tir.BufferLoad)
        known = roles.get(want.buffer)
        if known is None:
            if all(a.buffer is not have.buffer or not a.is_store for a in roles.values()):
                yield {**roles, want.buffer: Access(have.buffer, have.indices, False)}
        elif known.buffer is have.buffer and known.indices == have.indices:
            yield roles
        return
    parts = _parts(want), _parts(have)
    if any(getattr(want, f) != getattr(have, f) for f in want._fields if f not in want._children and f not in want._hidden) or len(parts[0]) != len(parts[1]):
        return
    yield from _each(*parts, roles)
    if type(want) in (tir.Add, tir.Mul, tir.Max, tir.Min):
        yield from _each(parts[0], parts[1][::-1], roles)


def _each(wants: Sequence[tir.Expr], haves: Sequence[tir.Expr], roles: Roles) -> Iterator[Roles]:
    if not wants:
        yield roles
        return
    for found in _same(wants[0], haves[0], roles):
        yield from _each(wants[1:], haves[1:], found)


def _parts(e: tir.Expr) -> list[tir.Expr]:
    out: list[tir.Expr] = []
    for name in e._children:
        value = getattr(e, name)
        out += value if isinstance(value, tuple) else [value]
    return out


def _moves(indices: Sequence[tir.Expr], var: tir.Var) -> bool:
    return any(var in free_vars(i) for i in indices)
