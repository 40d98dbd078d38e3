# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi``: Roundel's operators as functions of tensor expressions, under TVM's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir.dtype import DType
from ....ir.op import all_ops
from ....ops.on_tensors import on_tensors
from ..rooms import missing
from . import nn

_SAME = ("abs", "acos", "acosh", "add", "argsort", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
         "broadcast_to", "ceil", "cos", "cosh", "cumprod", "cumsum", "divide", "einsum", "equal", "erf", "exp", "expand_dims", "flip", "floor",
         "floor_divide", "floor_mod", "full_like", "gather_nd", "greater", "greater_equal", "isfinite", "isinf", "isnan", "left_shift",
         "less", "less_equal", "log", "log10", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod",
         "multiply", "negative", "not_equal", "power", "repeat", "reshape", "right_shift", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sort",
         "sqrt", "squeeze", "stack", "subtract", "take", "tan", "tanh", "tile", "topk", "trunc", "where")


def _same(name: str) -> Callable[..., Any]:
    def function(*args: Any, **attrs: Any) -> Any:
        return on_tensors(name, *args, **attrs)

    function.__name__, function.__doc__ = name, (all_ops()[name].__doc__ or f"The operator {name}.").strip().split("\n")[0]
    return function


def _reduction(name: str) -> Callable[..., Any]:
    def function(data: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return on_tensors(name, data, axis=axis, keepdims=keepdims)

    function.__name__, function.__doc__ = name, f"``{name}`` of the elements along axes."
    return function


globals().update({name: _same(name) for name in _SAME if name in all_ops()})
globals().update({name: _reduction(name) for name in ("sum", "max", "min", "prod", "all", "any", "argmax", "argmin")})
fast_exp, fast_tanh, fast_erf, div = _same("exp"), _same("tanh"), _same("erf"), _same("divide")


def full(shape: Any, dtype: str, fill_value: Any) -> Any:
    """A tensor of one value."""
    value = getattr(fill_value, "value", fill_value)
    return on_tensors("full", tuple(shape), int(value) if DType(dtype).is_int else value, dtype=dtype)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order, by default the reverse."""
    return on_tensors("permute_dims", a, axes=tuple(axes) if axes is not None else None)


def concatenate(a_tuple: Sequence[Any], axis: int = 0) -> Any:
    """Tensors one after another along an axis."""
    return on_tensors("concat", tuple(a_tuple), axis=axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis: their number, or where they begin."""
    parts = indices_or_sections if isinstance(indices_or_sections, int) else tuple(indices_or_sections)
    return on_tensors("split", ary, indices_or_sections=parts, axis=axis)


def cast(x: Any, dtype: str, span: Any = None) -> Any:
    """Elements of another type."""
    return on_tensors("astype", x, dtype=DType(dtype))


def clip(x: Any, a_min: float, a_max: float) -> Any:
    """Elements brought into a range."""
    return on_tensors("clip", x, a_min, a_max)


def identity(x: Any) -> Any:
    """The tensor itself."""
    return x


def matmul(a: Any, b: Any, transp_a: bool = False, transp_b: bool = False) -> Any:
    """The product of matrices, each as it is or transposed."""
    return on_tensors("matmul", nn.swapped(a) if transp_a else a, nn.swapped(b) if transp_b else b)


def elemwise_sum(xs: Sequence[Any]) -> Any:
    """The sum of tensors."""
    out = xs[0]
    for x in xs[1:]:
        out = on_tensors("add", out, x)
    return out


def gather(data: Any, axis: int, indices: Any) -> Any:
    """Elements at indices along an axis."""
    return on_tensors("gather_elements", data, indices, axis=axis)


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
