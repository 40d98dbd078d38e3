# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi``: Roundel's operators as functions of tensor expressions, under TVM's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .... import te
from ....ir import tir
from ....ir.dtype import DType
from ....ops.on_tensors import on_tensors
from ..rooms import missing
from . import nn, utils
from .named import number, numbers, same
from .transform import *  # noqa: F403
from .utils import simplify

_SAME = ("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
         "broadcast_to", "ceil", "cos", "cosh", "cumprod", "cumsum", "divide", "equal", "erf", "exp", "flip", "floor",
         "floor_divide", "floor_mod", "full_like", "greater", "greater_equal", "index_tensor", "isfinite", "isinf", "isnan", "left_shift",
         "less", "less_equal", "log", "log10", "log2", "log_add_exp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
         "mod", "multiply", "negative", "not_equal", "power", "repeat", "reshape", "right_shift", "round", "rsqrt", "scatter_elements", "sigmoid",
         "sign", "sin", "sinh", "sqrt", "squeeze", "stack", "subtract", "tan", "tanh", "trunc")
_OTHER = {"fast_exp": "exp", "fast_tanh": "tanh", "fast_erf": "erf", "div": "divide", "floordiv": "floor_divide", "floormod": "floor_mod",
          "adv_index": "index_tensor", "collapse_sum": "collapse_sum_to"}
"""TVM's name, the operator's name."""


def _reduction(name: str, dtype: str | None = None) -> Callable[..., Any]:
    def function(data: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Any:
        if select_last_index:  # the first of the reversed tensor
            backwards = on_tensors("flip", data, axis=axis if axis is not None else tuple(range(len(data.shape))))
            count = data.shape[axis] if axis is not None else tir.product_of(data.shape)
            first = function(backwards, axis, keepdims)
            return te.compute(first.shape, lambda *i: te.cast(count, first.dtype) - 1 - first(*i), name)
        out = on_tensors(name, data, axis=axis, keepdims=keepdims)
        return cast(out, dtype) if dtype else out

    function.__name__, function.__doc__ = name, f"``{name}`` of the elements along axes."
    return function


globals().update({name: same(name) for name in _SAME}, **{name: same(name, operator) for name, operator in _OTHER.items()})
globals().update({name: _reduction(name) for name in ("sum", "max", "min", "prod", "all", "any")})
argmax, argmin = _reduction("argmax", "int32"), _reduction("argmin", "int32")


def where(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where the condition holds (where it is not 0), else ``y``."""
    chosen = condition if condition.dtype.is_bool else on_tensors("not_equal", condition, 0)
    return on_tensors("where", chosen, x, y)


def full(shape: Any, dtype: str, fill_value: Any) -> Any:
    """A tensor of one value."""
    value = number(fill_value)
    return on_tensors("full", tuple(shape), int(value) if DType(dtype).is_int else value, dtype=dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Any:
    """``start``, ``start + step``, ... before ``stop``; one number alone is the end."""
    first, last = (0, start) if stop is None else (start, stop)
    return on_tensors("arange", number(first), number(last), number(step), dtype=dtype)


def eye(n: Any, m: Any = None, k: int = 0, dtype: str = "float32") -> Any:
    """Ones on a diagonal of zeros."""
    return on_tensors("eye", n, n if m is None else m, k, dtype=dtype)


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Any:
    """``on_value`` where a new axis is at the index."""
    return on_tensors("one_hot", indices, tir.const(number(on_value), dtype), tir.const(number(off_value), dtype), depth=depth, axis=axis)


def hamming_window(window_size: Any, periodic: Any, alpha: Any, beta: Any, dtype: str) -> Any:
    """``alpha - beta * cos(2 pi k / n)``."""
    return on_tensors("hamming_window", number(window_size), bool(number(periodic)), float(number(alpha)), float(number(beta)), dtype=dtype)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order, by default the reverse."""
    return on_tensors("permute_dims", a, axes=tuple(axes) if axes is not None else None)


def expand_dims(a: Any, axis: int, num_newaxis: int = 1) -> Any:
    """New axes of one element at ``axis``."""
    first = axis if axis >= 0 else axis + len(a.shape) + 1
    return on_tensors("expand_dims", a, axis=tuple(range(first, first + num_newaxis)))


def concatenate(a_tuple: Sequence[Any], axis: int = 0) -> Any:
    """Tensors one after another along an axis."""
    return on_tensors("concat", tuple(a_tuple), axis=axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis: their number, or where they begin."""
    return on_tensors("split", ary, indices_or_sections=numbers(indices_or_sections), axis=axis)


def tile(a: Any, reps: Sequence[Any]) -> Any:
    """The tensor repeated along each axis."""
    return on_tensors("tile", a, tuple(reps) if isinstance(reps, Sequence) else (reps,))


def cast(x: Any, dtype: str, span: Any = None) -> Any:
    """Elements of another type."""
    return on_tensors("astype", x, dtype=DType(dtype))


def clip(x: Any, a_min: float, a_max: float) -> Any:
    """Elements brought into a range."""
    return on_tensors("clip", x, a_min, a_max)


def identity(x: Any) -> Any:
    """A copy."""
    return te.compute(x.shape, lambda *i: x(*i), "identity")


def ceil_log2(x: Any) -> Any:
    """The binary logarithm rounded up."""
    return cast(on_tensors("ceil", on_tensors("log2", cast(x, "float64"))), x.dtype)


def matmul(a: Any, b: Any, transp_a: bool = False, transp_b: bool = False) -> Any:
    """The product of matrices, each as it is or transposed."""
    return on_tensors("matmul", nn.swapped(a) if transp_a else a, nn.swapped(b) if transp_b else b)


def einsum(subscripts: str, *operand: Any) -> Any:
    """Einstein's sum of products."""
    return on_tensors("einsum", tuple(operand), subscripts=subscripts)


def elemwise_sum(xs: Sequence[Any]) -> Any:
    """The sum of tensors."""
    out = xs[0]
    for x in xs[1:]:
        out = on_tensors("add", out, x)
    return out


def meshgrid(a_tuple: Sequence[Any], indexing: str = "ij") -> Any:
    """Vectors spread over the grid of all."""
    return list(on_tensors("meshgrid", tuple(a_tuple), indexing=indexing))


def take(a: Any, indices: Any, axis: int | None = None, batch_dims: int = 0, mode: str = "fast") -> Any:
    """Elements at indices along an axis (without: of all elements in order); the first ``batch_dims`` axes of both go together."""
    if not batch_dims:
        return on_tensors("take", a, indices, axis=axis, mode=mode)
    axis, lead = (batch_dims if axis is None else axis) % len(a.shape), len(indices.shape) - batch_dims
    shape = (*a.shape[:axis], *indices.shape[batch_dims:], *a.shape[axis + 1 :])

    def body(*i: Any) -> Any:
        there = te.cast(indices(*i[:batch_dims], *i[axis : axis + lead]), "int64")
        inside = tir.max_(tir.min_(there, a.shape[axis] - 1), 0) if mode != "wrap" else tir.floormod(there, a.shape[axis])
        return a(*i[:axis], inside, *i[axis + lead :])

    return te.compute(shape, body, "take")


def gather(data: Any, axis: int, indices: Any) -> Any:
    """Elements at indices along an axis."""
    return on_tensors("gather_elements", data, indices, axis=axis)


def _tuples_last(indices: Any) -> Any:
    """Index tuples, which TVM has along the first axis."""
    return transpose(indices, (*range(1, len(indices.shape)), 0))


def gather_nd(a: Any, indices: Any, batch_dims: int = 0) -> Any:
    """Elements at the index tuples along the first axis of ``indices``."""
    return on_tensors("gather_nd", a, _tuples_last(indices), batch_dims=batch_dims)


def scatter_nd(data: Any, indices: Any, updates: Any, mode: str = "update") -> Any:
    """``data`` changed at the index tuples along the first axis of ``indices``."""
    return on_tensors("scatter_nd", data, _tuples_last(indices), updates, reduction=mode)


def index_put(data: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """``data`` with ``data[indices] = values``."""
    return on_tensors("index_put", data, tuple(indices), values, accumulate=accumulate)


def slice_scatter(input_tensor: Any, src: Any, start: Any, end: Any, step: Any, axis: int) -> Any:
    """``input_tensor`` with a part of an axis replaced."""
    return on_tensors("slice_scatter", input_tensor, src, start, end, step, axis=axis)


def sort(data: Any, axis: int = -1, is_ascend: bool = True) -> Any:
    """Sorted along an axis."""
    return on_tensors("sort", data, axis=axis, descending=not is_ascend)


def argsort(data: Any, valid_count: Any = None, axis: int = -1, is_ascend: bool = True, dtype: str = "float32") -> Any:
    """Where each element of the sorted tensor comes from."""
    if valid_count is not None:
        raise missing("tvm.topi.argsort(valid_count=...)", "argsort")
    return on_tensors("argsort", data, axis=axis, descending=not is_ascend, dtype=dtype)


def topk(data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64") -> Any:
    """The ``k`` largest (or smallest), in order, their places, or both."""
    out = on_tensors("topk", data, k, axis=axis, ret_type=ret_type, largest=not is_ascend, dtype=dtype)
    return list(out) if ret_type == "both" else out


def trilu(data: Any, k: Any, upper: bool) -> Any:
    """The upper or lower triangle from the ``k``-th diagonal on."""
    return on_tensors("triu" if upper else "tril", data, k=number(k))


def tensor_size(array: Any, dtype: str = "int32") -> Any:
    """How many elements there are."""
    return cast(on_tensors("size", array), dtype)


def strided_slice(a: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None,
                  slice_mode: str = "end", assume_inbound: bool = True) -> Any:
    """A part of a tensor; with ``slice_mode`` ``size``, ``end`` holds lengths, -1 for all that remain."""
    axes = tuple(axes) if axes is not None else tuple(range(len(begin)))
    if slice_mode == "size":
        end = [a.shape[x] if e == -1 else b + e for x, b, e in zip(axes, begin, end, strict=True)]
        strides = None
    strides = tuple(strides) if strides else (1,) * len(axes)
    return on_tensors("strided_slice", a, axes=axes, begin=tuple(begin), end=tuple(end), strides=strides * len(axes) if len(strides) == 1 else strides)


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.topi.{name}", name)
