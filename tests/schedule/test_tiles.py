# SPDX-License-Identifier: Apache-2.0
"""tile_einsum: sums of products in tiles of one size, filled up with zeros, whatever the axes are."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.interp import interpret
from roundel.ir import Var, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule

RNG = np.random.default_rng(0)


def product(m, n, k):
    a, b, r = te.placeholder((m, k), "int32", "A"), te.placeholder((k, n), "int32", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] * 2, "D")]).with_attr("global_symbol", "main")


def tiled(func, high, wide, deep):
    sch = Schedule(func)
    block, user = sch.get_block("C"), sch.get_block("D")
    sch.transform_layout(block, ("read", 1), lambda k, n: (n // wide, k // deep, k % deep, n % wide), pad_value=0)
    copy = sch.tile_einsum(block, user, 0, lambda m, n, k: (m // high, n // wide, k // deep, m % high, n % wide, k % deep))
    return sch, block, copy


def packed(b, wide, deep):
    k, n = b.shape
    whole = np.zeros((-(-k // deep) * deep, -(-n // wide) * wide), b.dtype)
    whole[:k, :n] = b
    return np.ascontiguousarray(whole.reshape(-(-k // deep), deep, -1, wide).transpose(2, 0, 1, 3))


@pytest.mark.parametrize("m, n, k", [(5, 7, 9), (8, 4, 6), (1, 9, 13), (17, 8, 6), (16, 5, 7)])
def test_sizes_that_are_no_whole_tiles(m, n, k):
    sch, _, _ = tiled(product(m, n, k), 4, 4, 6)
    a, b = RNG.integers(-9, 9, (m, k)).astype(np.int32), RNG.integers(-9, 9, (k, n)).astype(np.int32)
    out = np.full((m, n), -1, np.int32)
    interpret(sch.mod)["main"](a, packed(b, 4, 6), out)
    np.testing.assert_array_equal(out, 2 * (a @ b))


def test_symbolic_rows():
    sch, block, copy = tiled(product(Var("m", INT64, True), 8, 12), 4, 4, 6)
    sch.compute_at(copy, sch.get_loops(block)[0])
    b = RNG.integers(-9, 9, (12, 8)).astype(np.int32)
    for m in (1, 3, 4, 11):
        a, out = RNG.integers(-9, 9, (m, 12)).astype(np.int32), np.full((m, 8), -1, np.int32)
        interpret(sch.mod)["main"](a, packed(b, 4, 6), out)
        np.testing.assert_array_equal(out, 2 * (a @ b))


def test_windows_are_unfolded():
    """Axes are fused: the pixels of a picture are rows, the places of a window and channels are summed over."""
    x, w = te.placeholder((3, 6, 7), "int32", "X"), te.placeholder((5, 3, 2, 3), "int32", "W")
    c, i, j = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 2), "i"), te.reduce_axis((0, 3), "j")
    y = te.compute((3, 5, 5), lambda p, q, o: te.sum(x[c, p * 2 + i, q + j] * w[o, c, i, j], axis=[c, i, j]), "C")
    func = te.create_prim_func([x, w, te.compute((3, 5, 5), lambda p, q, o: y[p, q, o] + 1, "D")]).with_attr("global_symbol", "main")
    sch = Schedule(func)
    depth = lambda c, i, j: (c * 2 + i) * 3 + j
    block = sch.get_block("C")
    sch.transform_layout(block, ("read", 1), lambda o, c, i, j: (o // 4, depth(c, i, j) // 4, depth(c, i, j) % 4, o % 4), pad_value=0)
    sch.tile_einsum(block, sch.get_block("D"), 0, lambda p, q, o, c, i, j: (
        (p * 5 + q) // 4, o // 4, depth(c, i, j) // 4, (p * 5 + q) % 4, o % 4, depth(c, i, j) % 4))
    picture, weight = RNG.integers(-9, 9, (3, 6, 7)).astype(np.int32), RNG.integers(-9, 9, (5, 3, 2, 3)).astype(np.int32)
    out = np.zeros((3, 5, 5), np.int32)
    interpret(sch.mod)["main"](picture, packed(weight.reshape(5, 18).T.copy(), 4, 4), out)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (2, 3), (1, 2))[:, ::2]
    np.testing.assert_array_equal(out, np.einsum("cpqij,ocij->pqo", windows, weight) + 1)


@pytest.mark.parametrize("change, why", [
    (lambda sch, block: sch.tile_einsum(block, sch.get_block("D"), 2, lambda m, n, k: (m, n, k)), "there is no factor 2"),
    (lambda sch, block: sch.tile_einsum(block, sch.get_block("D"), 0, lambda m, n, k: (m // 4, n // 4, k // 4, m % 4, n % 4, k % 4)), "read beyond its end"),
    (lambda sch, block: sch.tile_einsum(block, sch.get_block("D"), 0, lambda m, n, k: (m * 9 + k, n)), "variable of the result and of one that is summed"),
    (lambda sch, block: sch.split(sch.get_loops(block)[0], [None, 2]) and sch.tile_einsum(block, sch.get_block("D"), 0, lambda m, n, k: (m, n, k)),
     "tile before splitting"),
])
def test_what_cannot_be_tiled_is_refused_with_the_reason(change, why):
    sch = Schedule(product(6, 7, 9))
    before = sch.mod.script()
    with pytest.raises(ScheduleError, match=why):
        change(sch, sch.get_block("C"))
    assert "split" in str(sch.trace) or sch.mod.script() == before


def test_a_block_that_is_no_sum_of_products_is_refused():
    a, r = te.placeholder((6, 8), "int32", "A"), te.reduce_axis((0, 8), "r")
    c = te.compute((6,), lambda i: te.max(a[i, r], axis=r), "C")
    sch = Schedule(te.create_prim_func([a, te.compute((6,), lambda i: c[i] + tir.const(1, "int32"), "D")]))
    with pytest.raises(ScheduleError, match="no sum of products"):
        sch.tile_einsum(sch.get_block("C"), sch.get_block("D"), 0, lambda i, k: (i, k))
