# SPDX-License-Identifier: Apache-2.0
"""Which loops of a tensor program may run all their iterations at once.

A loop is independent when no two of its iterations touch one element of memory that outlives an iteration and one of
them writes it. Proved per pair of accesses from linear forms; where the proof fails the loop runs in order, which is
always right. Parallel and thread-bound loops are taken at their word (a race then shows as a wrong result) unless a
reduction is bound to them, or iterations of a parallel loop share memory that the program itself allocates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import field
from typing import Any

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.visit import Visitor, children, on
from .forms import INF, Atom, Form, Forms, add, recombine
from .intrinsics import is_lane_safe

PAIRS = 4000  # most pairs of accesses that are tested for one loop


@dataclass(slots=True)
class Facts:
    """What an expression depends on: variables (as frozen forms), and memory that it reads."""

    leaves: frozenset = frozenset()
    sources: frozenset = frozenset()

    def __or__(self, other: Facts) -> Facts:
        return Facts(self.leaves | other.leaves, self.sources | other.sources)

    def depends(self, atoms: tuple[Atom, ...], given: frozenset = frozenset()) -> bool:
        """Whether the value changes with ``atoms`` while the forms in ``given`` stay the same."""
        return any(a in t.uses for _, terms in self.leaves - given for t, _ in terms for a in atoms)


@dataclass(slots=True, eq=False)
class Condition:
    """A condition that stands around an access (by identity)."""

    facts: Facts


@dataclass(slots=True)
class Access:
    """``indices`` per dimension, ``flat`` in bytes from the data pointer, ``width`` bytes; ``space`` is the memory it
    is in.
    """

    space: Any
    layout: Any
    indices: tuple[Form, ...]
    flat: Form
    width: int
    store: bool
    loops: tuple[Atom, ...]
    order: int
    conditions: tuple[Condition, ...]
    value: Facts
    around: Facts


@dataclass(slots=True)
class Loop:
    """A loop with what happens inside it. ``digits``: its variable, or the parts of a fused one, highest first."""

    digits: tuple[Atom, ...]
    extent: Facts
    accesses: list[Access] = field(default_factory=list)
    private: set[tir.Var] = field(default_factory=set)
    elements: int = 0
    opaque: bool = False
    reduces: bool = False
    inner: list[Any] = field(default_factory=list)


class Plan(Visitor):
    """The analysis of one function for given values of its scalar parameters and size variables.

    ``aliases`` maps data pointers that share memory to a representative and the distance from it in bytes.
    """

    def __init__(
        self, func: tir.PrimFunc, values: Mapping[tir.Var, int], aliases: Mapping[tir.Var, tuple[Any, int]]
    ) -> None:
        self.given, self.shared = values, dict(aliases)
        self.cuts: dict[tir.For, list[int]] = {}
        self._walk(func)
        self.cuts = {s: cut for s, info in self.loops.items() if len(cut := self._digits(info)) > 1}
        if self.cuts:
            self._walk(func)
        self.verdicts: dict[tir.For, bool] = {}
        self.widths: dict[tir.For, int] = {}

    def _walk(self, func: tir.PrimFunc) -> None:
        self.forms = Forms()
        self.forms.env = {v: Form(n) for v, n in self.given.items()}
        self.aliases = dict(self.shared)
        self.loops: dict[tir.For, Loop] = {}
        self.stack: list[Loop] = []
        self.conditions: list[Condition] = []
        self.counted: set[Atom] = set()  # loop variables that take every value of their range
        self.views: dict[tir.Buffer, tuple[tir.Buffer, tuple[Form, ...]]] = {}
        self.allocated: set[Any] = set()
        self.scope: dict[Any, str] = {}  # of memory that is allocated, without what follows a dot
        self.count = 0
        self.visit(func.body)

    def _digits(self, info: Loop) -> list[int]:
        """Extents of the digits of a loop whose variable is taken apart by quotients and remainders."""
        atom = info.digits[0]
        found, inner = [], 1
        if atom in self.counted:
            for d in sorted(self.forms.divisors.get(atom, ())):
                if d % inner == 0 and (int(atom.hi) + 1) % d == 0 and inner < d <= atom.hi:
                    found.append(d // inner)
                    inner = d
        return [(int(atom.hi) + 1) // inner, *reversed(found)] if found else []

    def independent(self, loop: tir.For) -> bool:
        """Whether the iterations of ``loop`` may run at once."""
        known = self.verdicts.get(loop)
        if known is None:
            known = self.verdicts[loop] = loop in self.loops and self._decide(loop, self.loops[loop])
        return known

    def reduces(self, loop: tir.For) -> bool:
        """Whether a variable that reduces is bound to ``loop``."""
        return loop in self.loops and self.loops[loop].reduces

    def width(self, loop: tir.For) -> int:
        """How many lanes the loops inside ``loop`` add to each iteration, at most (private memory counts too)."""
        if loop not in self.widths:
            widths = [1, self.loops[loop].elements // 8]
            for inner in self.loops[loop].inner:
                extent = math.prod(a.hi + 1 for a in self.loops[inner].digits)
                own = int(extent) if self.independent(inner) and extent != INF else 1
                widths.append(max(own, 1) * self.width(inner))
            self.widths[loop] = max(widths)
        return self.widths[loop]

    def factors(self, loop: tir.For, n: int) -> list[int]:
        """Extents (outermost first) that ``n`` iterations are cut into so that quotients of fused loops stay affine."""
        cut = self.cuts.get(loop, ())
        return list(cut) if math.prod(cut) == n and cut else [n]

    def _decide(self, loop: tir.For, info: Loop) -> bool:
        if info.opaque:
            return False
        written = {a.space for a in info.accesses if a.store and a.space not in info.private}
        if not info.reduces and loop.kind is tir.ForKind.THREAD_BINDING:
            own = loop.own_scopes or ()
            written = {s for s in written if self.scope.get(s) in own}  # a thread has registers of its own, a block of threads its shared memory
        if not info.reduces and loop.kind is tir.ForKind.PARALLEL:
            written &= self.allocated  # lowering makes memory that one iteration uses private to it
        tested = 0
        for space in written:
            if self._recomputed(info, space, written):
                continue
            here = list({_signature(a): a for a in info.accesses if a.space is space}.values())
            for k, a in enumerate(here):
                for b in here[k:]:
                    tested += 1
                    if tested > PAIRS or ((a.store or b.store) and not self._apart(info, a, b)):
                        return False
        return True

    def _recomputed(self, info: Loop, space: Any, written: set) -> bool:
        """Whether all iterations write the same values to the same places of ``space`` before reading them: a cache.

        A store is fixed when every iteration does the same with it; the others write values that follow from the place.
        Such a store may not meet any other one in another iteration: the last of them in order would no longer win.
        """
        here = [a for a in info.accesses if a.space is space]
        stores = [a for a in here if a.store]
        fixed: list[bool] = []
        for a in stores:
            around = a.around
            for c in a.conditions:
                around = around | c.facts
            sources = around.sources | a.value.sources
            if a.layout is None or around.depends(info.digits) or sources & (written | info.private):
                return False
            fixed.append(not (a.value | _leaves(a.indices)).depends(info.digits))
            inside = a.loops[a.loops.index(info.digits[0]) :]
            if not fixed[-1] and a.value.depends(inside, _leaves(a.indices).leaves):
                return False
        pairs = len(stores) * (len(stores) - 1) // 2
        if not all(fixed) and pairs > PAIRS:
            return False
        for k, a in enumerate(stores):
            for m in range(k):
                if not (fixed[k] and fixed[m]) and not self._apart(info, stores[m], a):
                    return False
        return all(any(s.order < a.order and self._covers(s, a) for s in stores) for a in here if not a.store)

    def _covers(self, store: Access, load: Access) -> bool:
        """Whether what ``load`` reads was written by ``store`` in the same iteration of the loops around both."""
        if store.layout != load.layout or store.conditions != load.conditions[: len(store.conditions)]:
            return False
        shared = {x for x, y in zip(store.loops, load.loops) if x is y}
        seen: set[Atom] = set()
        for x, y in zip(store.indices, load.indices):
            rest = add(y, Form(0, {a: c for a, c in x.terms.items() if a.uses <= shared}), -1)
            span = 1
            own = [(a, c) for a, c in x.terms.items() if not a.uses <= shared]
            for atom, c in sorted(own, key=lambda t: t[1]):
                if c != span or atom in seen or atom not in self.counted:
                    return False
                seen.add(atom)
                span *= int(atom.hi) + 1
            if not x.base <= rest.lo <= rest.hi < x.base + span:
                return False
        return True

    def _apart(self, info: Loop, a: Access, b: Access) -> bool:
        """Whether different iterations never meet in these two accesses: whichever digit of the loop differs."""
        outer = frozenset(a.loops[: a.loops.index(info.digits[0])])
        comparable = a.layout is not None and a.layout == b.layout
        x, y = recombine(self.forms, a.flat), recombine(self.forms, b.flat)
        return all(
            (comparable and any(_separate(v, outer, p, q, 1, 1) for p, q in zip(a.indices, b.indices)))
            or _separate(v, outer, x, y, a.width, b.width)
            for v in info.digits
        )

    # --- walking

    def _space(self, buffer: tir.Buffer) -> tuple[Any, int]:
        while buffer in self.views:
            buffer = self.views[buffer][0]
        return self.aliases.get(buffer.data, (buffer.data, 0))

    def _facts(self, e: tir.Expr) -> Facts:
        """What the value of an expression depends on."""
        if type(e) is tir.Var:
            return Facts(frozenset((_frozen(self.forms.of(e)),)))
        out = Facts()
        if type(e) is tir.BufferLoad:
            out = Facts(frozenset(), frozenset((self._space(e.buffer)[0],))) | self._origin(e.buffer)
        for c in children(e):
            if isinstance(c, tir.Expr):
                out = out | self._facts(c)
        return out

    def _origin(self, buffer: tir.Buffer) -> Facts:
        """What the place where a buffer begins depends on."""
        out = Facts()
        while buffer in self.views:
            buffer, base = self.views[buffer]
            out = out | _leaves(base)
        return out if buffer.elem_offset is None else out | self._facts(buffer.elem_offset)

    def _anything(self) -> Facts:
        return Facts(frozenset((_frozen(self.forms.unknown()),)))

    @contextmanager
    def _under(self, facts: Facts) -> Iterator[None]:
        self.conditions.append(Condition(facts))
        yield
        self.conditions.pop()

    def _access(self, buffer: tir.Buffer, indices: tuple[Form, ...], value: Facts | None) -> None:
        while buffer in self.views:
            buffer, base = self.views[buffer]
            drop = len(base) - len(indices)
            indices = (*base[:drop], *(add(x, y) for x, y in zip(base[drop:], indices)))
        if not self.stack:
            return
        dtype = buffer.dtype
        bits = dtype.storage_bits * dtype.lanes
        flat = Form(0) if buffer.elem_offset is None else self.forms.of(buffer.elem_offset)
        strides = [self.forms.of(s) for s in buffer.strides] if buffer.strides else self._row_major(buffer)
        for i, s in zip(indices, strides):
            flat = self.forms.unknown() if s.terms else add(flat, i, s.base)
        size = max(bits // 8, 1)
        flat = self.forms.unknown() if bits % 8 else add(Form(0), flat, size)
        layout = self._layout(buffer, strides)
        loops = tuple(a for info in self.stack for a in info.digits)
        space, delta = self._space(buffer)
        if delta:
            layout, flat = layout and (layout, delta), add(flat, Form(delta))
        around = Facts()
        for info in self.stack:
            around = around | info.extent
        self.count += 1
        facts = value or Facts()
        around_it = tuple(self.conditions)
        access = Access(
            space, layout, indices, flat, size, value is not None, loops, self.count, around_it, facts, around
        )
        for info in self.stack:
            info.accesses.append(access)

    def _layout(self, buffer: tir.Buffer, strides: list[Form]) -> Any:
        """Equal for buffers whose elements are at one place exactly when their indices are equal; None when indices say
        nothing.
        """
        offset = Form(0) if buffer.elem_offset is None else self.forms.of(buffer.elem_offset)
        if offset.uses or (buffer.strides and not self._injective(buffer, strides)):
            return None
        if any(s.terms for s in strides):
            return buffer
        return buffer.dtype, tuple(s.base for s in strides), _frozen(offset)

    def _injective(self, buffer: tir.Buffer, strides: list[Form]) -> bool:
        extents = [self.forms.of(n) for n in buffer.shape]
        if any(f.terms for f in (*strides, *extents)):
            return False
        reach = 0
        for stride, extent in sorted((s.base, n.base) for s, n in zip(strides, extents)):
            if stride <= reach and extent > 1:
                return False
            reach += max(extent - 1, 0) * stride
        return True

    def _row_major(self, buffer: tir.Buffer) -> list[Form]:
        strides, step = [], Form(1)
        for n in reversed(buffer.shape):
            strides.append(step)
            extent = self.forms.of(n)
            step = self.forms.unknown() if step.terms or extent.terms else Form(step.base * extent.base)
        return strides[::-1]

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> None:
        self.generic(e)
        self._access(e.buffer, tuple(map(self._form, e.indices)), None)

    @on(tir.BufferStore)
    def _store(self, s: tir.BufferStore) -> None:
        self.generic(s)
        value = self._facts(s.value)
        for e in (*s.indices, *([] if s.predicate is None else [s.predicate])):
            value = value | self._facts(e)
        with self._under(Facts()) if s.predicate is not None else nullcontext():
            self._access(s.buffer, tuple(map(self._form, s.indices)), value)

    @on(tir.If)
    def _if(self, s: tir.If) -> None:
        self.visit(s.condition)
        facts = self._facts(s.condition)
        for part in (s.then_case, s.else_case):
            if part is not None:
                with self._under(facts):
                    self.visit(part)

    @on(tir.While)
    def _while(self, s: tir.While) -> None:
        with self._under(self._anything() | self._facts(s.condition)):
            self.visit(s.condition)
            self.visit(s.body)

    def _form(self, e: tir.Expr) -> Form:
        """The form of an index; lanes of a vector index are one more inner variable."""
        if type(e) is tir.Ramp:
            stride = self.forms.of(e.stride)
            if stride.terms or not stride.base:
                return add(self.forms.of(e.base), self.forms.unknown())
            lane = Atom(0, e.lanes - 1)
            self.counted.add(lane)
            return add(self.forms.of(e.base), Form(0, {lane: stride.base}))
        return self.forms.of(e)

    @on(tir.For)
    def _loop(self, s: tir.For) -> None:
        self.visit(s.min)
        self.visit(s.extent)
        start, extent = self.forms.of(s.min), self.forms.of(s.extent)
        step = 1 if s.step is None else self.forms.of(s.step).base
        atom = Atom(0, max(math.ceil(extent.hi / max(step, 1)) - 1, 0) if extent.hi != INF else INF)
        exact = not extent.terms and extent.base > 0 and atom.hi == extent.base - 1
        digits = tuple(Atom(0, n - 1) for n in self.cuts[s]) if s in self.cuts else (atom,)
        if exact:
            self.counted.update(digits)
        bounds = Facts(frozenset((_frozen(start), _frozen(extent)))) | self._facts(s.min) | self._facts(s.extent)
        info = self.loops[s] = Loop(digits, bounds)
        place = start
        weight = step
        for digit in reversed(digits):
            place = add(place, Form(0, {digit: weight}))
            weight *= int(digit.hi) + 1 if len(digits) > 1 else 1
        self.forms.env[s.loop_var] = place
        if self.stack:
            self.stack[-1].inner.append(s)
        self._inside(info, s.body)

    def _inside(self, info: Loop, body: tir.Stmt) -> None:
        self.stack.append(info)
        self.forms.scope.extend(info.digits)
        self.visit(body)
        del self.forms.scope[len(self.forms.scope) - len(info.digits) :]
        self.stack.pop()

    @on(tir.AttrStmt)
    def _attr(self, s: tir.AttrStmt) -> None:
        var = s.subject.var if isinstance(s.subject, tir.IterVar) else s.subject
        if s.key in ("thread_extent", "virtual_thread") and isinstance(var, tir.Var) and var not in self.forms.env:
            atom = Atom(0, self.forms.of(s.value).hi - 1)
            self.forms.env[var] = Form(0, {atom: 1})
            self._inside(Loop((atom,), self._facts(s.value)), s.body)
            del self.forms.env[var]
        else:
            self.visit(s.body)

    @on(tir.Let)
    def _let(self, s: tir.Let) -> None:
        self.visit(s.value)
        self.forms.env[s.var] = self.forms.of(s.value) if s.var.dtype.is_int else self.forms.unknown()
        if s.var.dtype.is_handle and isinstance(s.value, tir.Var):
            self.aliases[s.var] = self.aliases.get(s.value, (s.value, 0))
        self.visit(s.body)

    @on(tir.Allocate)
    def _allocate(self, s: tir.Allocate) -> None:
        self._owned(s.buffer)
        self.visit(s.body)

    def _owned(self, buffer: tir.Buffer) -> None:
        self.allocated.add(buffer.data)
        self.scope[buffer.data] = buffer.scope.split(".")[0]
        for info in self.stack:
            info.private.add(buffer.data)
        size = math.prod(self.forms.of(n).hi for n in buffer.shape)
        if self.stack and size < INF:
            self.stack[-1].elements += int(size)

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        for v in (*s.iter_values, s.predicate):
            self.visit(v)
        for iv, value in zip(s.block.iter_vars, s.iter_values, strict=True):
            form = self.forms.of(value)
            self.forms.env[iv.var] = form
            if iv.kind is not tir.IterKind.SPATIAL:
                for info in self.stack:
                    info.reduces = info.reduces or not form.uses.isdisjoint(info.digits)
        b = s.block
        for buffer in b.alloc_buffers:
            self._owned(buffer)
        for m in b.match_buffers:
            base = tuple(self.forms.of(r.min) for r in m.source.region)
            self.views[m.buffer] = (m.source.buffer, base)
            if type(m.buffer.elem_offset) is tir.Var:
                self.forms.env.setdefault(m.buffer.elem_offset, self.forms.unknown())
        certain = type(s.predicate) is tir.IntImm
        with nullcontext() if certain else self._under(self._facts(s.predicate)):
            if b.init is not None:
                with self._under(Facts(frozenset(_frozen(self.forms.env[iv.var]) for iv in b.iter_vars))):
                    self.visit(b.init)
            self.visit(b.body)

    @on(tir.Call)
    def _call(self, e: tir.Call) -> None:
        if not is_lane_safe(e):
            for info in self.stack:
                info.opaque = True
        self.generic(e)


def _frozen(f: Form) -> tuple:
    return f.base, frozenset(f.terms.items())


def _leaves(forms: tuple[Form, ...]) -> Facts:
    return Facts(frozenset(map(_frozen, forms)))


def _signature(a: Access) -> tuple:
    return a.layout, tuple(map(_frozen, a.indices)), _frozen(a.flat), a.width, a.store


def _separate(v: Atom, outer: frozenset[Atom], x: Form, y: Form, wx: int, wy: int) -> bool:
    """Whether intervals [x, x + wx) and [y, y + wy) of different iterations of ``v`` are disjoint, whatever the inner
    loops do.

    With equal coefficient c of v the difference is c*k + rest for some k != 0: none of those multiples may be within
    reach.
    """
    c = x.terms.get(v, 0)
    c = c if y.terms.get(v, 0) == c else 0
    difference: list[tuple[int, Atom]] = []
    for atom in {**x.terms, **y.terms}:
        kx, ky = x.terms.get(atom, 0), y.terms.get(atom, 0)
        if atom.uses <= outer:
            difference.append((ky - kx, atom))  # has one value in both iterations
        elif atom is not v or not c:
            difference += [(ky, atom), (-kx, atom)]
    lo: float = y.base - x.base
    hi: float = lo
    for k, atom in difference:
        low, high = (atom.lo, atom.hi) if k > 0 else (atom.hi, atom.lo)
        lo, hi = lo + _at(k, low), hi + _at(k, high)
    lo, hi = lo - (wx - 1), hi + (wy - 1)
    if math.isinf(lo) or math.isinf(hi) or math.isnan(lo) or math.isnan(hi):
        return c == 0 and (lo > 0 or hi < 0)
    if c == 0:
        return lo > 0 or hi < 0
    c, reach = abs(c), v.hi - v.lo
    # a nonzero multiple m*c, |m| <= reach, inside [lo, hi]?
    up, down = max(1, math.ceil(lo / c)), max(1, math.ceil(-hi / c))
    return not ((up * c <= hi and up <= reach) or (-down * c >= lo and down <= reach))


def _at(k: int, bound: float) -> float:
    return k * bound if k else 0
