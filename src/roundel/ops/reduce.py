# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes: sum, mean, max, variance, norms, logical ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, get_op, register

from .dims import axes_of, fail, same, static, tensor_info
from .elementwise import label, widen

Fn = Callable[[Any], Any]


def reduced_shape(shape: Sequence[Any], axes: Sequence[int], keepdims: bool) -> tuple[tir.Expr, ...]:
    """The shape that is left."""
    one = tir.index_const(1)
    return tuple(one if k in axes else s for k, s in enumerate(shape) if keepdims or k not in axes)


def reduce_te(
    x: te.Tensor,
    axes: Sequence[int],
    reducer: Callable[..., Any],
    *,
    keepdims: bool = False,
    name: str = "reduce",
    before: Fn | None = None,
    identity: Any = None,
) -> te.Tensor:
    """``reducer`` of ``before(element)`` over ``axes``; ``before`` may take the full index as second argument.

    A reduction over no elements gives ``identity``.
    """
    shape = reduced_shape(x.shape, axes, keepdims)
    axes = sorted(axes)  # the contiguous one innermost
    ks = [te.reduce_axis(x.shape[a], f"k{a}") for a in axes]
    value = before or (lambda v: v)

    def body(*at: Any) -> Any:
        rest = iter(at)
        index = []
        for k in range(len(x.shape)):
            if k in axes:
                index.append(ks[axes.index(k)].var)
                if keepdims:
                    next(rest)
            else:
                index.append(next(rest))
        return reducer(value(x(*index)), axis=ks)

    if identity is not None and any(static(x.shape[a]) == 0 for a in axes):
        empty = tir.const(identity, value(x(*[tir.index_const(0)] * len(x.shape))).dtype)
        return te.compute(shape, lambda *i: empty, name)
    return te.compute(shape, body, name)


def count_of(x: te.Tensor, axes: Sequence[int], dtype: Any) -> tir.Expr:
    """The number of elements reduced, as a value of ``dtype``."""
    return te.cast(tir.product_of([x.shape[a] for a in axes]), dtype)


def at_reduced(index: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """The index into a reduction without kept dimensions from one into the whole tensor."""
    return tuple(i for k, i in enumerate(index) if k not in axes)


class Reduction(OpDef):
    """``after(reducer of before(element), count)`` over ``axis`` (one, several, None: all)."""

    operands, attributes, kind = ("x",), {"axis": None, "keepdims": False}, FuseKind.REDUCTION

    def __init__(
        self,
        name: str,
        reducer: Callable[..., Any],
        identity: Any,
        reference: Callable[..., Any],
        *,
        before: Fn | None = None,
        after: Callable[[Any, Any], Any] | None = None,
        accepts: str = "number",
    ) -> None:
        self.name, self.reducer, self.identity, self.reference = name, reducer, identity, reference
        self.before, self.after, self.accepts = before or (lambda v: v), after, accepts
        self.__doc__ = f"{name} over axes"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.dtype is not None and (
            x.dtype.is_bool != (self.accepts == "bool") or (x.dtype.is_int and self.accepts == "float")
        ):
            fail(self, f"x has to be {self.accepts}, not {x.dtype}", *args)
        if x.ndim < 0:
            return graph.TensorInfo(None, x.dtype, x.ndim)
        axes = axes_of(self, attrs["axis"], x.ndim, *args)
        if x.shape is None:
            return graph.TensorInfo(None, x.dtype, x.ndim if attrs["keepdims"] else x.ndim - len(axes))
        return graph.TensorInfo(reduced_shape(x.shape, axes, attrs["keepdims"]), x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axes, keep = axes_of(self, attrs["axis"], len(x.shape)), attrs["keepdims"]
        wide = te.accumulator(x.dtype)
        identity = self.identity(wide) if callable(self.identity) else self.identity
        exact = self.reducer in (te.max, te.min) and self.after is None
        before = self.before if exact else (lambda v: self.before(te.cast(v, wide)))
        out = reduce_te(x, axes, self.reducer, keepdims=keep, name=label(self), before=before, identity=identity)
        if self.after is None and out.dtype is x.dtype:
            return out
        count, after = count_of(x, axes, wide), self.after or (lambda v, n: v)
        return te.compute(out.shape, lambda *i: te.cast(after(out(*i), count), x.dtype), label(self) + "_result")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0])
        axes = tuple(a % x.ndim for a in _tuple(attrs["axis"], x.ndim))
        with np.errstate(all="ignore"):
            out = self.reference(x, axis=axes, keepdims=attrs["keepdims"])
        return np.asarray(out).astype(args[0].dtype)


def _tuple(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(axis) if isinstance(axis, tuple | list) else (axis,)


def _extreme(pick: str) -> Callable[..., np.ndarray]:
    """NumPy's max or min that gives the identity for no elements."""

    def reference(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
        info = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
        start = -np.inf if x.dtype.kind == "f" else info.min
        if pick == "min":
            start = np.inf if x.dtype.kind == "f" else info.max
        return getattr(np, pick)(x, axis=axis, keepdims=keepdims, initial=start)

    return reference


def _mean(v: Any, n: Any) -> Any:
    return v / n if v.dtype.is_float else tir.truncdiv(v, n)


def _np_mean(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    if x.dtype.kind == "f":
        return x.sum(axis=axis, keepdims=keepdims) / _count(x, axis)
    total = x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype)
    return np.trunc(total / _count(x, axis))


def _count(x: np.ndarray, axis: Any) -> np.generic:
    return np.prod([x.shape[a] for a in axis], dtype=np.int64).astype(x.dtype)


def _np_variance(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    away = x - x.sum(axis=axis, keepdims=True) / _count(x, axis)
    return np.sum(away * away, axis=axis, keepdims=keepdims) / _count(x, axis)


def _logsumexp(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    out = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis)


def _np(
    fn: Callable[..., Any], before: Callable[..., Any] = lambda x: x, after: Callable[..., Any] = lambda x: x
) -> Callable[..., Any]:
    return lambda x, axis, keepdims: after(fn(before(x), axis=axis, keepdims=keepdims))


def _sum(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


_abs = lambda v: te.abs(v) if v.dtype.is_float else te.select(v < 0, -v, v)
_root = lambda v, n: te.sqrt(v) if v.dtype.is_float else te.cast(te.sqrt(te.cast(v, "float64")), v.dtype)

for _op in (
    Reduction("sum", te.sum, 0, _sum),
    Reduction("prod", te.prod, 1, lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)),
    Reduction("max", te.max, te.lowest, _extreme("max")),
    Reduction("min", te.min, te.highest, _extreme("min")),
    Reduction("mean", te.sum, 0, _np_mean, after=_mean),
    Reduction("reduce_l1", te.sum, 0, _np(_sum, np.abs), before=_abs),
    Reduction("reduce_l2", te.sum, 0, _np(_sum, np.square, np.sqrt), before=lambda v: v * v, after=_root),
    Reduction("reduce_sum_square", te.sum, 0, _np(_sum, np.square), before=lambda v: v * v),
    Reduction("reduce_log_sum", te.sum, 0, _np(_sum, after=np.log), after=lambda v, n: te.log(v), accepts="float"),
    Reduction("all", te.all, True, np.all, accepts="bool"),
    Reduction("any", te.any, False, np.any, accepts="bool"),
):
    register(_op)


class _Centred(Reduction):
    """Reductions in two steps: a first one, then a sum of a function of element and first result."""

    def __init__(
        self,
        name: str,
        first: Callable[..., Any],
        identity: Any,
        term: Callable[..., Any],
        finish: Callable[..., Any],
        reference: Callable[..., Any],
    ) -> None:
        super().__init__(name, first, identity, reference, accepts="float")
        self.term, self.finish = term, finish

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axes, wide = axes_of(self, attrs["axis"], len(x.shape)), te.accumulator(x.dtype)
        count = count_of(x, axes, wide)
        value = lambda v: te.cast(v, wide)
        start = self.identity(wide) if callable(self.identity) else self.identity
        first = reduce_te(x, axes, self.reducer, name=label(self) + "_first", before=value, identity=start)
        terms = te.compute(
            x.shape, lambda *i: self.term(value(x(*i)), first(*at_reduced(i, axes)), count), label(self) + "_term"
        )
        total = reduce_te(terms, axes, te.sum, name=label(self) + "_sum", identity=0)
        shape = reduced_shape(x.shape, axes, attrs["keepdims"])
        plain = (lambda i: at_reduced(i, axes)) if attrs["keepdims"] else (lambda i: i)
        return te.compute(
            shape, lambda *i: te.cast(self.finish(total(*plain(i)), first(*plain(i)), count), x.dtype), label(self)
        )


def _deviation(v: Any, total: Any, n: Any) -> Any:
    return (v - total / n) * (v - total / n)


_finite = lambda top: te.select(te.isfinite(top), top, 0.0)
register(_Centred("variance", te.sum, 0, _deviation, lambda v, first, n: v / n, _np_variance))
register(_Centred("std", te.sum, 0, _deviation, lambda v, first, n: te.sqrt(v / n), _np(_np_variance, after=np.sqrt)))
register(
    _Centred(
        "reduce_log_sum_exp",
        te.max_number,  # a NaN reaches the sum through its exponential
        te.lowest,
        lambda v, top, n: te.exp(v - _finite(top)),
        lambda v, top, n: te.log(v) + _finite(top),
        _logsumexp,
    )
)


class _Collapse(OpDef):
    """x summed to a shape that broadcasts to its own: the inverse of a broadcast, as a gradient needs it."""

    kind = FuseKind.REDUCTION

    def shape(self, info: Any) -> Any:
        """The wanted dimensions, from what is known of the second operand."""
        raise NotImplementedError

    def _axes(self, x: Sequence[Any], wanted: Sequence[Any], *infos: Any) -> list[int]:
        extra = len(x) - len(wanted)
        if extra < 0:
            fail(self, f"the wanted shape has {len(wanted)} dimensions, x only {len(x)}", *infos)
        summed = [k for k, (n, m) in enumerate(zip(x[extra:], wanted), extra) if static(m) == 1 and static(n) != 1]
        wrong = next((k for k, (n, m) in enumerate(zip(x[extra:], wanted), extra) if k not in summed and not same(n, m)), None)
        if wrong is not None:
            fail(self, f"dimension {wrong} of x is neither that of the wanted shape nor is that 1", *infos)
        return [*range(extra), *summed]

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, wanted = tensor_info(self, args[0], args), self.shape(args[1])
        if x.shape is not None and wanted is not None:
            self._axes(x.shape, wanted, *args)
        return graph.TensorInfo(wanted, x.dtype, args[1].ndim)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, wanted = args[0], self.shape(args[1].sinfo)
        axes = self._axes(x.sinfo.shape, wanted)
        total = builder.emit(graph.make_call(get_op("sum"), (x,), {"axis": axes})) if axes else x
        return graph.make_call(get_op("reshape"), (total, graph.ShapeExpr(wanted)))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, wanted = args[0], tuple(int(n) for n in (args[1].shape if isinstance(args[1], np.ndarray) else args[1]))
        axes = tuple(self._axes([tir.index_const(n) for n in x.shape], [tir.index_const(n) for n in wanted]))
        return widen(x).sum(axis=axes).reshape(wanted).astype(x.dtype)


@register
class CollapseSumLike(_Collapse):
    """x summed to the shape of another tensor."""

    name, operands = "collapse_sum_like", ("data", "collapse_target")

    def shape(self, info: Any) -> Any:
        return tensor_info(self, info).shape


@register
class CollapseSumTo(_Collapse):
    """x summed to a shape."""

    name, operands = "collapse_sum_to", ("data", "shape")

    def shape(self, info: Any) -> Any:
        if not isinstance(info, graph.ShapeInfo):
            fail(self, "the second operand is not a shape", info)
        return info.values
