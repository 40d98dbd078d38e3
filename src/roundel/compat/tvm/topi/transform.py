# SPDX-License-Identifier: Apache-2.0
"""Functions of ``tvm.topi`` that move elements and have no operator of Roundel's: tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import te
from ....ir import tir
from ....ir.dtype import DType
from ....ops.on_tensors import on_tensors
from ....tir.data_layout import bijective_layout
from .named import number


def expand_like(a: Any, shape_like: Any, axis: Any) -> Any:
    """New axes ``axis``, along which ``a`` is repeated to the shape of another tensor."""
    axes = sorted(x % len(shape_like.shape) for x in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(a.shape) == len(shape_like.shape):
        return on_tensors("broadcast_to", a, tuple(shape_like.shape))
    return te.compute(shape_like.shape, lambda *i: a(*(x for k, x in enumerate(i) if k not in axes)), "expand_like")


def reverse_sequence(a: Any, seq_lengths: Any, seq_axis: int = 1, batch_axis: int = 0) -> Any:
    """The first ``seq_lengths[b]`` elements along ``seq_axis`` backwards, for each b of ``batch_axis``."""

    def body(*i: Any) -> Any:
        length, k = te.cast(seq_lengths(i[batch_axis]), "int64"), i[seq_axis]
        turned = te.if_then_else(tir.logical_and(length > 1, k < length), length - 1 - k, k)
        return a(*(turned if x == seq_axis else j for x, j in enumerate(i)))

    return te.compute(a.shape, body, "reverse_sequence")


def sequence_mask(data: Any, valid_length: Any, mask_value: Any = 0, axis: int = 0) -> Any:
    """``mask_value`` behind the valid part of each sequence; ``axis`` (0 or 1) is that of time, the other one that of the batch."""
    outside = tir.const(mask_value, data.dtype)
    inside = lambda i: tir.lt(i[axis], te.cast(valid_length(i[1 - axis]), "int64"))
    return te.compute(data.shape, lambda *i: te.select(inside(i), data(*i), outside), "sequence_mask")


def strided_set(a: Any, v: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """A copy of ``a`` with ``a[begin:end:strides] = v``."""
    parts = []
    for k, n in enumerate(a.shape):
        b, e, s = (number(x[k]) if x is not None and k < len(x) else d for x, d in ((begin, 0), (end, n), (strides, 1)))
        b, e = (x + n if isinstance(x, int) and x < 0 else x for x in (b, e))
        if isinstance(b, int) and isinstance(e, int):
            e = tir.min_(e, n) if s > 0 else e
        parts.append((b, e, s))

    def body(*i: Any) -> Any:
        inside, at = [], []
        for k, (b, e, s) in zip(i, parts):
            far = k - b if s > 0 else tir.as_index(b) - k
            inside += [far >= 0, k < e if s > 0 else k > e, tir.eq(tir.floormod(far, abs(s)), 0)]
            at.append(tir.floordiv(far, abs(s)))
        return te.if_then_else(tir.logical_and(*inside), v(*at), a(*i))

    return te.compute(a.shape, body, "strided_set")


def unravel_index(indices: Any, shape: Any) -> Any:
    """The coordinates, along a new first axis, of positions in the flattened shape (a tensor or numbers)."""
    extents = [shape(k) for k in range(int(shape.shape[0]))] if isinstance(shape, te.Tensor) else list(shape)
    dtype = indices.dtype

    def body(axis: Any, *i: Any) -> Any:
        place, found = indices(*i), []
        for extent in reversed(extents):
            size = te.cast(tir.const(extent), dtype)
            found.append(tir.floormod(place, size))
            place = tir.floordiv(place, size)
        out = found[0]
        for k, value in enumerate(reversed(found[1:])):
            out = te.select(tir.eq(axis, k), value, out)
        return out

    return te.compute((len(extents), *indices.shape), body, "unravel_index")


def sparse_to_dense(sparse_indices: Any, output_shape: Sequence[int], sparse_values: Any, default_value: Any = 0) -> Any:
    """``default_value`` everywhere but at the indices, (n, rank) or for one axis (n,), where the values stand."""
    shape, dtype = tuple(output_shape), sparse_values.dtype
    rank = len(sparse_indices.shape)
    where = on_tensors("reshape", sparse_indices, (-1, sparse_indices.shape[1] if rank == 2 else 1))
    values = on_tensors("broadcast_to", sparse_values, (where.shape[0],))
    default = default_value if isinstance(default_value, te.Tensor) else te.compute((), lambda: tir.const(default_value, dtype), "default")
    return on_tensors("scatter_nd", te.compute(shape, lambda *i: default(), "dense"), where, values)


def matrix_set_diag(data: Any, diagonal: Any, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT") -> Any:
    """``data`` with its diagonals ``k``, or those from k[0] to k[1], replaced. Shorter ones of several lie right or left, first those
    above the main diagonal."""
    low, high = (k, k) if isinstance(k, int) else k
    rows, columns = data.shape[-2:]
    above, below = (side == "RIGHT" for side in align.split("_"))

    def body(*i: Any) -> Any:
        *lead, r, c = i
        d = c - r
        along = te.select(d >= 0, r, c)
        if low == high:
            value = diagonal(*lead, along)
        else:
            length = tir.min_(rows + tir.min_(d, 0), columns - tir.max_(d, 0))
            gap = diagonal.shape[-1] - length
            shift = te.select(d >= 0, gap if above else tir.as_index(0), gap if below else tir.as_index(0))
            value = diagonal(*lead, tir.as_index(high) - d, along + shift)
        return te.if_then_else(tir.logical_and(d >= low, d <= high), value, data(*i))

    return te.compute(data.shape, body, "matrix_set_diag")


def sliding_window(data: Any, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Any:
    """The windows of all axes from ``axis`` on: their number by axis, then their elements."""
    axis %= len(data.shape)
    counts = [tir.floordiv(n - w, s) + 1 for n, w, s in zip(data.shape[axis:], window_shape, strides, strict=True)]
    m = len(counts)

    def body(*i: Any) -> Any:
        window, inner = i[axis : axis + m], i[axis + m :]
        return data(*i[:axis], *(w * s + j for w, s, j in zip(window, strides, inner)))

    return te.compute((*data.shape[:axis], *counts, *window_shape), body, "sliding_window")


def searchsorted(sorted_sequence: Any, values: Any, right: bool = False, out_dtype: str = "int64") -> Any:
    """Where each value would go in its ascending sequence, behind equal ones with ``right``: one sequence, or one for each row of values."""
    ranks = len(sorted_sequence.shape)
    j = te.reduce_axis((0, sorted_sequence.shape[-1]), "j")
    other = lambda i: sorted_sequence(*(i[: ranks - 1]), j)

    def body(*i: Any) -> Any:
        above = other(i) > values(*i) if right else other(i) >= values(*i)
        return te.sum(te.cast(tir.logical_not(above), out_dtype), axis=j)

    return te.compute(values.shape, body, "searchsorted")


def tensordot(a: Any, b: Any, axes: Any) -> Any:
    """Products summed over axes: a number of them (the last of ``a`` with the first of ``b``), the same of both, or a pair of lists."""
    n = len(a.shape)
    if isinstance(axes, int):
        left, right = list(range(n - axes, n)), list(range(axes))
    else:
        first, second = axes if len(axes) == 2 and isinstance(axes[0], Sequence) else (axes, axes)
        left, right = [x % n for x in first], [x % len(b.shape) for x in second]
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    of_a = [next(letters) for _ in a.shape]
    of_b = [of_a[left[right.index(k)]] if k in right else next(letters) for k in range(len(b.shape))]
    out = [x for k, x in enumerate(of_a) if k not in left] + [x for k, x in enumerate(of_b) if k not in right]
    return on_tensors("einsum", (a, b), subscripts=f"{''.join(of_a)},{''.join(of_b)}->{''.join(out)}")


def layout_transform(array: Any, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Any:
    """The tensor in another layout of the same axes: ``layout_transform(x, "NCHW", "NCHW4c")``. Raises ValueError for other axes."""
    layouts = bijective_layout(src_layout, dst_layout)
    if layouts is None:
        raise ValueError(f"{src_layout} and {dst_layout} do not have the same axes")
    return te.compute(tuple(layouts.forward_shape(array.shape)), lambda *i: array(*layouts.backward_index(i)), "layout_transform")


def reinterpret(x: Any, dtype: str) -> Any:
    """The bits of each element as another type of the same width."""
    return te.compute(x.shape, lambda *i: tir.call("reinterpret", x(*i), dtype=dtype), "reinterpret")


def shape(array: Any, dtype: str = "int32") -> Any:
    """The dimensions as a tensor."""

    def body(i: Any) -> Any:
        out = te.cast(array.shape[-1], dtype)
        for k, n in enumerate(array.shape[:-1]):
            out = te.select(tir.eq(i, k), te.cast(n, dtype), out)
        return out

    return te.compute((len(array.shape),), body, "shape")


def fixed_point_multiply(x: Any, multiplier: int, shift: int) -> Any:
    """Integers times ``multiplier * 2 ** (shift - 31)``, rounded to the nearest, halves upwards."""
    wide, right = DType("int64"), 31 - shift
    if right <= 0:
        return te.compute(x.shape, lambda *i: te.cast(te.cast(x(*i), wide) * multiplier << -right, x.dtype), "fixed_point_multiply")
    half = 1 << (right - 1)
    return te.compute(x.shape, lambda *i: te.cast((te.cast(x(*i), wide) * multiplier + half) >> right, x.dtype), "fixed_point_multiply")


def dft(re_data: Any, im_data: Any, inverse: Any) -> tuple[Any, Any]:
    """The discrete Fourier transform along the last axis, real and imaginary parts, by its definition."""
    n, sign = re_data.shape[-1], 1.0 if number(inverse) else -1.0
    wide = DType("float64")

    def part(name: str, combine: Any) -> Any:
        j = te.reduce_axis((0, n), "j")

        def body(*i: Any) -> Any:
            turn = te.cast(tir.floormod(i[-1] * j.var, n), wide) * tir.const(sign * 6.283185307179586, wide) / te.cast(n, wide)
            re, im = (te.cast(t(*i[:-1], j), wide) for t in (re_data, im_data))
            return te.sum(combine(re, im, te.cos(turn), te.sin(turn)), axis=j)

        total = te.compute(re_data.shape, body, name)
        scaled = lambda v: v / te.cast(n, wide) if number(inverse) else v
        return te.compute(re_data.shape, lambda *i: te.cast(scaled(total(*i)), re_data.dtype), name + "_result")

    return part("dft_re", lambda re, im, c, s: re * c - im * s), part("dft_im", lambda re, im, c, s: re * s + im * c)


__all__ = ["dft", "expand_like", "fixed_point_multiply", "layout_transform", "matrix_set_diag", "reinterpret", "reverse_sequence", "searchsorted",
           "sequence_mask", "shape", "sliding_window", "sparse_to_dense", "strided_set", "tensordot", "unravel_index"]
