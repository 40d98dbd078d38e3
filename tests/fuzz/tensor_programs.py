# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs: contractions in which axes have every role, reductions, windows, scans, and chains of them.

Extents are 1 to 9, some primes, or symbolic. ``draw(seed)`` is one program, the positions of operands that are taken as constants, and a
value for each symbolic size. Rules of schedules must take each of them, or leave it to others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from roundel import te
from roundel.arith import Analyzer
from roundel.builder import make_program
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT64
from roundel.ir.op import get_op
from roundel.ir.visit import free_vars, substitute

SMALL, PRIMES = tuple(range(1, 10)), (11, 13, 17, 31, 61, 67, 127)
MOST = 60_000       # iterations of a block
SYMBOLIC = 0.12     # of the axes
UNARY: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: te.max_(x, 0.0), "exp": te.exp, "scale": lambda x: x * 0.5 + 1.0, "tanh": te.tanh, "absolute": te.abs, "negative": te.neg,
}
BODIES: dict[str, Callable[..., Any]] = {
    "product": lambda a, *b: a if not b else a * b[0] if len(b) == 1 else a * b[0] * b[1], "sum": lambda a, *b: sum(b, a),
    "distance": lambda a, *b: te.abs(a - b[0]) if b else te.abs(a), "largest": lambda a, *b: te.max_(a, b[0]) if b else a,
    "square": lambda a, *b: (a - b[0]) * (a - b[0]) if b else a * a,
}
REDUCERS = {"sum": te.sum, "max": te.max, "min": te.min}


@dataclass(frozen=True)
class Drawn:
    """A random program, with what it takes to run it. ``sizes`` gives symbolic sizes values."""

    family: str
    func: tir.PrimFunc
    constants: tuple[int, ...]
    sizes: dict[tir.Var, int]

    def arrays(self, rng: np.random.Generator) -> list[np.ndarray]:
        """An array for each buffer; the result holds NaN or, of whole numbers, what no result is."""
        params = self.func.buffer_params
        return [_filled(rng, self._shape(b), b.dtype.numpy, result=b is params[-1]) for b in params]

    def _shape(self, buffer: tir.Buffer) -> list[int]:
        values = {v.name: tir.index_const(n) for v, n in self.sizes.items()}
        known = lambda n: substitute(n, {v: values[v.name] for v in free_vars(n)})
        return [Analyzer().simplify(known(n)).value for n in buffer.shape]


def _filled(rng: np.random.Generator, shape: Sequence[int], dtype: Any, result: bool) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return np.full(shape, 77, dtype) if result else rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    return np.full(shape, np.nan, dtype) if result else rng.uniform(-1, 1, shape).astype(dtype)


@dataclass
class _Maker:
    """Draws sizes, operands and steps of one program."""

    rng: np.random.Generator
    sizes: dict[tir.Var, int] = field(default_factory=dict)
    operands: list[te.Tensor] = field(default_factory=list)
    count: int = 0

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def extent(self, symbolic: bool = True) -> Any:
        """Of an axis: a small number, a prime or a variable."""
        if symbolic and self.chance(SYMBOLIC):
            var = tir.Var(f"n{len(self.sizes)}", INT64, True)
            self.sizes[var] = int(self.pick((*SMALL, 13, 31)))
            return var
        return int(self.pick(SMALL if self.chance(0.6) else PRIMES))

    def value(self, extent: Any) -> int:
        return self.sizes[extent] if isinstance(extent, tir.Var) else int(extent)

    def axes(self, count: int, symbolic: bool = True) -> list[Any]:
        """Extents of axes, together at most ``MOST``."""
        while True:
            before = dict(self.sizes)
            found = [self.extent(symbolic) for _ in range(count)]
            if np.prod([float(self.value(n)) for n in found]) <= MOST:
                return found
            self.sizes = before

    def operand(self, shape: Sequence[Any], dtype: str) -> te.Tensor:
        made = te.placeholder(tuple(shape), dtype, f"X{len(self.operands)}")
        self.operands.append(made)
        return made

    def name(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def order(self, items: Sequence[Any], kept: float = 0.7) -> list[Any]:
        """The items, mostly as they are."""
        return list(items) if self.chance(kept) else [items[int(k)] for k in self.rng.permutation(len(items))]

    def prologue(self, x: te.Tensor) -> te.Tensor:
        """An operand as it is, or after a step of its own."""
        if not self.chance(0.3) or not str(x.dtype).startswith("float"):
            return x
        if self.chance(0.3) and x.shape and isinstance(x.shape[-1], tir.IntImm):  # two parts side by side
            half = max(x.shape[-1].value // 2, 1)
            other = self.operand(x.shape, str(x.dtype))
            return te.compute(x.shape, lambda *i: te.if_then_else(i[-1] < half, x[i], other[i]), self.name("joined"))
        fn = UNARY[self.pick(list(UNARY))]
        return te.compute(x.shape, lambda *i: fn(x[i]), self.name("before"))

    def epilogue(self, x: te.Tensor) -> te.Tensor:
        """A result as it is, or after steps that are fused after it."""
        if not str(x.dtype).startswith("float"):
            return x
        if self.chance(0.4) and len(x.shape):
            bias = self.operand(x.shape[-1:], str(x.dtype))
            y = x
            x = te.compute(x.shape, lambda *i: y[i] + bias[i[-1]], self.name("biased"))
        if self.chance(0.4):
            fn, z = UNARY[self.pick(list(UNARY))], x
            x = te.compute(x.shape, lambda *i: fn(z[i]), self.name("after"))
        if self.chance(0.15) and len(x.shape) > 1:
            last = x
            x = te.compute((*x.shape[:-2], x.shape[-1], x.shape[-2]), lambda *i: last[(*i[:-2], i[-1], i[-2])], self.name("turned"))
        return x


def draw(seed: int) -> Drawn:
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    make = _Maker(rng)
    family = make.pick(list(FAMILIES))
    func = FAMILIES[family](make)
    if isinstance(func, te.Tensor):
        func = te.create_prim_func([*make.operands, func])
    count = len(func.buffer_params) - 1
    fixed = [k for k in range(count) if all(isinstance(n, tir.IntImm) for n in func.buffer_params[k].shape)]
    constants = tuple(k for k in fixed if make.chance(0.25))
    return Drawn(family, func.with_attr("global_symbol", "main"), constants, make.sizes)


def contraction(make: _Maker) -> te.Tensor:
    """One to three operands; every axis is in some of them, and in the result or reduced."""
    count = make.pick((1, 2, 2, 2, 2, 3))
    dtype = make.pick(("float32",) * 6 + ("float64", "int32", "float16", "bytes"))
    roles = []  # of each axis: the operands that it moves, whether it is one of the result
    if make.chance(0.6) and count == 2:  # rows, columns and a sum, and more of them now and then
        roles = [((0, 1), True)] * make.pick((0, 0, 1)) + [((0,), True)] * make.pick((1, 1, 2)) + [((1,), True)] * make.pick((1, 1, 2))
        roles += [((0, 1), False)] * make.pick((1, 1, 2, 3))
    else:
        for _ in range(int(make.rng.integers(2, 6))):
            moved = tuple(k for k in range(count) if make.chance(0.6))
            kept = make.chance(0.6)
            roles.append((moved if moved or kept else (0,), kept))
    if all(kept for _, kept in roles):
        roles.append((tuple(range(count)), False))
    extents = make.axes(len(roles))
    spatial = make.order([k for k, (_, kept) in enumerate(roles) if kept])
    summed = [k for k, (_, kept) in enumerate(roles) if not kept]
    types = ["uint8", "int8", "int8"] if dtype == "bytes" else [dtype] * 3
    of = [make.order([k for k, (moved, _) in enumerate(roles) if o in moved]) for o in range(count)]
    operands = [make.prologue(make.operand([extents[k] for k in of[o]], types[o])) for o in range(count)]
    variables = {k: te.reduce_axis((0, extents[k]), f"k{k}") for k in summed}
    body, reducer = BODIES[make.pick(["product"] * 5 + list(BODIES))], REDUCERS[make.pick(["sum"] * 5 + list(REDUCERS))]
    wide = {"bytes": "int32", "float16": "float32"}.get(dtype, dtype)

    def element(*i: Any) -> Any:
        at = {**dict(zip(spatial, i, strict=True)), **variables}
        loads = [x[tuple(at[k] for k in of[o])] for o, x in enumerate(operands)]
        return reducer(body(*[v if wide == dtype else te.cast(v, wide) for v in loads]), axis=list(variables.values()))

    return make.epilogue(te.compute(tuple(extents[k] for k in spatial), element, make.name("C")))


def reduction(make: _Maker) -> te.Tensor:
    """Reductions along any axes, and results that are used along the same axes again: softmax, normalisation. Numbers of 16 bits are reduced as
    operators do it, in float32."""
    extents = make.axes(int(make.rng.integers(1, 5)))
    dtype = make.pick(("float32",) * 4 + ("float64", "int32", "float16", "bfloat16"))
    x = make.prologue(make.operand(extents, dtype))
    if dtype not in ("float16", "bfloat16"):
        return make.epilogue(_reduced(make, x))
    made = _reduced(make, te.compute(x.shape, lambda *i: te.cast(x[i], "float32"), make.name("wide")))
    return make.epilogue(te.compute(made.shape, lambda *i: te.cast(made[i], dtype), make.name("narrow")))


def _reduced(make: _Maker, x: te.Tensor) -> te.Tensor:
    """One reduction, or several in a row."""
    rank = len(x.shape)
    axes = sorted({int(a) for a in make.rng.integers(rank, size=int(make.rng.integers(1, rank + 1)))})
    if not str(x.dtype).startswith("float") or make.chance(0.5):
        return _along(make, x, axes, make.pick(list(REDUCERS)), keep=make.chance(0.5))
    if make.chance(0.5):
        top = _along(make, x, axes, "max", keep=True)
        exps = te.compute(x.shape, lambda *i: te.exp(x[i] - top[_at(i, axes)]), make.name("exp"))
        total = _along(make, exps, axes, "sum", keep=True)
        return te.compute(x.shape, lambda *i: exps[i] / total[_at(i, axes)], make.name("share"))
    mean = _along(make, x, axes, "sum", keep=True)
    apart = te.compute(x.shape, lambda *i: x[i] - mean[_at(i, axes)] * 0.1, make.name("apart"))
    squares = te.compute(x.shape, lambda *i: apart[i] * apart[i], make.name("squares"))
    spread = _along(make, squares, axes, "sum", keep=True)
    return te.compute(x.shape, lambda *i: apart[i] / te.sqrt(spread[_at(i, axes)] + 1.0), make.name("normal"))


def _at(i: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(0 if k in axes else v for k, v in enumerate(i))


def _along(make: _Maker, x: te.Tensor, axes: Sequence[int], how: str, keep: bool) -> te.Tensor:
    """A reduction along axes, which stay with extent 1 or go."""
    variables = {a: te.reduce_axis((0, x.shape[a]), f"r{a}") for a in axes}
    rest = [k for k in range(len(x.shape)) if k not in variables]
    shape = [1 if k in variables else n for k, n in enumerate(x.shape)] if keep else [x.shape[k] for k in rest]

    def element(*i: Any) -> Any:
        at = {k: i[k] if keep else i[rest.index(k)] for k in rest} | variables
        return REDUCERS[how](x[tuple(at[k] for k in range(len(x.shape)))], axis=list(variables.values()))

    return te.compute(tuple(shape), element, make.name(how))


def window(make: _Maker) -> te.Tensor:
    """Convolutions and pooling over one to three axes, with strides, dilation, borders and groups, channels in front, behind or both."""
    rank, size = make.pick((1, 2, 2, 2, 3)), make.pick((1, 2, 3, 3, 5))
    stride, dilation, border = make.pick((1, 1, 2, 3)), make.pick((1, 1, 1, 2)), make.pick((0, 0, 1, 2))
    reach = (size - 1) * dilation + 1
    sides = [max(n if isinstance(n, int) else 9, reach + int(make.rng.integers(0, 4))) for n in make.axes(rank, symbolic=False)]
    sides = [min(n, (40, 20, 9)[rank - 1] + reach) for n in sides]
    front, behind = make.pick((0, 1, 3, 8)), make.pick((0, 0, 1, 4, 16, 19))
    lead, tail = ([front] if front else []), ([behind] if behind else [])
    x = make.operand([*lead, *sides, *tail], "float32")
    fill = make.pick((0.0, 0.0, -1e30))
    if border:
        inner, d = x, len(lead)
        inside = lambda i: reduce(te.logical_and, (c for k, n in enumerate(sides) for c in (i[d + k] >= border, i[d + k] < n + border)))
        place = lambda i: tuple(v - border if d <= k < d + rank else v for k, v in enumerate(i))
        x = te.compute((*lead, *(n + 2 * border for n in sides), *tail), lambda *i: te.if_then_else(inside(i), inner[place(i)], te.const(fill, "float32")),
                       make.name("border"))
    out = [(n + 2 * border - reach) // stride + 1 for n in sides]
    taps = [te.reduce_axis((0, size), f"w{k}") for k in range(rank)]
    kind = make.pick(("pool", "depthwise", "dense", "dense", "grouped"))
    at = lambda i: [i[k] * stride + taps[k] * dilation for k in range(rank)]
    if kind == "pool" or not (lead or tail):
        how = REDUCERS[make.pick(("sum", "max", "min"))]
        shape = (*lead, *out, *tail)
        found = te.compute(shape, lambda *i: how(x[(*i[:len(lead)], *at(i[len(lead):]), *i[len(lead) + rank:])], axis=taps), make.name("pool"))
        return make.epilogue(found)
    if kind == "depthwise":
        w = make.operand([*lead, *[size] * rank, *tail], "float32")
        load = lambda i: x[(*i[:len(lead)], *at(i[len(lead):]), *i[len(lead) + rank:])] * w[(*i[:len(lead)], *taps, *i[len(lead) + rank:])]
        return make.epilogue(te.compute((*lead, *out, *tail), lambda *i: te.sum(load(i), axis=taps), make.name("depthwise")))
    groups = next((g for g in (4, 3, 2) if kind == "grouped" and lead and front % g == 0), 1)
    each, results = (front // groups if lead else 1), make.pick((1, 2, 4, 8, 16, 19))
    channels = [te.reduce_axis((0, each), "c")] if lead else []
    channels += [te.reduce_axis((0, behind), "v")] if tail else []
    w = make.operand([groups * results, *([each] if lead else []), *[size] * rank, *tail], "float32")

    def element(o: Any, *i: Any) -> Any:
        first = [o // results * each + channels[0]] if lead and groups > 1 else channels[:len(lead)]
        data = x[(*first, *at(i), *channels[len(lead):])]
        return te.sum(data * w[(o, *channels[:len(lead)], *taps, *channels[len(lead):])], axis=[*channels, *taps])

    if make.chance(0.4):  # channels behind
        return make.epilogue(te.compute((*out, groups * results), lambda *i: element(i[-1], *i[:-1]), make.name("Y")))
    return make.epilogue(te.compute((groups * results, *out), element, make.name("Y")))


def scan(make: _Maker) -> tir.PrimFunc:
    """Statements that run for each point of a box: running sums, sorts, places of the largest."""
    extents = make.axes(int(make.rng.integers(1, 4)), symbolic=make.chance(0.5))
    axis = int(make.rng.integers(len(extents)))
    name, attrs = make.pick((("cumsum", {"axis": axis}), ("cumsum", {"axis": axis, "dtype": "float64"}), ("sort", {"axis": -1}), ("argmax", {"axis": axis})))
    op, info = get_op(name), graph.TensorInfo(tuple(tir.as_index(n) for n in extents), "float32")
    attrs = {k: v for k, v in attrs.items() if k in op.attributes}
    return make_program(lambda *a, **kw: op.compute(a, Attrs(kw)), [graph.Var("x", info)], {**op.attributes, **attrs}).func


def chain(make: _Maker) -> te.Tensor:
    """Several steps in a row: elementwise ones, transpositions, reductions that stay, products with another operand, windows."""
    x = make.operand(make.axes(int(make.rng.integers(1, 4))), "float32")
    for _ in range(int(make.rng.integers(2, 5))):
        x = STEPS[make.pick(list(STEPS))](make, x)
    return x


def _elementwise(make: _Maker, x: te.Tensor) -> te.Tensor:
    fn = UNARY[make.pick(list(UNARY))]
    return te.compute(x.shape, lambda *i: fn(x[i]), make.name("unary"))


def _binary(make: _Maker, x: te.Tensor) -> te.Tensor:
    kept = [k for k in range(len(x.shape)) if make.chance(0.6)]
    y = make.operand([x.shape[k] for k in kept], "float32")
    return te.compute(x.shape, lambda *i: x[i] * y[tuple(i[k] for k in kept)], make.name("binary"))


def _turn(make: _Maker, x: te.Tensor) -> te.Tensor:
    order = [int(k) for k in make.rng.permutation(len(x.shape))]
    return te.compute(tuple(x.shape[k] for k in order), lambda *i: x[tuple(i[order.index(k)] for k in range(len(order)))], make.name("turn"))


def _reduce(make: _Maker, x: te.Tensor) -> te.Tensor:
    if not len(x.shape):
        return _elementwise(make, x)
    return _along(make, x, [int(make.rng.integers(len(x.shape)))], make.pick(list(REDUCERS)), keep=make.chance(0.6))


def _multiply(make: _Maker, x: te.Tensor) -> te.Tensor:
    if not len(x.shape):
        return _elementwise(make, x)
    n = int(make.pick((1, 2, 5, 8, 16, 17)))
    turned = make.chance(0.3)
    w, r = make.operand((n, x.shape[-1]) if turned else (x.shape[-1], n), "float32"), te.reduce_axis((0, x.shape[-1]), "k")
    return te.compute((*x.shape[:-1], n), lambda *i: te.sum(x[(*i[:-1], r)] * (w[i[-1], r] if turned else w[r, i[-1]]), axis=r), make.name("product"))


def _slide(make: _Maker, x: te.Tensor) -> te.Tensor:
    if not len(x.shape) or not isinstance(x.shape[-1], tir.IntImm) or x.shape[-1].value < 3:
        return _elementwise(make, x)
    r, how = te.reduce_axis((0, 3), "w"), REDUCERS[make.pick(list(REDUCERS))]
    return te.compute((*x.shape[:-1], x.shape[-1].value - 2), lambda *i: how(x[(*i[:-1], i[-1] + r)], axis=r), make.name("slide"))


STEPS = {"elementwise": _elementwise, "binary": _binary, "turn": _turn, "reduce": _reduce, "multiply": _multiply, "slide": _slide}
FAMILIES: dict[str, Callable[[_Maker], Any]] = {"contraction": contraction, "reduction": reduction, "window": window, "scan": scan, "chain": chain}
