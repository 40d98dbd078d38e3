# SPDX-License-Identifier: Apache-2.0
"""The statements of a Fourier transform: Stockham's passes, of which each takes a prime factor (or four) out of the length.

A pass of radix r reads [done, r, left] and writes [r, done, left], where ``done`` is the product of the radices before it:

    out[q, k, i] = root(r * left, q i) * sum over p: root(r, p q) * in[k, p, i]

so that the last pass writes the result in order. Real numbers, an even number n of them, are the two parts of n / 2 complex
ones, and one more step takes their transforms apart (or, for the way back, puts them together first).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir
from roundel.ir.dataclass import dataclass

from .loops import for_each, let, load, store, when

Pair = tuple[tir.Expr, tir.Expr]
Source = Callable[[Any], Pair]
Sink = Callable[[Any, Pair], tir.Stmt]


def factors(n: int) -> list[int]:
    """The radices of a transform's passes: 2 once at most, then fours, then odd primes."""
    twos = (n & -n).bit_length() - 1 if n else 0
    out, n = [2] * (twos % 2) + [4] * (twos // 2), n >> twos
    prime = 3
    while n > 1:
        if n % prime:
            prime += 2
        else:
            out, n = [*out, prime], n // prime
    return out or [1]


def roots(n: int, count: int | None = None) -> np.ndarray:
    """Cosines and sines of -2 pi k / n for k < count: (2, count), those on the axes exactly."""
    k = np.arange(n if count is None else count)
    quarter, rest = np.divmod(4 * k, n)
    angle = np.pi / 2 * rest / n
    turned = np.exp(-1j * angle) * np.array([1, -1j, -1, 1j])[quarter % 4]
    return np.stack([turned.real, turned.imag])


class _Held:
    """Values that are evaluated once, each bound to a variable, and the statement that uses them."""

    def __init__(self) -> None:
        self.bound: list[tuple[tir.Var, tir.Expr]] = []

    def __call__(self, value: tir.Expr) -> tir.Expr:
        self.bound.append((tir.Var(f"v{len(self.bound)}", value.dtype), value))
        return self.bound[-1][0]

    def pair(self, value: Pair) -> Pair:
        return self(value[0]), self(value[1])

    def around(self, *stmts: tir.Stmt) -> tir.Stmt:
        out = tir.seq(*stmts)
        for var, value in reversed(self.bound):
            out = tir.Let(var, value, out)
        return out


def _plus(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _back(a: Pair) -> Pair:
    """a times -i."""
    return a[1], 0 - a[0]


def _swapped(a: Pair, swap: bool) -> Pair:
    return (a[1], a[0]) if swap else a


def _butterfly(x: list[Pair], hold: _Held) -> list[Pair]:
    """The transform of a few numbers."""
    if len(x) == 1:
        return x
    if len(x) == 2:
        return [_plus(*x), _minus(*x)]
    if len(x) == 4:
        even, odd = hold.pair(_plus(x[0], x[2])), hold.pair(_plus(x[1], x[3]))
        low, high = hold.pair(_minus(x[0], x[2])), hold.pair(_back(_minus(x[1], x[3])))
        return [_plus(even, odd), _plus(low, high), _minus(even, odd), _minus(low, high)]
    return _odd_butterfly(x, hold)


def _odd_butterfly(x: list[Pair], hold: _Held) -> list[Pair]:
    """Of an odd prime number of them: numbers that mirror each other share their products."""
    r, half = len(x), len(x) // 2
    dtype = x[0][0].dtype
    angle = 2 * np.pi * np.arange(r) / r
    cos, sin = ([tir.const(float(v), dtype) for v in f(angle)] for f in (np.cos, np.sin))
    sums = [hold.pair(_plus(x[m], x[r - m])) for m in range(1, half + 1)]
    gaps = [hold.pair(_minus(x[m], x[r - m])) for m in range(1, half + 1)]
    out = [functools.reduce(_plus, sums, x[0])] * r
    for q in range(1, half + 1):
        near, far = x[0], None
        for m, (s, g) in enumerate(zip(sums, gaps, strict=True), 1):
            c, w = cos[q * m % r], sin[q * m % r]
            near = near[0] + c * s[0], near[1] + c * s[1]
            term = w * g[1], w * g[0]
            far = term if far is None else _plus(far, term)
        near, far = hold.pair(near), hold.pair(far)
        out[q], out[r - q] = (near[0] + far[0], near[1] - far[1]), (near[0] - far[0], near[1] + far[1])
    return out


@dataclass(frozen=True)
class Passes:
    """The transform of ``points`` numbers. ``length``: complex numbers that the passes work on, ``radices``: of each pass."""

    points: int
    form: str
    length: int
    radices: tuple[int, ...]

    @classmethod
    def of(cls, points: int, form: str) -> Passes:
        """``form``: complex, real (to complex), to_real."""
        length = points // 2 if form != "complex" and points % 2 == 0 else points
        return cls(points, form, length, tuple(factors(length)))

    @property
    def packed(self) -> bool:
        """Whether pairs of real numbers are complex ones."""
        return self.length < self.points

    def table(self) -> np.ndarray:
        """Roots of unity in the order in which they are used, (2, count): those of each pass, then those of the packing."""
        done, parts = 1, [np.zeros((2, 0))]
        for radix in self.radices:
            left = self.length // (done * radix)
            whole = roots(max(self.length, 1))
            parts += [whole[:, done * q * np.arange(left)] for q in range(1, radix)] if left > 1 else []
            done *= radix
        if self.packed:
            parts.append(roots(self.points, self.length + 1))
        out = np.concatenate(parts, axis=1)
        return out if out.shape[1] else roots(1)

    def program(self, scale: Any, inverse: bool, mirrored: bool) -> Callable[..., tir.Stmt]:
        """What ``te.extern`` builds: operands (re, im) or (x,), then the table; results (re, im) or (x,); scratch [2, 2, length].

        ``inverse``: the other sign. ``mirrored``: all numbers of the transform of real ones.
        """

        def build(ins: Any, outs: Any, scratch: Any, *row: Any) -> tir.Stmt:
            *parts, table = ins
            run = _Run(self, table, scratch[0], row)
            steps = {"complex": run.complex, "real": run.real, "to_real": run.to_real}
            return steps[self.form](parts, outs, _Ends(row, scale, inverse, mirrored, self.points))

        return build


@dataclass(frozen=True)
class _Ends:
    """How numbers are read and written. The inverse transform is the transform with both parts exchanged, before and after."""

    row: tuple[Any, ...]
    scale: Any
    inverse: bool
    mirrored: bool
    points: Any

    def read(self, parts: Any) -> Source:
        """Operands as complex numbers."""
        return lambda i: _swapped((load(parts[0], (*self.row, i)), load(parts[1], (*self.row, i))), self.inverse)

    def read_real(self, x: Any) -> Source:
        """Real numbers as complex ones."""
        return lambda i: (load(x, (*self.row, i)), tir.const(0, x.dtype))

    def read_half(self, parts: Any) -> Source:
        """All numbers of which the first half is given, parts exchanged; imaginary parts that are 0 by symmetry are 0."""

        def source(i: Any) -> Pair:
            re, im = parts
            mirror = i * 2 > self.points
            place = te.select(mirror, self.points - i, i)
            value, zero = load(im, (*self.row, place)), tir.const(0, im.dtype)
            alone = te.logical_or(tir.eq(i, 0), tir.eq(i * 2, self.points))
            return te.select(alone, zero, te.select(mirror, zero - value, value)), load(re, (*self.row, place))

        return source

    def scaled(self, value: Any) -> Any:
        return value if self.scale is None else value * self.scale

    def write(self, outs: Any) -> Sink:
        """Complex results."""

        def sink(i: Any, value: Pair) -> tir.Stmt:
            return tir.seq(*(store(o, (*self.row, i), self.scaled(v)) for o, v in zip(outs, _swapped(value, self.inverse), strict=True)))

        return sink

    def write_real(self, out: Any) -> Sink:
        """Real parts of exchanged results."""
        return lambda i, value: store(out, (*self.row, i), self.scaled(value[1]))

    def write_half(self, outs: Any) -> Sink:
        """The first half of the results, those of the axis of symmetry as real numbers; mirrored, the second half too."""

        def sink(i: Any, value: Pair) -> tir.Stmt:
            hold = _Held()
            alone = te.logical_or(tir.eq(i, 0), tir.eq(i * 2, self.points))
            re, im = hold(self.scaled(value[0])), hold(te.select(alone, tir.const(0, value[1].dtype), self.scaled(value[1])))
            here = tir.seq(store(outs[0], (*self.row, i), re), store(outs[1], (*self.row, i), im))
            if not self.mirrored:
                return hold.around(here)
            other = self.points - i
            there = tir.seq(store(outs[0], (*self.row, other), re), store(outs[1], (*self.row, other), 0 - im))
            return hold.around(here, when(te.logical_not(alone), there))

        return lambda i, value: when(i * 2 <= self.points, sink(i, value))


class _Run:
    """The statements of one row."""

    def __init__(self, passes: Passes, table: Any, work: Any, row: tuple[Any, ...]) -> None:
        self.passes, self.table, self.work, self.row = passes, table, work, row

    def complex(self, parts: Any, outs: Any, ends: _Ends) -> tir.Stmt:
        """Complex numbers to complex numbers."""
        return self.transform(ends.read(parts), ends.write(outs))

    def real(self, parts: Any, outs: Any, ends: _Ends) -> tir.Stmt:
        """Real numbers to the first half of their transform."""
        x, half = parts[0], self.passes.length
        if not self.passes.packed:
            return self.transform(ends.read_real(x), ends.write_half(outs))
        at = lambda i: (load(x, (*self.row, i * 2)), load(x, (*self.row, i * 2 + 1)))
        slot = self.slot(len(self.passes.radices))
        write = ends.write_half(outs)

        def apart(k: Any) -> tir.Stmt:
            hold = _Held()
            a = hold.pair(self.load(slot, te.select(tir.eq(k, half), 0, k)))
            b = hold.pair(self.load(slot, te.select(tir.eq(k, 0), 0, half - k)))
            factor = tir.const(0.5, a[0].dtype)
            even = hold.pair(((a[0] + b[0]) * factor, (a[1] - b[1]) * factor))
            odd = hold.pair(_back(((a[0] - b[0]) * factor, (a[1] + b[1]) * factor)))
            return hold.around(write(k, hold.pair(_plus(even, _times(odd, self.turn(k))))))

        return tir.seq(self.transform(at, self.store(slot)), for_each([half + 1], apart, "k"))

    def to_real(self, parts: Any, outs: Any, ends: _Ends) -> tir.Stmt:
        """The first half of a transform to the real numbers that it is of."""
        (re, im), (out,), half = parts, outs, self.passes.length
        if not self.passes.packed:
            return self.transform(ends.read_half(parts), ends.write_real(out))
        slot = self.slot(0)

        def together(k: Any) -> tir.Stmt:
            hold, zero = _Held(), tir.const(0, re.dtype)
            value = hold(te.select(tir.eq(k, 0), zero, load(im, (*self.row, k))))
            other = hold(te.select(tir.eq(k, 0), zero, 0 - load(im, (*self.row, half - k))))
            a, b = (hold(load(re, (*self.row, k))), value), (hold(load(re, (*self.row, half - k))), other)
            cos, sin = self.turn(k)
            odd = hold.pair(_times(hold.pair(_minus(a, b)), (cos, 0 - sin)))
            even = hold.pair(_plus(a, b))
            return hold.around(self.store(slot)(k, (even[1] + odd[0], even[0] - odd[1])))

        def write(i: Any, value: Pair) -> tir.Stmt:
            return tir.seq(*(store(out, (*self.row, i * 2 + k), ends.scaled(v)) for k, v in enumerate(reversed(value))))

        begin = for_each([half], together, "k")
        return tir.seq(begin, self.transform(lambda i: self.load(slot, i), write))

    def slot(self, k: int) -> int:
        """Which half of the working memory is written before pass ``k``."""
        return k % 2

    def load(self, slot: int, i: Any) -> Pair:
        return load(self.work, (slot, 0, i)), load(self.work, (slot, 1, i))

    def store(self, slot: int) -> Sink:
        return lambda i, value: tir.seq(*(store(self.work, (slot, part, i), v) for part, v in enumerate(value)))

    def turn(self, k: Any) -> Pair:
        """The root of unity of the packing."""
        begin = self.passes.table().shape[1] - self.passes.length - 1
        return load(self.table, (0, k + begin)), load(self.table, (1, k + begin))

    def transform(self, source: Source, sink: Sink) -> tir.Stmt:
        """All passes. Memory that pass k reads is ``slot(k)``; the first reads from ``source``, the last writes to ``sink``."""
        return tir.seq(*self.steps(source, sink))

    def steps(self, source: Source, sink: Sink) -> Iterator[tir.Stmt]:
        done, begin, radices = 1, 0, self.passes.radices
        for k, radix in enumerate(radices):
            left = self.passes.length // (done * radix)
            read = source if k == 0 else functools.partial(self.load, self.slot(k))
            write = sink if k == len(radices) - 1 else self.store(self.slot(k + 1))
            yield self.one_pass(radix, done, left, begin, read, write)
            begin += (radix - 1) * left if left > 1 else 0
            done *= radix

    def one_pass(self, radix: int, done: int, left: int, begin: int, read: Source, write: Sink) -> tir.Stmt:
        """The longer of the two loops is inside."""

        def body(k: Any, i: Any) -> tir.Stmt:
            hold = _Held()
            found = _butterfly([hold.pair(read((k * radix + p) * left + i)) for p in range(radix)], hold)
            stores = []
            for q, value in enumerate(found):
                value = hold.pair(value)
                if q and left > 1:
                    at = i + (begin + (q - 1) * left)
                    value = hold.pair(_times(value, (load(self.table, (0, at)), load(self.table, (1, at)))))
                stores.append(write((k + q * done) * left + i, value))
            return hold.around(*stores)

        if left >= done:
            return for_each([done, left], body)
        return for_each([left, done], lambda i, k: body(k, i))


def run_time_passes(points: Any, form: str, scale: Any, inverse: bool, mirrored: bool) -> Callable[..., tir.Stmt]:
    """The same for a length that only the run knows: each factor is searched for, and its pass is the plain sum, in float64.

    Operands are followed by the roots of unity of ``points``, (2, points); scratch: [2, 2, points] and four integers.
    """

    def build(ins: Any, outs: Any, scratch: Any, *row: Any) -> tir.Stmt:
        (*parts, table), (work, state) = ins, scratch
        ends = _Ends(row, scale, inverse, mirrored, points)
        dtype = outs[0].dtype
        source = {"complex": ends.read, "real": lambda p: ends.read_real(p[0]), "to_real": ends.read_half}[form](parts)
        sink = {"complex": ends.write, "real": ends.write_half, "to_real": lambda o: ends.write_real(o[0])}[form](outs)
        done, rest, factor, now = (load(state, (k,)) for k in range(4))
        put = lambda slot, i, value: tir.seq(*(store(work, (slot, part, i), te.cast(v, "float64")) for part, v in enumerate(value)))
        begin = tir.seq(*(store(state, (k,), v) for k, v in enumerate((1, points, 2, 0))), for_each([points], lambda i: put(0, i, source(i)), "i"))
        found = _held_state((done, rest, factor, now), lambda *s: tir.seq(
            _plain_pass(work, table, points, *s), store(state, (0,), s[0] * s[2]), store(state, (1,), tir.floordiv(s[1], s[2])), store(state, (3,), 1 - s[3])))
        step = when(tir.eq(tir.floormod(rest, factor), 0), found, store(state, (2,), factor + 1))
        search = for_each([points], lambda _: when(rest > 1, step), "t")
        return tir.seq(begin, search, let(now, lambda slot: for_each([points], lambda i: sink(i, (
            te.cast(load(work, (slot, 0, i)), dtype), te.cast(load(work, (slot, 1, i)), dtype))), "i")))

    return build


def _held_state(values: tuple[tir.Expr, ...], body: Callable[..., tir.Stmt]) -> tir.Stmt:
    hold = _Held()
    return hold.around(body(*[hold(v) for v in values]))


def _plain_pass(work: Any, table: Any, points: Any, done: Any, rest: Any, radix: Any, now: Any) -> tir.Stmt:
    left = tir.floordiv(rest, radix)

    def element(k: Any, q: Any, i: Any) -> tir.Stmt:
        place = (k + q * done) * left + i
        target = [(1 - now, part, place) for part in (0, 1)]

        def add(p: Any) -> tir.Stmt:
            hold = _Held()
            turn = hold(tir.floormod(q * (done * i + tir.floordiv(points, radix) * p), points))
            at = hold((k * radix + p) * left + i)
            value = _times((load(work, (now, 0, at)), load(work, (now, 1, at))), (load(table, (0, turn)), load(table, (1, turn))))
            return hold.around(*(store(work, t, load(work, t) + v) for t, v in zip(target, hold.pair(value), strict=True)))

        zero = tir.const(0.0, "float64")
        return tir.seq(*(store(work, t, zero) for t in target), for_each([radix], add, "p"))

    return for_each([done, radix, left], element)
