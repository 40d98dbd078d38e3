# SPDX-License-Identifier: Apache-2.0
"""Activation functions, evaluated in float32 at least; gelu is exact (by erf), gelu_tanh its approximation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axis_of, fail, same, same_dtype, static, tensor_info
from .elementwise import binary, unary, widen
from .unary import reference_erf

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _relu_like(x: Any) -> Any:
    return te.max_(x, tir.const(0, x.dtype))


def _softplus(x: Any) -> Any:
    return te.max_(x, 0.0) + te.log1p(te.exp(-te.abs(x)))


def _np_softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def _np_sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x.astype(np.float64)))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + te.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return te.min_(te.max_(x * alpha + beta, 0.0), 1.0)


def _np_hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    return np.clip(x * alpha + beta, 0, 1)


def _elu(x: Any, alpha: float = 1.0, gamma: float = 1.0, scale: float = 1.0) -> Any:
    return gamma * te.select(x > 0.0, x, alpha * te.expm1(te.min_(x, 0.0) * (1 / scale)))


def _np_elu(x: np.ndarray, alpha: float = 1.0, gamma: float = 1.0, scale: float = 1.0) -> np.ndarray:
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / scale))


unary("nn.relu", _relu_like, lambda x: np.maximum(x, 0), accepts="number", widen=False)
unary(
    "nn.relu6",
    lambda x: te.min_(_relu_like(x), tir.const(6, x.dtype)),
    lambda x: np.clip(x, 0, 6),
    accepts="number",
    widen=False,
)
unary(
    "nn.leakyrelu",
    lambda x, alpha: te.select(x >= 0.0, x, x * alpha),
    lambda x, alpha: np.where(x >= 0, x, x * alpha),
    attributes={"alpha": 0.01},
)
unary(
    "nn.gelu",
    lambda x: 0.5 * x * (1.0 + te.erf(x * math.sqrt(0.5))),
    lambda x: 0.5 * x * (1 + reference_erf(x * math.sqrt(0.5))),
)
unary("nn.gelu_tanh", _gelu_tanh, lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
unary("nn.silu", lambda x: x * te.sigmoid(x), lambda x: x * _np_sigmoid(x))
unary("nn.hardsigmoid", _hard_sigmoid, _np_hard_sigmoid, attributes={"alpha": 1 / 6, "beta": 0.5})
unary("nn.hardswish", lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5), lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
unary(
    "nn.hardtanh",
    lambda x, min_val, max_val: te.min_(te.max_(x, min_val), max_val),
    lambda x, min_val, max_val: np.clip(x, min_val, max_val),
    attributes={"min_val": -1.0, "max_val": 1.0},
)
unary("nn.elu", _elu, _np_elu, attributes={"alpha": 1.0})
unary("nn.selu", _elu, _np_elu, attributes={"alpha": _SELU_ALPHA, "gamma": _SELU_GAMMA})
unary(
    "nn.celu",
    lambda x, alpha: _elu(x, alpha, 1.0, alpha),
    lambda x, alpha: _np_elu(x, alpha, 1.0, alpha),
    attributes={"alpha": 1.0},
)
unary(
    "nn.softplus",
    lambda x, beta, threshold: te.select(x * beta > threshold, x, _softplus(x * beta) * (1 / beta)),
    lambda x, beta, threshold: np.where(x * beta > threshold, x, _np_softplus(x * beta) / beta),
    attributes={"beta": 1.0, "threshold": 20.0},
)
unary("nn.softsign", lambda x: x / (1.0 + te.abs(x)), lambda x: x / (1 + np.abs(x)))
unary("nn.mish", lambda x: x * te.tanh(_softplus(x)), lambda x: x * np.tanh(_np_softplus(x)))
unary("nn.log_sigmoid", lambda x: -_softplus(-x), lambda x: -np.logaddexp(0, -x))
unary(
    "nn.thresholded_relu",
    lambda x, alpha: te.select(x > alpha, x, 0.0),
    lambda x, alpha: np.where(x > alpha, x, 0),
    attributes={"alpha": 1.0},
    doc="x where it is above alpha, else 0",
)
unary(
    "nn.shrink",
    lambda x, lambd, bias: te.select(x < -lambd, x + bias, te.select(x > lambd, x - bias, 0.0)),
    lambda x, lambd, bias: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
    attributes={"lambd": 0.5, "bias": 0.0},
    doc="x moved toward 0 by bias where it is beyond lambd, else 0",
)
unary(
    "nn.swish",
    lambda x, beta: x * te.sigmoid(x * beta),
    lambda x, beta: x * _np_sigmoid(x * beta),
    attributes={"beta": 1.0},
    doc="x * sigmoid(beta * x)",
)

binary(
    "nn.prelu_broadcast",
    lambda x, slope: te.select(x < 0.0, x * slope, x),
    lambda x, slope: np.where(x < 0, x * slope, x),
    doc="x where it is not negative, else x * slope; the slope broadcasts",
)


@register
class PRelu(OpDef):
    """x where it is positive, else alpha * x; ``alpha`` has one slope, or one per position of ``axis``."""

    name, operands, attributes, kind = "nn.prelu", ("data", "alpha"), {"axis": 1}, FuseKind.BROADCAST

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, alpha = (tensor_info(self, a, args) for a in args)
        dtype = same_dtype(self, (data, alpha))
        if alpha.ndim not in (-1, 1):
            fail(self, f"alpha has {alpha.ndim} dimensions, not 1", *args)
        if data.shape is not None and alpha.shape is not None:
            axis = axis_of(self, attrs["axis"], data.ndim, *args)
            if static(alpha.shape[0]) != 1 and not same(alpha.shape[0], data.shape[axis]):
                fail(self, f"alpha does not have one slope per position of axis {axis}", *args)
        return data.replace(dtype=dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, alpha = args
        axis = attrs["axis"] % len(data.shape)
        slope: Callable[..., Any] = lambda i: alpha[i[axis] if static(alpha.shape[0]) != 1 else 0]
        fn = te.widened(lambda x, a: te.select(x > 0.0, x, x * a))
        return te.compute(data.shape, lambda *i: fn(data(*i), slope(i)), "prelu")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, alpha = map(widen, args)
        shape = [-1 if k == attrs["axis"] % data.ndim else 1 for k in range(data.ndim)]
        return np.where(data > 0, data, data * alpha.reshape(shape)).astype(args[0].dtype)


@register
class Dropout(OpDef):
    """Nothing at inference: the data itself, and a mask of ones."""

    name = "nn.dropout"
    operands = ("data",)
    attributes = {"rate": 0.5}
    num_outputs = 2

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return graph.TupleInfo((args[0], args[0]))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0]
        return [te.compute(x.shape, lambda *i: x(*i), "kept"), te.compute(x.shape, lambda *i: tir.const(1, x.dtype), "mask")]

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return args[0], np.ones_like(args[0])
