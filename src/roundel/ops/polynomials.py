# SPDX-License-Identifier: Apache-2.0
"""Classical orthogonal polynomials by their three-term recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dataclass import dataclass
from roundel.ir.op import FuseKind, OpDef, register

from .dims import broadcast, broadcast_shapes, fail, same_dtype, tensor_info
from .elementwise import element, widen
from .loops import for_each, load, store

_MOST = 1 << 24  # orders beyond count as that


@dataclass(frozen=True)
class Recurrence:
    """``p(0) = 1``, ``p(1) = first(x)``, ``p(k+1) = step(x, k, p(k), p(k-1))``; ``shifted``: of 2 x - 1."""

    first: Callable[[Any], Any]
    step: Callable[[Any, Any, Any, Any], Any]
    shifted: bool = False


def _chebyshev(x: Any, k: Any, p: Any, q: Any) -> Any:
    return x * 2.0 * p - q


_CHEBYSHEV: dict[str, Callable[[Any], Any]] = {"t": lambda x: x * 1.0, "u": lambda x: x * 2.0, "v": lambda x: x * 2.0 - 1.0, "w": lambda x: x * 2.0 + 1.0}
KINDS: dict[str, Recurrence] = {
    **{f"chebyshev_{k}": Recurrence(f, _chebyshev) for k, f in _CHEBYSHEV.items()},
    **{f"shifted_chebyshev_{k}": Recurrence(f, _chebyshev, True) for k, f in _CHEBYSHEV.items()},
    "hermite_h": Recurrence(lambda x: x * 2.0, lambda x, k, p, q: x * 2.0 * p - k * 2.0 * q),
    "hermite_he": Recurrence(lambda x: x * 1.0, lambda x, k, p, q: x * p - k * q),
    "laguerre_l": Recurrence(lambda x: 1.0 - x, lambda x, k, p, q: ((k * 2.0 + 1.0 - x) * p - k * q) / (k + 1.0)),
    "legendre_p": Recurrence(lambda x: x * 1.0, lambda x, k, p, q: ((k * 2.0 + 1.0) * x * p - k * q) / (k + 1.0)),
}


@register
class Polynomial(OpDef):
    """The polynomial of a ``family`` of order n (truncated to an integer; 0 below order 0) at x, elementwise."""

    name, operands, attributes, kind = "polynomial", ("x", "n"), {"family": "legendre_p"}, FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = [tensor_info(self, a, args) for a in args]
        if attrs["family"] not in KINDS:
            fail(self, f"there is no family {attrs['family']!r}, only {', '.join(KINDS)}", *args)
        shape, ndim = broadcast(self, infos)
        return graph.TensorInfo(shape, same_dtype(self, infos), ndim)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape, rule = broadcast_shapes(self, [a.shape for a in args]), KINDS[attrs["family"]]
        dtype = args[0].dtype
        wide = te.accumulator(dtype)

        def build(ins: Any, outs: Any, scratch: Any, *at: Any) -> tir.Stmt:
            (xs, ns), (out,), (now, last) = ins, outs, scratch
            x, order = te.cast(element(xs, at, shape), wide), te.cast(element(ns, at, shape), "int64")
            x = x * 2.0 - 1.0 if rule.shifted else x
            p, q = load(now, (0,)), load(last, (0,))

            def step(j: Any) -> tir.Stmt:
                new = te.select(tir.eq(j, 0), rule.first(x), rule.step(x, te.cast(j, wide), p, q))
                return tir.seq(store(last, (1,), new), store(last, (0,), p), store(now, (0,), load(last, (1,))))

            result = te.select(order < 0, tir.const(0, wide), p)
            return tir.seq(store(now, (0,), tir.const(1, wide)), store(last, (0,), tir.const(0, wide)),
                           for_each([tir.max_(tir.min_(order, _MOST), 0)], step), store(out, at, te.cast(result, dtype)))

        return te.extern([(shape, dtype)], args, build, "polynomial", over=shape, scratch=[((1,), wide), ((2,), wide)])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, order = np.broadcast_arrays(widen(args[0]), widen(args[1]))
        rule, order = KINDS[attrs["family"]], np.trunc(order).astype(np.int64)
        x = (x * 2.0 - 1.0 if rule.shifted else x).astype(np.float64)
        p, q = np.ones(x.shape), np.zeros(x.shape)
        with np.errstate(all="ignore"):
            for k in range(int(order.max(initial=0))):
                new = rule.first(x) if k == 0 else rule.step(x, float(k), p, q)
                p, q = np.where(k < order, new, p), np.where(k < order, p, q)
        return np.where(order < 0, 0.0, p).astype(args[0].dtype)
