# SPDX-License-Identifier: Apache-2.0
"""Gradients of elementwise operators: a derivative ``d(x, y)`` by the operand x, given the result y, or a rule for those of several operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...ops import make
from .rules import RULES, Step, nothing, number, rule

_SQRT_2 = math.sqrt(2.0)
_SLOPE = math.sqrt(2.0 / math.pi)  # of the tanh form of gelu, with its cubic term's factor
_CUBIC = 0.044715
_where = lambda condition, x, y: make("where", condition, x, y)
_exp = lambda x: make("exp", x)
_sigmoid = lambda x: make("sigmoid", x)
_above = lambda x, limit: make("greater", x, number(limit, x))
_below = lambda x, limit: make("less", x, number(limit, x))


def _between(x: Any, low: float, high: float, slope: float = 1.0) -> Any:
    return _where(make("logical_and", _above(x, low), _below(x, high)), number(slope, x), nothing(x))


def _normal(x: Any) -> Any:
    """The density of the normal distribution."""
    return _exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))


def _gelu_tanh(x: Any) -> Any:
    t = make("tanh", (x + x * x * x * _CUBIC) * _SLOPE)
    return (t + 1.0) * 0.5 + x * (1.0 - t * t) * (x * x * (3.0 * _CUBIC) + 1.0) * (0.5 * _SLOPE)


def _mish(x: Any) -> Any:
    t = make("tanh", make("nn.softplus", x))
    return t + x * (1.0 - t * t) * _sigmoid(x)


def _hardswish(x: Any) -> Any:
    return _where(_below(x, -3.0), nothing(x), _where(_above(x, 3.0), number(1.0, x), x / 3.0 + 0.5))


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "abs": lambda x, y: make("sign", x),
    "acos": lambda x, y: -make("rsqrt", 1.0 - x * x),
    "acosh": lambda x, y: make("rsqrt", x * x - 1.0),
    "asin": lambda x, y: make("rsqrt", 1.0 - x * x),
    "asinh": lambda x, y: make("rsqrt", x * x + 1.0),
    "atan": lambda x, y: make("reciprocal", x * x + 1.0),
    "atanh": lambda x, y: make("reciprocal", 1.0 - x * x),
    "cos": lambda x, y: -make("sin", x),
    "cosh": lambda x, y: make("sinh", x),
    "erf": lambda x, y: _exp(-(x * x)) * (2.0 / math.sqrt(math.pi)),
    "erfc": lambda x, y: _exp(-(x * x)) * (-2.0 / math.sqrt(math.pi)),
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2.0),
    "expm1": lambda x, y: y + 1.0,
    "log": lambda x, y: make("reciprocal", x),
    "log10": lambda x, y: make("reciprocal", x) * (1.0 / math.log(10.0)),
    "log1p": lambda x, y: make("reciprocal", x + 1.0),
    "log2": lambda x, y: make("reciprocal", x) * (1.0 / math.log(2.0)),
    "negative": lambda x, y: number(-1.0, x),
    "reciprocal": lambda x, y: -(y * y),
    "rsqrt": lambda x, y: y * y * y * -0.5,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "sin": lambda x, y: make("cos", x),
    "sinh": lambda x, y: make("cosh", x),
    "sqrt": lambda x, y: 0.5 / y,
    "square": lambda x, y: x * 2.0,
    "tan": lambda x, y: y * y + 1.0,
    "tanh": lambda x, y: 1.0 - y * y,
    "nn.relu": lambda x, y: _where(_above(x, 0.0), number(1.0, x), nothing(x)),
    "nn.relu6": lambda x, y: _between(x, 0.0, 6.0),
    "nn.celu": lambda x, y, alpha: _where(_above(x, 0.0), number(1.0, x), _exp(x / alpha)),
    "nn.elu": lambda x, y, alpha: _where(_above(x, 0.0), number(1.0, x), _exp(x) * alpha),
    "nn.gelu": lambda x, y: (make("erf", x / _SQRT_2) + 1.0) * 0.5 + x * _normal(x),
    "nn.gelu_tanh": lambda x, y: _gelu_tanh(x),
    "nn.hardsigmoid": lambda x, y, alpha, beta: _between(y, 0.0, 1.0, alpha),
    "nn.hardswish": lambda x, y: _hardswish(x),
    "nn.hardtanh": lambda x, y, min_val, max_val: _between(x, min_val, max_val),
    "nn.leakyrelu": lambda x, y, alpha: _where(_above(x, 0.0), number(1.0, x), number(alpha, x)),
    "nn.log_sigmoid": lambda x, y: _sigmoid(-x),
    "nn.mish": lambda x, y: _mish(x),
    "nn.selu": lambda x, y, alpha, gamma: _where(_above(x, 0.0), number(gamma, x), _exp(x) * (alpha * gamma)),
    "nn.shrink": lambda x, y, lambd, bias: _where(_above(make("abs", x), lambd), number(1.0, x), nothing(x)),
    "nn.silu": lambda x, y: _sigmoid(x) * (x * (1.0 - _sigmoid(x)) + 1.0),
    "nn.swish": lambda x, y, beta: _sigmoid(x * beta) * (x * beta * (1.0 - _sigmoid(x * beta)) + 1.0),
    "nn.softplus": lambda x, y, beta, threshold: _where(_above(x * beta, threshold), number(1.0, x), _sigmoid(x * beta)),
    "nn.softsign": lambda x, y: make("reciprocal", make("square", make("abs", x) + 1.0)),
    "nn.thresholded_relu": lambda x, y, alpha: _where(_above(x, alpha), number(1.0, x), nothing(x)),
}
CONSTANT = ("ceil", "floor", "round", "sign", "trunc", "floor_divide", "trunc_divide", "zeros_like", "ones_like", "full_like", "argmax", "argmin",
            "argsort", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "shape_of", "size", "one_hot")
"""Operators whose result does not change where an operand changes a little."""


def _unary(s: Step, g: Any) -> Sequence[Any]:
    return (g * DERIVATIVES[s.call.op.name](s.args[0], s.out, **s.attrs),)


RULES.update(dict.fromkeys(DERIVATIVES, _unary))
RULES.update(dict.fromkeys(CONSTANT, lambda s, g: [None] * len(s.args)))


@rule("add")
def add(s: Step, g: Any) -> Sequence[Any]:
    """d(x + y)"""
    return g, g


@rule("subtract")
def subtract(s: Step, g: Any) -> Sequence[Any]:
    """d(x - y)"""
    return g, -g


@rule("multiply")
def multiply(s: Step, g: Any) -> Sequence[Any]:
    """d(x y)"""
    x, y = s.args
    return g * y, g * x


@rule("divide")
def divide(s: Step, g: Any) -> Sequence[Any]:
    """d(x / y)"""
    return g / s.args[1], -(g * s.out / s.args[1])


@rule("power")
def power(s: Step, g: Any) -> Sequence[Any]:
    """d(x ** y): where x is not positive nothing is known of y's, which is 0 there"""
    x, y = s.args
    logarithm = make("log", _where(_above(x, 0.0), x, number(1.0, x)))
    return _where(make("equal", y, nothing(y)), nothing(x), g * y * make("power", x, y - 1.0)), g * s.out * logarithm


@rule("maximum")
def maximum(s: Step, g: Any) -> Sequence[Any]:
    """To the larger operand, the first of two that are equal"""
    first = s.emit(make("greater_equal", *s.args))
    return _where(first, g, nothing(g)), _where(first, nothing(g), g)


@rule("minimum")
def minimum(s: Step, g: Any) -> Sequence[Any]:
    """To the smaller operand, the first of two that are equal"""
    first = s.emit(make("less_equal", *s.args))
    return _where(first, g, nothing(g)), _where(first, nothing(g), g)


@rule("where")
def where(s: Step, g: Any) -> Sequence[Any]:
    """To the operand that was taken"""
    return None, _where(s.args[0], g, nothing(g)), _where(s.args[0], nothing(g), g)


@rule("clip")
def clip(s: Step, g: Any) -> Sequence[Any]:
    """Of what was inside the bounds or on them"""
    return _where(make("equal", s.args[0], s.out), g, nothing(g)), None, None


@rule("atan2")
def atan2(s: Step, g: Any) -> Sequence[Any]:
    """The angle of (y, x), which has none at the origin: 0 there"""
    y, x = s.args
    square = s.emit(x * x + y * y)
    scaled = s.emit(_where(_above(square, 0.0), g / square, nothing(g)))
    return scaled * x, -(scaled * y)


@rule("log_add_exp")
def log_add_exp(s: Step, g: Any) -> Sequence[Any]:
    """d log(exp(x) + exp(y))"""
    x, y = s.args
    return g * _exp(x - s.out), g * _exp(y - s.out)


@rule("floor_mod")
def floor_mod(s: Step, g: Any) -> Sequence[Any]:
    """d(x - y floor(x / y))"""
    x, y = s.args
    return g, -(g * make("floor", x / y))


@rule("mod")
def mod(s: Step, g: Any) -> Sequence[Any]:
    """d(x - y trunc(x / y))"""
    x, y = s.args
    return g, -(g * make("trunc", x / y))


@rule("ewise_fma")
def ewise_fma(s: Step, g: Any) -> Sequence[Any]:
    """d(x y + z)"""
    x, y, _ = s.args
    return g * y, g * x, g


@rule("nn.prelu_broadcast")
def prelu_broadcast(s: Step, g: Any) -> Sequence[Any]:
    """x where it is positive, else x slope"""
    x, slope = s.args
    positive = s.emit(_above(x, 0.0))
    return _where(positive, g, g * slope), _where(positive, nothing(g), g * x)


@rule("astype")
def astype(s: Step, g: Any) -> Sequence[Any]:
    """In the operand's type, to which the caller converts it"""
    return (g,)
