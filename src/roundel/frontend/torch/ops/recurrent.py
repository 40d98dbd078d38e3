# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers (``torch.nn.RNN``, ``GRU``, ``LSTM``), each direction of each layer a ``Cell``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir import graph, tir
from ...common.recurrent import GATES, UNROLLED, Cell, Step, at, cut, stacked, written_out
from ..importer import NodeContext
from ..registry import converter
from .control import rows_of_loop

_ORDERS = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 3, 1, 2)}
"""Where PyTorch has the gates of a cell: it puts them in the order reset, update, new and input, forget, new, output."""


def _loop(node: NodeContext, length: tir.Expr, state: Sequence[Any], step: Step) -> tuple[list[Any], list[Any]]:
    if isinstance(length, tir.IntImm) and 0 < length.value <= UNROLLED:
        return written_out(node, length.value, state, step)
    return rows_of_loop(node, length, state, step)


def _recurrent(kind: str, *activations: str) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Any, hx: Any, params: Sequence[Any], has_biases: bool, layers: int, _dropout: float, train: bool,
                bidirectional: bool, batch_first: bool) -> Any:
        if train and _dropout:
            raise node.unsupported("dropout between recurrent layers")
        states = list(hx) if isinstance(hx, tuple | list) else [hx]
        directions = 2 if bidirectional else 1
        each = len(params) // (layers * directions)
        y = node.make("permute_dims", x, axes=(1, 0, 2)) if batch_first else x
        functions = [lambda v, name=name: node.make(name, v) for name in activations]
        last: list[list[Any]] = []
        for layer in range(layers):
            outputs = []
            for d in range(directions):
                k = layer * directions + d
                cell = _cell(node, kind, params[k * each : (k + 1) * each], has_biases, functions)
                after, out = cell.run(y, [at(node, s, k) for s in states], d == 1)
                last.append(after)
                outputs.append(out)
            y = outputs[0] if directions == 1 else node.make("concat", graph.Tuple(tuple(outputs)), axis=2)
        y = node.make("permute_dims", y, axes=(1, 0, 2)) if batch_first else y
        return (y, *(stacked(node, column) for column in zip(*last, strict=True)))

    return convert


def _cell(node: NodeContext, kind: str, params: Sequence[Any], has_biases: bool, activations: Sequence[Callable[[Any], Any]]) -> Cell:
    """One direction of a layer; a last parameter beyond weights and biases is an LSTM's projection."""
    weights = [_in_order(node, kind, p) for p in params[: 4 if has_biases else 2]]
    w, r, wb, rb = weights if has_biases else (*weights, None, None)
    projection = params[-1] if len(params) > len(weights) else None
    return Cell(node, kind, w, r, wb, rb, activations, _loop, resets_products=True, projection=projection)


def _in_order(node: NodeContext, kind: str, x: Any) -> Any:
    """Weights or biases with their gates in ONNX's order."""
    if kind == "RNN":
        return x
    size = tir.floordiv(x.sinfo.shape[0], tir.index_const(GATES[kind]))
    return node.make("concat", graph.Tuple(tuple(cut(node, x, size * k, size * (k + 1)) for k in _ORDERS[kind])), axis=0)


for _kind, _name, *_functions in (("RNN", "rnn_tanh", "tanh"), ("RNN", "rnn_relu", "nn.relu"), ("GRU", "gru", "sigmoid", "tanh"),
                                  ("LSTM", "lstm", "sigmoid", "tanh", "tanh")):
    converter(f"{_name}.input")(_recurrent(_kind, *_functions))
