# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir
from roundel.ir.dtype import BOOL

from .elementwise import unary


def _each(fn: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of Python floats on arrays, in float64."""
    every = np.vectorize(fn, otypes=[np.float64])
    return lambda x: every(x) if x.size else np.zeros(x.shape)


def _lgamma(x: float) -> float:
    """The C function: infinite at 0 and negative integers."""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


reference_erf = _each(math.erf)


def _sign(x: Any) -> Any:
    """-1, 0 or 1; NaN stays NaN."""
    one = tir.const(1, x.dtype)
    if x.dtype.kind == "uint":
        return te.select(x > 0, one, x)
    return te.select(x > 0, one, te.select(x < 0, tir.const(-1, x.dtype), x))


def _abs(x: Any) -> Any:
    if x.dtype.is_float:
        return te.abs(x)
    return x if x.dtype.kind == "uint" else te.select(x < 0, -x, x)


_FLOATS = {
    "exp": (te.exp, np.exp),
    "log": (te.log, np.log),
    "log1p": (te.log1p, np.log1p),
    "expm1": (te.expm1, np.expm1),
    "log2": (te.log2, np.log2),
    "log10": (te.log10, np.log10),
    "sqrt": (te.sqrt, np.sqrt),
    "rsqrt": (te.rsqrt, lambda x: 1 / np.sqrt(x)),
    "sin": (te.sin, np.sin),
    "cos": (te.cos, np.cos),
    "tan": (te.tan, np.tan),
    "asin": (te.asin, np.arcsin),
    "acos": (te.acos, np.arccos),
    "atan": (te.atan, np.arctan),
    "sinh": (te.sinh, np.sinh),
    "cosh": (te.cosh, np.cosh),
    "tanh": (te.tanh, np.tanh),
    "asinh": (te.asinh, np.arcsinh),
    "acosh": (te.acosh, np.arccosh),
    "atanh": (te.atanh, np.arctanh),
    "erf": (te.erf, reference_erf),
    "sigmoid": (te.sigmoid, lambda x: 0.5 * (1 + np.tanh(0.5 * x.astype(np.float64)))),
    "exp2": (te.exp2, np.exp2),
    "erfc": (te.erfc, _each(math.erfc)),
    "lgamma": (te.lgamma, _each(_lgamma)),
    "reciprocal": (lambda x: 1.0 / x, lambda x: 1 / x),
}
for _name, (_fn, _ref) in _FLOATS.items():
    unary(_name, _fn, _ref)

_ROUNDING = {
    "floor": (te.floor, np.floor),
    "ceil": (te.ceil, np.ceil),
    "trunc": (te.trunc, np.trunc),
    "round": (te.nearbyint, np.rint),
}
for _name, (_fn, _ref) in _ROUNDING.items():
    unary(
        _name,
        (lambda x, f=_fn: f(x) if x.dtype.is_float else x),
        _ref,
        accepts="number",
        doc=f"{_name} (round: half to even); integers are left alone",
    )

unary("negative", lambda x: -x, np.negative, accepts="number", widen=False)
unary("abs", _abs, np.abs, accepts="number", widen=False)
unary("sign", _sign, np.sign, accepts="number", widen=False)
unary("square", lambda x: x * x, np.square, accepts="number", widen=False)
unary("logical_not", te.logical_not, np.logical_not, accepts="bool")
unary("bitwise_not", lambda x: ~x, np.invert, accepts="bits")
unary("isnan", te.isnan, np.isnan, result=BOOL)
unary("isinf", te.isinf, np.isinf, result=BOOL)
unary("isfinite", te.isfinite, np.isfinite, result=BOOL)
