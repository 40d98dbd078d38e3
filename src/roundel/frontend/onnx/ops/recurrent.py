# SPDX-License-Identifier: Apache-2.0
"""ONNX recurrent networks: RNN, GRU, LSTM. One product for the inputs of all steps, then a loop over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter
from ..values import Value
from .control import at, scalar, scan_loop
from .math import const_like

_ONE = tir.index_const(1)
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_PLAIN = {"Relu": "nn.relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Softsign": "nn.softsign", "Softplus": "nn.softplus"}
_SHAPED = {"LeakyRelu": (0.01, 0.0), "ThresholdedRelu": (1.0, 0.0), "ScaledTanh": (1.0, 1.0), "HardSigmoid": (0.2, 0.5), "Elu": (1.0, 0.0),
           "Affine": (1.0, 0.0)}


Products = Callable[[Any, str, int], Any]
"""The product of a tensor with the weights "w" (of the inputs) or "r" (of the state) of a direction."""


class _Cell:
    """One direction: its weights and how one step goes. ``make`` is the node's; ``products`` stands for plain ones with the weights."""

    def __init__(self, node: NodeContext, kind: str, direction: int, tensors: Sequence[Any], activations: list[Callable[[Any], Any]],
                 products: Products | None = None) -> None:
        self.node, self.make, self.kind, self.f = node, node.make, kind, activations
        self.direction, self.products = direction, products
        weights, recurrence, bias, self.lengths, peepholes = tensors
        self.w, self.r = at(node, weights, direction), at(node, recurrence, direction)
        self.hidden = self.r.sinfo.shape[1]
        gates = _GATES[kind]
        self.gates, self.wb, self.rb, self.p = gates, None, None, None
        if bias is not None:
            row, half = at(node, bias, direction), self.hidden * gates
            self.wb, self.rb = self.cut(row, 0, half), self.cut(row, half, half * 2)
        if peepholes is not None:
            row = at(node, peepholes, direction)
            self.p = [self.cut(row, self.hidden * k, self.hidden * (k + 1)) for k in range(3)]

    def cut(self, x: Any, begin: Any, end: Any, axis: int = 0) -> Any:
        return self.make("strided_slice", x, axes=(axis,), begin=(tir.as_index(begin),), end=(tir.as_index(end),), strides=(_ONE,))

    def part(self, x: Any, k: int) -> Any:
        """Gate ``k`` of the last axis."""
        return self.cut(x, self.hidden * k, self.hidden * (k + 1), x.sinfo.ndim - 1)

    def times(self, x: Any, w: Any) -> Any:
        return self.make("matmul", x, self.make("permute_dims", w, axes=(1, 0)))

    def times_w(self, x: Any) -> Any:
        """Inputs by all of their weights."""
        return self.times(x, self.w) if self.products is None else self.products(x, "w", self.direction)

    def times_r(self, h: Any) -> Any:
        """The state by all of its weights."""
        return self.times(h, self.r) if self.products is None else self.products(h, "r", self.direction)

    def plus(self, x: Any, b: Any) -> Any:
        return x if b is None else self.make("add", x, b)

    def run(self, x: Any, state: list[Any], backwards: bool) -> tuple[list[Any], Any]:
        """The last state and the outputs [time, batch, hidden] for inputs [time, batch, input]."""
        inputs = self.plus(self.times_w(x), self.wb)
        time = x.sinfo.shape[0]
        last = scalar(self.node, time - 1)

        def step(i: Any, now: list[Any]) -> tuple[list[Any], list[Any]]:
            t = i
            if backwards:
                t = time.value - 1 - i if isinstance(i, int) else self.make("subtract", last, i)
            new = _STEPS[self.kind](self, at(self.node, inputs, t), now)
            if self.lengths is None:
                return new, [new[0]]
            place = scalar(self.node, t) if isinstance(t, int) else t
            inside = self.make("expand_dims", self.make("less", self.make("astype", place, dtype=self.lengths.sinfo.dtype), self.lengths), axis=(1,))
            kept = [self.make("where", inside, n, o) for n, o in zip(new, now, strict=True)]
            return kept, [self.make("where", inside, new[0], const_like(0, new[0]))]

        state, (ys,) = scan_loop(self.node, time, state, step)
        return state, self.make("flip", ys, axis=0) if backwards else ys


def _rnn(cell: _Cell, x: Any, state: list[Any]) -> list[Any]:
    h = cell.make("add", x, cell.plus(cell.times_r(state[0]), cell.rb))
    return [cell.f[0](h)]


def _gru(cell: _Cell, x: Any, state: list[Any]) -> list[Any]:
    (h,), make = state, cell.make
    r, rb = cell.r, cell.rb
    two = cell.hidden * 2
    both = cell.plus(cell.times(h, cell.cut(r, 0, two)), None if rb is None else cell.cut(rb, 0, two))
    z = cell.f[0](make("add", cell.part(x, 0), cell.part(both, 0)))
    reset = cell.f[0](make("add", cell.part(x, 1), cell.part(both, 1)))
    last, bias = cell.cut(r, two, cell.hidden * 3), None if rb is None else cell.cut(rb, two, cell.hidden * 3)
    if cell.node.attr("linear_before_reset", 0):
        inner = make("multiply", reset, cell.plus(cell.times(h, last), bias))
    else:
        inner = cell.plus(cell.times(make("multiply", reset, h), last), bias)
    new = cell.f[1](make("add", cell.part(x, 2), inner))
    return [make("add", make("multiply", make("subtract", const_like(1, z), z), new), make("multiply", z, h))]


def _lstm(cell: _Cell, x: Any, state: list[Any]) -> list[Any]:
    (h, c), make, (f, g, hidden) = state, cell.make, cell.f
    gates = make("add", x, cell.plus(cell.times_r(h), cell.rb))
    i, o, forget, new = (cell.part(gates, k) for k in range(4))
    if cell.p is not None:
        i, forget = make("add", i, make("multiply", cell.p[0], c)), make("add", forget, make("multiply", cell.p[2], c))
    i = f(i)
    forget = make("subtract", const_like(1, i), i) if cell.node.attr("input_forget", 0) else f(forget)
    now = make("add", make("multiply", forget, c), make("multiply", i, g(new)))
    if cell.p is not None:
        o = make("add", o, make("multiply", cell.p[1], now))
    return [make("multiply", f(o), hidden(now)), now]


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _activations(node: NodeContext, kind: str, directions: int) -> list[Callable[[Any], Any]]:
    names = node.attr("activations", _DEFAULTS[kind] * directions)
    alphas, betas = iter(node.attr("activation_alpha", [])), iter(node.attr("activation_beta", []))
    clip = node.attr("clip", 0.0)
    out = []
    for name in names:
        known = {n.lower(): n for n in (*_PLAIN, *_SHAPED)}
        if name.lower() not in known:
            raise node.unsupported(f"activation {name!r}")
        name = known[name.lower()]
        alpha, beta = _SHAPED.get(name, (0.0, 0.0))
        if name in _SHAPED:
            alpha = next(alphas, alpha)
            beta = next(betas, beta) if name in ("ScaledTanh", "HardSigmoid", "Affine") else beta
        out.append(_activation(node, name, alpha, beta, clip))
    return out


def _activation(node: NodeContext, name: str, alpha: float, beta: float, clip: float) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        def c(v: float) -> Any:
            return const_like(v, x)

        if clip:
            x = node.make("maximum", node.make("minimum", x, c(clip)), c(-clip))
        if name in _PLAIN:
            return node.make(_PLAIN[name], x)
        linear = node.make("add", node.make("multiply", x, c(alpha)), c(beta)) if name in ("Affine", "HardSigmoid") else None
        if name == "Affine":
            return linear
        if name == "HardSigmoid":
            return node.make("maximum", node.make("minimum", linear, c(1)), c(0))
        if name == "ScaledTanh":
            return node.make("multiply", node.make("tanh", node.make("multiply", x, c(beta))), c(alpha))
        if name == "ThresholdedRelu":
            return node.make("where", node.make("greater", x, c(alpha)), x, c(0))
        below = node.make("multiply", x if name == "LeakyRelu" else node.make("expm1", x), c(alpha))
        return node.make("where", node.make("less", x, c(0)), below, x)

    return apply


def _require_fitting(node: NodeContext, kind: str, directions: int, x: Any, others: Sequence[Value | None], batch_first: bool) -> None:
    """Weights, biases, lengths and states have the sizes that the operator says; what only the run can tell is checked then."""
    batch, hidden, gates = x.sinfo.shape[1], tir.as_index(others[1].expr.sinfo.shape[2]), _GATES[kind]  # type: ignore[union-attr]
    if "hidden_size" in node.node_attributes:
        node.same_size(hidden, node.attr("hidden_size"), "hidden_size is not that of the recurrence weights")
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    wanted = {"W": (directions, hidden * gates, x.sinfo.shape[2]), "R": (directions, hidden * gates, hidden), "B": (directions, hidden * gates * 2),
              "sequence_lens": (batch,), "initial_h": state, "initial_c": state, "P": (directions, hidden * 3)}
    for (name, sizes), value in zip(wanted.items(), others, strict=True):
        if value is None:
            continue
        if value.expr.sinfo.ndim != len(sizes):
            raise node.error(f"{name} has {value.expr.sinfo.ndim} dimensions, not {len(sizes)}")
        for k, (a, b) in enumerate(zip(value.expr.sinfo.shape, sizes, strict=True)):
            node.same_size(a, b, f"dimension {k} of {name} does not fit the others")


def _recurrent(kind: str) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Value, w: Value, r: Value, b: Value | None = None, lengths: Value | None = None,
                initial_h: Value | None = None, initial_c: Value | None = None, p: Value | None = None, products: Products | None = None) -> Any:
        direction = node.attr("direction", "forward")
        count = 2 if direction == "bidirectional" else 1
        batch_first = bool(node.attr("layout", 0))
        v = node.make("permute_dims", x.expr, axes=(1, 0, 2)) if batch_first else x.expr
        hidden = r.expr.sinfo.shape[2]
        _require_fitting(node, kind, count, v, (w, r, b, lengths, initial_h, initial_c, p), batch_first)
        if lengths is not None:  # each in [0, time]
            lengths = Value(node.positions(lengths.expr, v.sinfo.shape[0] + 1))
        activations = _activations(node, kind, count)
        per = len(activations) // count
        tensors = (w.expr, r.expr, *(None if t is None else t.expr for t in (b, lengths, p)))
        shape = graph.ShapeExpr((v.sinfo.shape[1], hidden))
        states, outputs = [], []
        for d in range(count):
            given = [initial_h, initial_c][: 2 if kind == "LSTM" else 1]
            state = [node.make("zeros", shape, dtype=v.sinfo.dtype) if s is None else at(node, s.expr, d, 1 if batch_first else 0) for s in given]
            cell = _Cell(node, kind, d, tensors, activations[d * per:(d + 1) * per], products)
            last, ys = cell.run(v, state, direction == "reverse" or d == 1)
            states.append(last)
            outputs.append(ys)
        return _results(node, outputs, states, batch_first)

    return convert


def _results(node: NodeContext, outputs: list[Any], states: list[list[Any]], batch_first: bool) -> Any:
    y_axis, h_axis = (2, 1) if batch_first else (1, 0)
    if batch_first:
        outputs = [node.make("permute_dims", y, axes=(1, 0, 2)) for y in outputs]

    def joined(parts: Sequence[Any], axis: int) -> Any:
        return node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(axis,)) for p in parts)), axis=axis)

    return (joined(outputs, y_axis), *(joined(column, h_axis) for column in zip(*states, strict=True)))


for _kind in _GATES:
    converter(_kind, since=7)(_recurrent(_kind))
lstm = _recurrent("LSTM")
