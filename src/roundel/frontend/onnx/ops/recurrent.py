# SPDX-License-Identifier: Apache-2.0
"""ONNX recurrent networks: RNN, GRU, LSTM, each direction a ``Cell``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir import graph, tir
from ...common.recurrent import GATES, Cell, at, const_like, cut, stacked
from ..importer import NodeContext
from ..registry import converter
from ..values import Value
from .control import scan_loop

_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_PLAIN = {"Relu": "nn.relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Softsign": "nn.softsign", "Softplus": "nn.softplus"}
_SHAPED = {"LeakyRelu": (0.01, 0.0), "ThresholdedRelu": (1.0, 0.0), "ScaledTanh": (1.0, 1.0), "HardSigmoid": (0.2, 0.5), "Elu": (1.0, 0.0),
           "Affine": (1.0, 0.0)}


Products = Callable[[Any, str, int], Any]
"""The product of a tensor with the weights "w" (of the inputs) or "r" (of the state) of a direction."""


def _cell(node: NodeContext, kind: str, direction: int, tensors: Sequence[Any], activations: list[Callable[[Any], Any]], products: Products | None) -> Cell:
    """One direction of the node."""
    weights, recurrence, bias, lengths, peepholes = tensors
    w, r = at(node, weights, direction), at(node, recurrence, direction)
    hidden, wb, rb, p = r.sinfo.shape[1], None, None, None
    if bias is not None:
        row, half = at(node, bias, direction), hidden * GATES[kind]
        wb, rb = cut(node, row, 0, half), cut(node, row, half, half * 2)
    if peepholes is not None:
        row = at(node, peepholes, direction)
        p = [cut(node, row, hidden * k, hidden * (k + 1)) for k in range(3)]
    return Cell(node, kind, w, r, wb, rb, activations, scan_loop, lengths, p,
                products=None if products is None else lambda x, which: products(x, which, direction),
                resets_products=bool(node.attr("linear_before_reset", 0)), couples=bool(node.attr("input_forget", 0)))


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
    batch, hidden, gates = x.sinfo.shape[1], tir.as_index(others[1].expr.sinfo.shape[2]), GATES[kind]  # type: ignore[union-attr]
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
            cell = _cell(node, kind, d, tensors, activations[d * per:(d + 1) * per], products)
            last, ys = cell.run(v, state, direction == "reverse" or d == 1)
            states.append(last)
            outputs.append(ys)
        return _results(node, outputs, states, batch_first)

    return convert


def _results(node: NodeContext, outputs: list[Any], states: list[list[Any]], batch_first: bool) -> Any:
    y_axis, h_axis = (2, 1) if batch_first else (1, 0)
    if batch_first:
        outputs = [node.make("permute_dims", y, axes=(1, 0, 2)) for y in outputs]

    return (stacked(node, outputs, y_axis), *(stacked(node, column, h_axis) for column in zip(*states, strict=True)))


for _kind in GATES:
    converter(_kind, since=7)(_recurrent(_kind))
lstm = _recurrent("LSTM")
