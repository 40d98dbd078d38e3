# SPDX-License-Identifier: Apache-2.0
"""Normalisation and softmax: statistics in float32 at least, variance in two passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axes_of, axis_of, dim_text, fail, fill, same, same_dtype, simplify, tensor_info
from .elementwise import label, widen
from .reduce import at_reduced, count_of, reduce_te

Stats = tuple[te.Tensor, te.Tensor]


def moments(x: te.Tensor, axes: Sequence[int], name: str) -> Stats:
    """Mean and variance over ``axes`` (dropped), in the accumulator's type."""
    wide, axes = te.accumulator(x.dtype), sorted(axes)
    count = count_of(x, axes, wide)
    total = reduce_te(x, axes, te.sum, name=name + "_sum", before=lambda v: te.cast(v, wide), identity=0)
    mean = te.compute(total.shape, lambda *i: total(*i) / count, name + "_mean")
    shape = [s for k, s in enumerate(x.shape) if k not in axes]
    ks = [te.reduce_axis(x.shape[a], f"k{a}") for a in axes]

    def deviation(*at: Any) -> Any:
        rest, inner = iter(at), iter(ks)
        index = [next(inner).var if k in axes else next(rest) for k in range(len(x.shape))]
        d = te.cast(x(*index), wide) - mean(*at)
        return te.sum(d * d, axis=ks)

    squares = te.compute(shape, deviation, name + "_squares")
    return mean, te.compute(squares.shape, lambda *i: squares(*i) / count, name + "_variance")


def _np_moments(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


def _along(v: np.ndarray, axes: Sequence[int], ndim: int) -> np.ndarray:
    """``v``, whose dimensions are ``axes`` of a tensor of ``ndim``, ready to broadcast with it."""
    order = np.argsort(axes)
    return np.transpose(v, order).reshape([v.shape[list(axes).index(k)] if k in axes else 1 for k in range(ndim)])


class _Norm(OpDef):
    """Base: x normalised, then scaled by gamma and shifted by beta, whose dimensions are ``parameter_axes`` of x."""

    kind = FuseKind.REDUCTION
    operands = ("data", "gamma?", "beta?")

    def parameter_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        """The dimensions of data that gamma and beta run along."""
        raise NotImplementedError

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, *params = fill(args, len(self.operands))
        tensor_info(self, data, args)
        same_dtype(self, [i for i in (data, *params) if i is not None and i.dtype != "float32"])
        if data.shape is not None:
            axes = self.parameter_axes(data.ndim, attrs)
            for p in params:
                if p is not None and p.shape is not None:
                    self._fits(data, p, axes, args)
        return data

    def _fits(self, data: Any, p: Any, axes: tuple[int, ...], infos: Any) -> None:
        wanted = [data.shape[a] for a in axes]
        if len(p.shape) != len(wanted) or not all(map(same, p.shape, wanted)):
            fail(self, f"a parameter does not have the shape ({', '.join(map(dim_text, wanted))})", *infos)

    def scaled(self, x: te.Tensor, normal: Callable[..., Any], gamma: Any, beta: Any, attrs: Attrs) -> te.Tensor:
        """The last stage."""
        axes, wide = self.parameter_axes(len(x.shape), attrs), te.accumulator(x.dtype)

        def body(*at: Any) -> Any:
            out = normal(te.cast(x(*at), wide), at)
            here = tuple(at[a] for a in axes)
            if gamma is not None and attrs.get("scale", True):
                out = out * te.cast(gamma(*here), wide)
            if beta is not None and attrs.get("center", True):
                out = out + te.cast(beta(*here), wide)
            return te.cast(out, x.dtype)

        return te.compute(x.shape, body, label(self))

    def np_scaled(self, normal: np.ndarray, gamma: Any, beta: Any, attrs: Attrs, dtype: Any) -> np.ndarray:
        """The same with NumPy."""
        axes = self.parameter_axes(normal.ndim, attrs)
        if gamma is not None and attrs.get("scale", True):
            normal = normal * _along(widen(gamma), axes, normal.ndim)
        if beta is not None and attrs.get("center", True):
            normal = normal + _along(widen(beta), axes, normal.ndim)
        return normal.astype(dtype)


class _Standardized(_Norm):
    """(x - mean) / sqrt(variance + epsilon), scaled by gamma, plus beta."""

    def reduced_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        """The dimensions of data over which mean and variance are taken."""
        return self.parameter_axes(ndim, attrs)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta = fill(args, 3)
        axes = self.reduced_axes(len(x.shape), attrs)
        mean, variance = moments(x, axes, label(self))
        normal = lambda v, at: (
            (v - mean(*at_reduced(at, axes))) * te.rsqrt(variance(*at_reduced(at, axes)) + attrs["epsilon"])
        )
        return self.scaled(x, normal, gamma, beta, attrs)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta = fill(args, 3)
        wide = widen(x)
        mean, var = _np_moments(wide, self.reduced_axes(x.ndim, attrs))
        return self.np_scaled((wide - mean) / np.sqrt(var + attrs["epsilon"]), gamma, beta, attrs, x.dtype)


@register
class LayerNorm(_Standardized):
    """Normalised over ``axes``, along which gamma and beta run."""

    name, attributes = "nn.layer_norm", {"axes": (-1,), "epsilon": 1e-5, "center": True, "scale": True}

    def parameter_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        return axes_of(self, attrs["axes"], ndim)


@register
class RMSNorm(_Norm):
    """x / sqrt(mean of squares + epsilon) over ``axes``, scaled by weight (which runs along them)."""

    name, operands, attributes = "nn.rms_norm", ("data", "weight?"), {"axes": (-1,), "epsilon": 1e-5}

    def parameter_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        return axes_of(self, attrs["axes"], ndim)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, weight = fill(args, 2)
        axes, wide = self.parameter_axes(len(x.shape), attrs), te.accumulator(x.dtype)
        squares = reduce_te(
            x, axes, te.sum, name="rms_norm_squares", identity=0, before=lambda v: te.cast(v, wide) * te.cast(v, wide)
        )
        count = count_of(x, axes, wide)
        normal = lambda v, at: v * te.rsqrt(squares(*at_reduced(at, axes)) / count + attrs["epsilon"])
        return self.scaled(x, normal, weight, None, attrs)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, weight = fill(args, 2)
        wide = widen(x)
        mean = np.mean(wide * wide, self.parameter_axes(x.ndim, attrs), keepdims=True)
        return self.np_scaled(wide / np.sqrt(mean + attrs["epsilon"]), weight, None, attrs, x.dtype)


@register
class InstanceNorm(_Standardized):
    """Normalised over ``axes`` for each batch entry and channel; gamma and beta run along ``channel_axis``."""

    name, attributes = (
        "nn.instance_norm",
        {"channel_axis": 1, "axes": None, "epsilon": 1e-5, "center": True, "scale": True},
    )

    def parameter_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        return (axis_of(self, attrs["channel_axis"], ndim),)

    def reduced_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        if attrs["axes"] is not None:
            return axes_of(self, attrs["axes"], ndim)
        return tuple(k for k in range(1, ndim) if k != attrs["channel_axis"] % ndim)


@register
class GroupNorm(_Norm):
    """Channels in ``num_groups`` groups; each normalised together with ``axes`` (all after the channels by default)."""

    name, attributes = (
        "nn.group_norm",
        {
            "num_groups": ...,
            "channel_axis": 1,
            "axes": None,
            "epsilon": 1e-5,
            "center": True,
            "scale": True,
        },
    )

    def parameter_axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        return (axis_of(self, attrs["channel_axis"], ndim),)

    def _axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        channel = attrs["channel_axis"] % ndim
        if attrs["axes"] is None:
            return tuple(k for k in range(1, ndim) if k != channel)
        return tuple(a for a in axes_of(self, attrs["axes"], ndim) if a != channel)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta = fill(args, 3)
        c = attrs["channel_axis"] % len(x.shape)
        each = simplify(tir.floordiv(x.shape[c], attrs["num_groups"]))
        split = te.compute(
            (*x.shape[:c], attrs["num_groups"], each, *x.shape[c + 1 :]),
            lambda *i: x(*i[:c], i[c] * each + i[c + 1], *i[c + 2 :]),
            "group_norm_groups",
        )
        axes = tuple(a + (a > c) for a in self._axes(len(x.shape), attrs)) + (c + 1,)
        mean, variance = moments(split, axes, "group_norm")

        def normal(v: Any, at: Any) -> Any:
            here = at_reduced((*at[:c], tir.floordiv(at[c], each), at[c], *at[c + 1 :]), axes)
            return (v - mean(*here)) * te.rsqrt(variance(*here) + attrs["epsilon"])

        return self.scaled(x, normal, gamma, beta, attrs)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta = fill(args, 3)
        c, g = attrs["channel_axis"] % x.ndim, attrs["num_groups"]
        wide = widen(x).reshape(*x.shape[:c], g, x.shape[c] // g, *x.shape[c + 1 :])
        mean, var = _np_moments(wide, tuple(a + (a > c) for a in self._axes(x.ndim, attrs)) + (c + 1,))
        normal = ((wide - mean) / np.sqrt(var + attrs["epsilon"])).reshape(x.shape)
        return self.np_scaled(normal, gamma, beta, attrs, x.dtype)


@register
class BatchNorm(OpDef):
    """Normalised by moving statistics (or, when training, by those of the batch) per position of ``axis``.

    The result is (normalised data, new moving mean, new moving variance).
    """

    name, operands, attributes = (
        "nn.batch_norm",
        ("data", "gamma", "beta", "moving_mean", "moving_var"),
        {
            "axis": 1,
            "epsilon": 1e-5,
            "center": True,
            "scale": True,
            "momentum": 0.1,
            "training": False,
        },
    )
    kind = FuseKind.BROADCAST
    num_outputs = 3

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, *rest = (tensor_info(self, a, args) for a in args)
        if data.shape is not None:
            axis = axis_of(self, attrs["axis"], data.ndim, *args)
            for p in rest:
                if p.shape is not None and not (p.ndim == 1 and same(p.shape[0], data.shape[axis])):
                    fail(self, f"a parameter does not have {dim_text(data.shape[axis])} elements", *args)
        return graph.TupleInfo((data, rest[2], rest[3]))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta, mean, var = args
        axis, wide = attrs["axis"] % len(x.shape), te.accumulator(x.dtype)
        used = (mean, var)
        if attrs["training"]:
            used = moments(x, tuple(k for k in range(len(x.shape)) if k != axis), "batch_norm")

        def body(*at: Any) -> Any:
            m, v, g, b = (te.cast(t(at[axis]), wide) for t in (*used, gamma, beta))
            out = (te.cast(x(*at), wide) - m) * te.rsqrt(v + attrs["epsilon"])
            out = out * g if attrs["scale"] else out
            return te.cast(out + b if attrs["center"] else out, x.dtype)

        def moved(old: te.Tensor, new: te.Tensor) -> te.Tensor:
            rate = attrs["momentum"] if attrs["training"] else 0.0
            keep = lambda i: te.cast(old(i), wide) * (1 - rate) + te.cast(new(i), wide) * rate
            return te.compute(
                old.shape, (lambda i: te.cast(keep(i), old.dtype)) if rate else (lambda i: old(i)), "moved"
            )

        return te.compute(x.shape, body, "batch_norm"), moved(mean, used[0]), moved(var, used[1])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, gamma, beta, mean, var = map(widen, args)
        axis = attrs["axis"] % x.ndim
        wide = lambda v: v.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        m, v = mean, var
        if attrs["training"]:
            m, v = (s.reshape(-1) for s in _np_moments(x, tuple(k for k in range(x.ndim) if k != axis)))
        out = (x - wide(m)) / np.sqrt(wide(v) + attrs["epsilon"])
        out = out * wide(gamma) if attrs["scale"] else out
        out = out + wide(beta) if attrs["center"] else out
        rate = attrs["momentum"] if attrs["training"] else 0.0
        new = [(o * (1 - rate) + n * rate).astype(a.dtype) for o, n, a in zip((mean, var), (m, v), args[3:])]
        return (out.astype(args[0].dtype), *new)


@register
class LRN(OpDef):
    """x / (bias + alpha / size * sum of squares over ``size`` neighbours along ``axis``) ^ beta."""

    kind = FuseKind.REDUCTION
    name, operands, attributes = "nn.lrn", ("data",), {"size": 5, "axis": 1, "bias": 2.0, "alpha": 1e-5, "beta": 0.75}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tensor_info(self, args[0], args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axis, size, wide = attrs["axis"] % len(x.shape), attrs["size"], te.accumulator(x.dtype)
        k, before = te.reduce_axis(size, "k"), (size - 1) // 2
        move = lambda at, by: tuple(i + by if d == axis else i for d, i in enumerate(at))

        def square(*at: Any) -> Any:
            there = at[axis] + k.var - before
            inside = te.logical_and(there >= 0, there < x.shape[axis])
            v = te.cast(te.if_then_else(inside, x(*move(at, k.var - before)), tir.const(0, x.dtype)), wide)
            return te.sum(v * v, axis=k)

        total = te.compute(x.shape, square, "lrn_squares")
        scale = lambda at: te.power(attrs["bias"] + attrs["alpha"] / size * total(*at), tir.const(attrs["beta"], wide))
        return te.compute(x.shape, lambda *at: te.cast(te.cast(x(*at), wide) / scale(at), x.dtype), "lrn")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = np.moveaxis(widen(args[0]), attrs["axis"], 0)
        size, total = attrs["size"], np.zeros_like(x)
        for d in range(-((size - 1) // 2), size // 2 + 1):
            lo, hi = max(0, -d), min(x.shape[0], x.shape[0] - d)
            if hi > lo:
                total[lo:hi] += x[lo + d : hi + d] ** 2
        out = x / (attrs["bias"] + attrs["alpha"] / size * total) ** attrs["beta"]
        return np.moveaxis(out, 0, attrs["axis"]).astype(args[0].dtype)


class _Softmax(OpDef):
    """Base of softmax and its logarithm along ``axis``, from the largest element down.

    That is the largest number: a NaN makes the row NaN through its exponential, which is in the sum.
    """

    operands, attributes, kind = ("data",), {"axis": -1}, FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.dtype is not None and not x.dtype.is_float:
            fail(self, f"data has to be float, not {x.dtype}", *args)
        if x.ndim >= 0:
            axis_of(self, attrs["axis"], x.ndim, *args)
        return x

    def parts(self, x: te.Tensor, attrs: Attrs) -> tuple[Callable[..., Any], te.Tensor, te.Tensor, int]:
        """x minus its maximum (at an index), its exponential, the sum of exponentials, the axis."""
        axis, wide, name = attrs["axis"] % len(x.shape), te.accumulator(x.dtype), label(self)
        top = reduce_te(x, (axis,), te.max_number, name=name + "_max")
        less = lambda at: te.cast(x(*at), wide) - te.cast(top(*at_reduced(at, (axis,))), wide)
        exps = te.compute(x.shape, lambda *at: te.exp_flushed(less(at)), name + "_exp")
        return less, exps, reduce_te(exps, (axis,), te.sum, name=name + "_sum"), axis


@register
class Softmax(_Softmax):
    """exp(x) over the sum of exponentials along ``axis``."""

    name = "nn.softmax"

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        _, exps, total, axis = self.parts(x, attrs)
        share = te.compute(total.shape, lambda *at: 1.0 / total(*at), "softmax_share")  # one division for a row
        return te.compute(x.shape, lambda *at: te.cast(exps(*at) * share(*at_reduced(at, (axis,))), x.dtype), "softmax")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0])
        e = np.exp(x - x.max(attrs["axis"], keepdims=True)) if x.size else x
        return (e / e.sum(attrs["axis"], keepdims=True)).astype(args[0].dtype)


@register
class LogSoftmax(_Softmax):
    """The logarithm of softmax, without forming it."""

    name = "nn.log_softmax"

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        less, _, total, axis = self.parts(x, attrs)
        log = te.compute(total.shape, lambda *at: te.log(total(*at)), "log_softmax_log")  # one logarithm for a row
        return te.compute(x.shape, lambda *at: te.cast(less(at) - log(*at_reduced(at, (axis,))), x.dtype), "log_softmax")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0])
        less = x - x.max(attrs["axis"], keepdims=True) if x.size else x
        return (less - np.log(np.exp(less).sum(attrs["axis"], keepdims=True))).astype(args[0].dtype)


@register
class L2Normalize(OpDef):
    """x / sqrt(max(sum of squares over ``axis``, eps))."""

    name, operands, attributes, kind = "nn.l2_normalize", ("data",), {"axis": -1, "eps": 1e-12}, FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tensor_info(self, args[0], args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axes, wide = axes_of(self, attrs["axis"], len(x.shape)), te.accumulator(x.dtype)
        square = lambda v: te.cast(v, wide) * te.cast(v, wide)
        total = reduce_te(x, axes, te.sum, name="l2_squares", before=square, identity=0)
        scale = lambda at: te.rsqrt(te.max_(total(*at_reduced(at, axes)), attrs["eps"]))
        return te.compute(x.shape, lambda *at: te.cast(te.cast(x(*at), wide) * scale(at), x.dtype), "l2_normalize")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0])
        total = (x * x).sum(axes_of(self, attrs["axis"], x.ndim), keepdims=True)
        return (x / np.sqrt(np.maximum(total, attrs["eps"]))).astype(args[0].dtype)
