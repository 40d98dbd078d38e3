# SPDX-License-Identifier: Apache-2.0
"""Memory of a host function: what holds each tensor, the sizes that are known only while it runs, and where all of it lies.

Three classes (design decision 13). What follows from the shapes of the inputs, exactly or as an upper bound, lies in the
arena. A size that depends on data opens a *region*: memory allocated where the size becomes known, planned like the arena,
for all tensors whose size depends on it. Results of branches and loops whose shape differs live on the heap (``slots``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from ..arith import Analyzer
from ..arith.magnitude import magnitude
from ..ir import tir
from ..ir.annotations import ARENA
from ..ir.attrs import Attrs
from ..ir.dataclass import dataclass
from ..ir.dtype import HANDLE, DType
from ..ir.errors import LowerError
from ..ir.visit import Rewriter, free_vars, on, substitute
from .memory_plan import ALIGNMENT, Request, plan

LARGEST = 1 << 46
"""Bytes that a tensor whose shape depends on data may have: products of such sizes must not wrap."""

Entry = tir.Stmt | Callable[[tir.Stmt], tir.Stmt]


@dataclass(eq=False)
class Region:
    """Memory for the tensors of one scope of sizes: the arena, or (``entries`` given) what is allocated in that scope, in front
    of the first tensor that needs it."""

    entries: list[Entry] | None = None
    buffer: tir.Buffer = field(default_factory=lambda: tir.decl_buffer((0,), "uint8", "memory"))
    used: bool = False

    def claim(self) -> None:
        """Something lies here from now on."""
        if self.entries is not None and not self.used:
            self.entries.append(lambda body: tir.Allocate(self.buffer, body))
        self.used = True


@dataclass(eq=False)
class Storage:
    """Memory for tensors, needed from step ``first`` to step ``last``.

    ``kind``: "arena" (of ``region``), "input", "output", "constant", "heap". ``home`` is the buffer whose data holds it (all but
    arena); ``merged`` another storage that stands for this one; ``makes`` what allocates a heap or late output, where its first
    tensor is declared.
    """

    nbytes: tir.Expr
    kind: str
    first: int = 0
    last: int = 0
    region: Region | None = None
    home: tir.Buffer | None = None
    merged: Storage | None = None
    makes: tir.Expr | None = None
    depth: int = 0

    def settled(self) -> Storage:
        """The storage that finally holds what was put here."""
        s = self
        while s.merged is not None:
            s = s.merged
        return s


@dataclass(eq=False)
class Tensor:
    """A buffer over a storage, ``offset`` bytes from its start. Where it lies is settled when all lifetimes are known.
    ``room``: (axis, rows) of a cache, where the buffer has that many rows more than the tensor."""

    buffer: tir.Buffer
    storage: Storage
    offset: tir.Expr | None = None
    room: tuple[int, tir.Var] | None = None

    @property
    def shape(self) -> tuple[tir.Expr, ...]:
        """The tensor's own shape."""
        shape = self.buffer.shape
        return shape if self.room is None else substitute_shape(shape, self.room[1], tir.index_const(0))


@dataclass(eq=False)
class Opaque(Tensor):
    """A number that stands for an object, which only packed functions look into (`roundel.runtime.objects`)."""


class Sizes:
    """Shape variables that are bound inside the function: their exact value or upper bound in terms of the inputs' shapes, or
    the region that they open."""

    def __init__(self, root: Region) -> None:
        self.root = root
        self.exact: dict[tir.Var, tir.Expr] = {}
        self.upper: dict[tir.Var, tir.Expr] = {}
        self.regions: dict[tir.Var, Region] = {}
        self.order: list[Region] = [root]
        self.an = Analyzer()

    def resolve(self, e: tir.Expr) -> tir.Expr:
        """The expression with variables of known value replaced."""
        return self.an.simplify(substitute(e, self.exact)) if free_vars(e) & self.exact.keys() else e

    def late(self, e: tir.Expr) -> frozenset[tir.Var]:
        """The variables in it whose value only the run can tell."""
        return frozenset(v for v in free_vars(self.resolve(e)) if v in self.regions)

    def bound(self, e: tir.Expr) -> tuple[tir.Expr, Region]:
        """What ``e`` is at most, and the region where that can be said: the arena's wherever possible."""
        e = self.resolve(e)
        late = self.late(e)
        if not late:
            return e, self.root
        bounded = {v: tir.Range.of(self.upper[v] + 1) for v in late if v in self.upper}
        if bounded:
            top = self.an.int_set(e, bounded).max
            if top is not None and not free_vars(top) & bounded.keys():
                e, late = self.an.simplify(top), late - bounded.keys()
        if not late:
            return e, self.root
        return e, max((self.regions[v] for v in late), key=self.order.index)

    def open(self, entries: list[Entry], variables: Iterable[tir.Var], uppers: dict[tir.Var, tir.Expr]) -> None:
        """A region in this scope for variables whose values become known now."""
        region = Region(entries)
        self.order.append(region)
        for v in variables:
            self.regions[v] = region
            if v in uppers and not self.late(uppers[v]):
                self.upper[v] = self.resolve(uppers[v])


def close(entries: list[Entry]) -> tir.Stmt:
    """Statements in order; an entry that is callable wraps all that follow it (declarations, lets)."""
    body: list[tir.Stmt] = []
    for entry in reversed(entries):
        if isinstance(entry, tir.Stmt):
            body.append(entry)
        else:
            body = [entry(tir.seq(*reversed(body)))]
    return tir.seq(*reversed(body))


def declaration(tensor: Tensor) -> Callable[[tir.Stmt], tir.Stmt]:
    """The entry that declares a tensor, and allocates its memory where it is the first in a storage that is made here."""

    def wrap(body: tir.Stmt) -> tir.Stmt:
        storage, body = tensor.storage.settled(), tir.DeclBuffer(tensor.buffer, body)
        if storage.makes is not None and storage.home is tensor.buffer:
            return tir.Let(tensor.buffer.data, storage.makes, body)
        return body

    return wrap


def place(body: tir.Stmt, tensors: list[Tensor], regions: list[Region]) -> tir.Stmt:
    """Settle where every storage lies, move the buffers there and allocate the arena (the first region)."""
    table: dict[tir.Buffer, tir.Buffer] = {}
    units: dict[Storage, tir.Expr] = {}
    inner: dict[Region, dict[Storage, None]] = {r: {} for r in regions}
    for t in tensors:
        s = t.storage.settled()
        if s.kind == "arena":
            assert s.region is not None
            inner[s.region][s] = None
    memory = {}
    for region, storages in inner.items():
        made = plan([Request(_at_least_zero(s.nbytes), s.first, s.last) for s in storages])
        units.update(zip(storages, made.units, strict=True))
        memory[region] = table[region.buffer] = tir.decl_buffer((made.total,), "uint8", "arena" if region.entries is None else "heap")
    for t in tensors:
        table[t.buffer] = _placed(t, t.storage.settled(), units, memory)
    body, root = substitute(body, {}, table), regions[0]
    if regions[1:]:
        body = _Addressable({memory[r] for r in regions[1:]}).rewrite(body)
    return tir.Allocate(memory[root], body, Attrs({ARENA: True})) if inner[root] else body


def _at_least_zero(size: tir.Expr) -> tir.Expr:
    """A size as memory: a branch that is not taken may have tensors whose sizes are negative."""
    return size if Analyzer().prove(tir.ge(size, 0)) else tir.max_(size, 0)


class _Addressable(Rewriter):
    """Has the size of each region checked before it is allocated (that of the arena is computed, and checked, where the model is entered)."""

    def __init__(self, memory: set[tir.Buffer]) -> None:
        self.memory = memory

    @on(tir.Allocate)
    def _region(self, region: tir.Allocate) -> tir.Stmt:
        inside = region.replace(body=self.rewrite(region.body))
        return _addressable(inside) if region.buffer in self.memory else inside


def _addressable(region: tir.Allocate) -> tir.Stmt:
    """Memory after a check that its size, a product of sizes that a model or its inputs choose, does not wrap around: kernels would write
    outside of it. Raises LowerError where that is known at compile time."""
    size = region.buffer.shape[0]
    if isinstance(size, tir.IntImm):
        if size.value > LARGEST:
            raise LowerError(f"a run needs {size.value} bytes of memory", why=f"the most is {LARGEST}")
        return region
    limit = tir.const(float(LARGEST), "float64")
    return tir.seq(tir.Assert(tir.le(magnitude(size), limit), f"a run with these inputs needs more than {LARGEST} bytes of memory"), region)


def _placed(t: Tensor, s: Storage, units: dict[Storage, tir.Expr], memory: dict[Region, tir.Buffer]) -> tir.Buffer:
    if s.kind != "arena":
        if s.home is t.buffer:
            return t.buffer
        assert s.home is not None
        offset = None if t.offset is None else elements(t.offset, t.buffer.dtype)
        return t.buffer.replace(data=s.home.data, elem_offset=offset)
    assert s.region is not None
    dtype = t.buffer.dtype
    start = units[s] * (ALIGNMENT * 8 // dtype.storage_bits)
    return t.buffer.replace(data=memory[s.region].data, elem_offset=start if t.offset is None else start + elements(t.offset, dtype))


def substitute_shape(shape: tuple[tir.Expr, ...], var: tir.Var, value: tir.Expr) -> tuple[tir.Expr, ...]:
    """The shape where ``var`` has a value."""
    an = Analyzer()
    return tuple(an.simplify(substitute(d, {var: value})) if var in free_vars(d) else d for d in shape)


def nbytes(buffer: tir.Buffer) -> tir.Expr:
    """Bytes of a compact buffer (two 4-bit elements a byte)."""
    bits = buffer.dtype.storage_bits
    count: tir.Expr = tir.product_of(buffer.shape)
    return count * (bits // 8) if bits >= 8 else tir.ceildiv(count, 8 // bits)


def elements(size: tir.Expr, dtype: DType) -> tir.Expr:
    """A number of bytes as a number of elements."""
    bits = dtype.storage_bits
    return Analyzer().simplify(tir.floordiv(size, bits // 8) if bits >= 8 else size * (8 // bits))


def address(buffer: tir.Buffer) -> tir.Expr:
    """Pointer to the first element."""
    return tir.Call("address_of", (tir.BufferLoad(buffer, (tir.index_const(0),) * buffer.ndim),), HANDLE)


def fits(buffer: tir.Buffer, name: str, late: Callable[[tir.Expr], object]) -> list[tir.Stmt]:
    """Checks of a shape that depends on data: no dimension is negative and the bytes are a number that does not wrap."""
    checks: list[tir.Stmt] = []
    an = Analyzer()
    for k, dim in enumerate(buffer.shape):
        if late(dim) and not an.prove(tir.ge(dim, 0)):
            checks.append(tir.Assert(tir.ge(dim, 0), f"dimension {k} of {name} is negative"))
    if sum(bool(late(d)) for d in buffer.shape) > 1:
        total = tir.product_of(buffer.shape) * max(buffer.dtype.storage_bits // 8, 1)
        checks.append(tir.Assert(tir.le(magnitude(total), tir.const(float(LARGEST), "float64")), f"the shape of {name} is too large"))
    return checks
