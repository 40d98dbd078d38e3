# SPDX-License-Identifier: Apache-2.0
"""slide_einsum: convolutions in tiles, whose data is copied once and not for each place of a window."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.interp import interpret
from roundel.ir import tir
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.schedule.sliding_tiles import wide_rows

RNG = np.random.default_rng(0)
AROUND = 5  # what is around a picture


def convolution(channels, high, wide, outer, window, stride, dilation, pad):
    """Of one picture, channels first, and the rows and columns of its result."""
    x, w = te.placeholder((channels, high, wide), "int32", "X"), te.placeholder((outer, channels, window, window), "int32", "W")
    c, i, j = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, window), "i"), te.reduce_axis((0, window), "j")
    inside = lambda p, q: tir.logical_and(p >= pad, p < high + pad, q >= pad, q < wide + pad)
    padded = te.compute((channels, high + 2 * pad, wide + 2 * pad), lambda c, p, q: te.if_then_else(
        inside(p, q), x[c, p - pad, q - pad], te.const(AROUND, "int32")), "P") if pad else x
    rows, columns = ((n + 2 * pad - (window - 1) * dilation - 1) // stride + 1 for n in (high, wide))
    y = te.compute((rows, columns, outer), lambda p, q, o: te.sum(padded[c, p * stride + i * dilation, q * stride + j * dilation] * w[o, c, i, j],
                                                                  axis=[c, i, j]), "C")
    func = te.create_prim_func([x, w, te.compute(y.shape, lambda p, q, o: y[p, q, o] + 1, "D")]).with_attr("global_symbol", "main")
    return func, rows, columns


def packed(weight):
    outer = len(weight)
    flat = weight.transpose(2, 3, 1, 0).reshape(-1, outer)
    whole = np.zeros([-(-n // 4) * 4 for n in flat.shape], np.int32)
    whole[: flat.shape[0], :outer] = flat
    return np.ascontiguousarray(whole.reshape(-1, 4, whole.shape[1] // 4, 4).transpose(2, 0, 1, 3))


@pytest.mark.parametrize("channels, high, wide, outer, window, stride, dilation, pad", [
    (8, 6, 7, 5, 3, 1, 1, 1), (8, 6, 7, 5, 3, 2, 1, 1), (4, 9, 8, 5, 3, 1, 2, 0), (4, 9, 8, 8, 1, 2, 1, 0), (4, 9, 8, 8, 5, 3, 1, 2), (4, 9, 8, 8, 2, 3, 1, 0)])
def test_each_element_is_copied_once(channels, high, wide, outer, window, stride, dilation, pad):
    func, rows, columns = convolution(channels, high, wide, outer, window, stride, dilation, pad)
    sch = Schedule(func)
    block = sch.get_block("C")
    if pad:
        sch.compute_inline(sch.get_block("P"))
    depth = lambda c, i, j: (i * window + j) * channels + c
    far = wide_rows(columns, window, stride, dilation)
    sch.transform_layout(block, ("read", 1), lambda o, c, i, j: (o // 4, depth(c, i, j) // 4, depth(c, i, j) % 4, o % 4), pad_value=0)
    copy = sch.slide_einsum(block, sch.get_block("D"), 0, lambda p, q, o, c, i, j: (
        (p * far + q) // 8, o // 4, depth(c, i, j) // 4, (p * far + q) % 8, o % 4, depth(c, i, j) % 4),
        lambda p, q, o, c, i, j: (c // 4, p * far + q, c % 4), [(0, 4, stride, dilation), (1, 5, stride, dilation)])
    x, w = RNG.integers(-9, 9, (channels, high, wide)).astype(np.int32), RNG.integers(-9, 9, (outer, channels, window, window)).astype(np.int32)
    out, wanted = np.zeros((rows, columns, outer), np.int32), np.ones((rows, columns, outer), np.int64)
    interpret(sch.mod)["main"](x, packed(w), out)
    around = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=AROUND)
    for a in range(window):
        for b in range(window):
            part = around[:, a * dilation :, b * dilation :][:, : (rows - 1) * stride + 1 : stride, : (columns - 1) * stride + 1 : stride]
            wanted += np.einsum("cpq,oc->pqo", part, w[:, :, a, b])
    np.testing.assert_array_equal(out, wanted)
    copied = sch.get(copy).writes[0].buffer
    reached = min(stride, window) ** 2 * wide_rows(rows, window, stride, dilation) * far
    assert reached <= np.prod([n.value for n in copied.shape]) // channels <= reached + min(stride, window) ** 2 * 16


@pytest.mark.parametrize("slides, why", [
    ([(0, 4, 2, 1), (1, 5, 1, 1)], "is not the same where"), ([(0, 4, 2, 2), (1, 5, 1, 1)], "both a stride and a dilation")])
def test_slides_that_the_data_does_not_have(slides, why):
    func, _, columns = convolution(4, 6, 7, 4, 3, 1, 1, 0)
    sch = Schedule(func)
    far = wide_rows(columns, 3, 1, 1)
    with pytest.raises(ScheduleError, match=why):
        sch.slide_einsum(sch.get_block("C"), sch.get_block("D"), 0, lambda p, q, o, c, i, j: (p * far + q, o, c, i, j), lambda p, q, o, c, i, j: (
            p * far + q, c), slides)
