# SPDX-License-Identifier: Apache-2.0
"""ONNX's preview training operators: one step of an optimiser, for any number of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import graph
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like

_DOMAIN = "ai.onnx.preview.training"


class _Math:
    """Arithmetic of a node in infix form's order: tensors, or numbers as constants of the first tensor's dtype."""

    def __init__(self, node: NodeContext, like: Any) -> None:
        self.node, self.like = node, like

    def __call__(self, op: str, a: Any, b: Any = None) -> Any:
        args = [const_like(v, self.like) if isinstance(v, int | float) else v for v in (a, b) if v is not None]
        return self.node.make(op, *args)


def _scalar(node: NodeContext, v: Value, like: Any) -> Any:
    flat = node.make("reshape", v.expr, graph.ShapeExpr(()))
    return flat if flat.sinfo.dtype == like.sinfo.dtype else node.make("astype", flat, dtype=like.sinfo.dtype)


def _optimiser(name: str, kinds: int, step: Callable[..., list[Any]]) -> None:
    """``kinds`` groups of inputs (tensors, gradients, states ...) after the rate and the count of updates; all but gradients come out."""

    def convert(node: NodeContext, rate: Value, count: Value, *inputs: Value) -> Any:
        n = len(inputs) // kinds
        rows = []
        for k in range(n):
            values = [inputs[k + n * g].expr for g in range(kinds)]
            m = _Math(node, values[0])
            rows.append(step(node, m, _scalar(node, rate, values[0]), _scalar(node, count, values[0]), *values))
        return tuple(v for column in zip(*rows, strict=True) for v in column)

    converter(name, domain=_DOMAIN)(convert)


def _adagrad(node: NodeContext, m: _Math, rate: Any, count: Any, x: Any, g: Any, h: Any) -> list[Any]:
    rate = m("divide", rate, m("add", m("multiply", count, node.attr("decay_factor", 0.0)), 1))
    g = m("add", m("multiply", x, node.attr("norm_coefficient", 0.0)), g)
    h = m("add", h, m("multiply", g, g))
    return [m("subtract", x, m("divide", m("multiply", rate, g), m("add", m("sqrt", h), node.attr("epsilon", 1e-6)))), h]


def _momentum(node: NodeContext, m: _Math, rate: Any, count: Any, x: Any, g: Any, v: Any) -> list[Any]:
    alpha, beta = node.attr("alpha"), node.attr("beta")
    g = m("add", m("multiply", x, node.attr("norm_coefficient")), g)
    first = m("equal", count, 0)
    share = m.node.make("where", first, const_like(1.0, x), const_like(beta, x))
    v = m("add", m("multiply", v, alpha), m("multiply", g, share))
    move = m("add", g, m("multiply", v, alpha)) if node.attr("mode") == "nesterov" else v
    return [m("subtract", x, m("multiply", rate, move)), v]


def _adam(node: NodeContext, m: _Math, rate: Any, count: Any, x: Any, g: Any, v: Any, h: Any) -> list[Any]:
    alpha, beta = node.attr("alpha", 0.9), node.attr("beta", 0.999)
    g = m("add", m("multiply", x, node.attr("norm_coefficient", 0.0)), g)
    v = m("add", m("multiply", v, alpha), m("multiply", g, float(np.float32(1) - np.float32(alpha))))
    h = m("add", m("multiply", h, beta), m("multiply", m("multiply", g, g), float(np.float32(1) - np.float32(beta))))
    left = m("subtract", 1, m("power", const_like(beta, x), count))
    right = m("subtract", 1, m("power", const_like(alpha, x), count))
    adjusted = m("divide", m("multiply", rate, m("sqrt", left)), right)
    rate = node.make("where", m("greater", count, 0), adjusted, rate)
    x = m("subtract", x, m("divide", m("multiply", rate, v), m("add", m("sqrt", h), node.attr("epsilon", 1e-6))))
    return [m("multiply", x, 1.0 - node.attr("norm_coefficient_post", 0.0)), v, h]


_optimiser("Adagrad", 3, _adagrad)
_optimiser("Momentum", 3, _momentum)
_optimiser("Adam", 4, _adam)
