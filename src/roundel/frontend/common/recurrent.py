# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks (RNN, GRU, LSTM) of any format: one product for the inputs of all steps, then a loop over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.dataclass import dataclass
from .importer import ModelNode

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
UNROLLED = 64
"""Steps up to which a loop of a known number of them is written out."""

Activation = Callable[[Any], Any]
Products = Callable[[Any, str], Any]
"""The product of a tensor with the weights "w" (of the inputs) or "r" (of the state)."""
Step = Callable[[Any, list[Any]], tuple[list[Any], list[Any]]]
Loop = Callable[[Any, tir.Expr, Sequence[Any], Step], tuple[list[Any], list[Any]]]
"""``state, ys = step(i, state)`` of a node for i below a length: the last state, and the ys along a new first axis."""

_ONE = tir.index_const(1)


def cut(node: ModelNode, x: Any, begin: Any, end: Any, axis: int = 0) -> Any:
    """``x`` from ``begin`` to ``end`` along ``axis``."""
    return node.make("strided_slice", x, axes=(axis,), begin=(tir.as_index(begin),), end=(tir.as_index(end),), strides=(_ONE,))


def at(node: ModelNode, x: Any, i: Any, axis: int = 0) -> Any:
    """Slice ``i`` (a number or a scalar tensor) of ``x`` along ``axis``, without that axis."""
    return node.make("squeeze", cut(node, x, i, i + 1, axis), axis=(axis,)) if isinstance(i, int) else node.make("take", x, i, axis=axis)


def stacked(node: ModelNode, parts: Sequence[Any], axis: int = 0) -> Any:
    """Tensors of one shape along a new axis."""
    return node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(axis,)) for p in parts)), axis=axis)


def written_out(node: ModelNode, length: int, state: Sequence[Any], step: Step) -> tuple[list[Any], list[Any]]:
    """What a ``Loop`` gives, of a known number of steps and without a loop."""
    rows: list[list[Any]] = []
    for i in range(length):
        state, ys = step(i, list(state))
        rows.append(ys)
    return list(state), [stacked(node, column) for column in zip(*rows, strict=True)]


def const_like(value: float, x: Any) -> graph.Constant:
    """A scalar constant of the dtype of ``x``."""
    return graph.Constant.of(np.asarray(value, x.sinfo.dtype.numpy))


@dataclass(frozen=True)
class Cell:
    """One direction of one layer, and how one step goes.

    ``w`` [gates * hidden, input] and ``r`` [gates * hidden, hidden] have the gates in ONNX's order: update, reset, new of a GRU; input, output,
    forget, new of an LSTM; ``wb`` and ``rb`` are the biases of both products. ``lengths``: of the sequences of a batch, where they differ.
    ``peepholes``: an LSTM's weights of the state for the gates. ``products`` stands for plain ones with the weights. ``resets_products``: a GRU's
    reset gate applies to the product with the state, not to the state. ``couples``: an LSTM forgets what it takes no input for.
    ``projection`` [output, hidden] makes an LSTM's outputs of its hidden values.
    """

    node: Any
    kind: str
    w: Any
    r: Any
    wb: Any
    rb: Any
    activations: Sequence[Activation]
    loop: Loop
    lengths: Any = None
    peepholes: Sequence[Any] | None = None
    products: Products | None = None
    resets_products: bool = False
    couples: bool = False
    projection: Any = None

    @property
    def hidden(self) -> tir.Expr:
        """How many values a gate has."""
        return tir.floordiv(self.r.sinfo.shape[0], tir.index_const(GATES[self.kind])) if self.projection is not None else self.r.sinfo.shape[1]

    def part(self, x: Any, k: int) -> Any:
        """Gate ``k`` of the last axis."""
        return cut(self.node, x, self.hidden * k, self.hidden * (k + 1), x.sinfo.ndim - 1)

    def times(self, x: Any, w: Any) -> Any:
        """Rows by weights [result, input]."""
        return self.node.make("matmul", x, self.node.make("permute_dims", w, axes=(1, 0)))

    def times_w(self, x: Any) -> Any:
        """Inputs by all of their weights."""
        return self.times(x, self.w) if self.products is None else self.products(x, "w")

    def times_r(self, h: Any) -> Any:
        """The state by all of its weights."""
        return self.times(h, self.r) if self.products is None else self.products(h, "r")

    def plus(self, x: Any, b: Any) -> Any:
        """With a bias, where there is one."""
        return x if b is None else self.node.make("add", x, b)

    def run(self, x: Any, state: list[Any], backwards: bool) -> tuple[list[Any], Any]:
        """The last state and the outputs [time, batch, hidden] for inputs [time, batch, input]."""
        make, time = self.node.make, x.sinfo.shape[0]
        inputs = self.plus(self.times_w(x), self.wb)
        last = self._scalar(time - 1) if backwards else None

        def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
            t = i
            if backwards:
                t = time.value - 1 - i if isinstance(i, int) else make("subtract", last, i)
            new = _STEPS[self.kind](self, at(self.node, inputs, t), now)
            if self.lengths is None:
                return new, [new[0]]
            place = graph.Constant.of(np.int64(t)) if isinstance(t, int) else t
            inside = make("expand_dims", make("less", make("astype", place, dtype=self.lengths.sinfo.dtype), self.lengths), axis=(1,))
            kept = [make("where", inside, n, o) for n, o in zip(new, now, strict=True)]
            return kept, [make("where", inside, new[0], const_like(0, new[0]))]

        state, (ys,) = self.loop(self.node, time, state, step)
        return state, make("flip", ys, axis=0) if backwards else ys

    def _scalar(self, size: tir.Expr) -> Any:
        return self.node.make("reshape", self.node.make("shape_to_tensor", graph.ShapeExpr((size,))), graph.ShapeExpr(()))


def _rnn(cell: Cell, x: Any, state: list[Any]) -> list[Any]:
    h = cell.node.make("add", x, cell.plus(cell.times_r(state[0]), cell.rb))
    return [cell.activations[0](h)]


def _gru(cell: Cell, x: Any, state: list[Any]) -> list[Any]:
    (h,), make, node, f = state, cell.node.make, cell.node, cell.activations
    r, rb = cell.r, cell.rb
    two = cell.hidden * 2
    both = cell.plus(cell.times(h, cut(node, r, 0, two)), None if rb is None else cut(node, rb, 0, two))
    z = f[0](make("add", cell.part(x, 0), cell.part(both, 0)))
    reset = f[0](make("add", cell.part(x, 1), cell.part(both, 1)))
    last, bias = cut(node, r, two, cell.hidden * 3), None if rb is None else cut(node, rb, two, cell.hidden * 3)
    if cell.resets_products:
        inner = make("multiply", reset, cell.plus(cell.times(h, last), bias))
    else:
        inner = cell.plus(cell.times(make("multiply", reset, h), last), bias)
    new = f[1](make("add", cell.part(x, 2), inner))
    return [make("add", make("multiply", make("subtract", const_like(1, z), z), new), make("multiply", z, h))]


def _lstm(cell: Cell, x: Any, state: list[Any]) -> list[Any]:
    (h, c), make, (f, g, hidden) = state, cell.node.make, cell.activations
    gates = make("add", x, cell.plus(cell.times_r(h), cell.rb))
    i, o, forget, new = (cell.part(gates, k) for k in range(4))
    if cell.peepholes is not None:
        i, forget = make("add", i, make("multiply", cell.peepholes[0], c)), make("add", forget, make("multiply", cell.peepholes[2], c))
    i = f(i)
    forget = make("subtract", const_like(1, i), i) if cell.couples else f(forget)
    now = make("add", make("multiply", forget, c), make("multiply", i, g(new)))
    if cell.peepholes is not None:
        o = make("add", o, make("multiply", cell.peepholes[1], now))
    out = make("multiply", f(o), hidden(now))
    return [out if cell.projection is None else cell.times(out, cell.projection), now]


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
