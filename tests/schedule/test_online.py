# SPDX-License-Identifier: Apache-2.0
"""merge_online: maxima and sums of exponentials relative to them in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roundel import te
from roundel.interp import run_prim_func
from roundel.ir import PrimFunc, structural_equal, tir
from roundel.ir.errors import ScheduleError
from roundel.ir.module import IRModule
from roundel.lower import lower
from roundel.schedule import Schedule

from .programs import check


def weighted(n=10, m=37, columns=5, *, most=te.max_finite, reach=None, squares=False) -> PrimFunc:
    """softmax(S)^T V for S of (m, n)."""
    s, v = te.placeholder((m, n), "float32", "S"), te.placeholder((m, columns), "float32", "V")
    a, b, k = (te.reduce_axis((0, m), name) for name in "abk")
    top = te.compute((n,), lambda i: most(s[a, i], axis=a), "T")
    power = lambda r, i: te.exp(s[r, i] - top[i])
    e = te.compute((m, n), power if reach is None else lambda r, i: te.select(r <= i + reach, power(r, i), tir.const(0, "float32")), "E")
    total = te.compute((n,), lambda i: te.sum(e[b, i] * e[b, i] if squares else e[b, i], axis=b), "D")
    c = te.compute((n, columns), lambda i, j: te.sum(e[k, i] * v[k, j], axis=k), "C")
    return te.create_prim_func([s, v, te.compute((n, columns), lambda i, j: c[i, j] / total[i], "R")])


def blocked(func: PrimFunc, span: int) -> tuple[Schedule, Any, Any]:
    """Everything in blocks: the loop over blocks that finds maxima, and that over those in which sums are made."""
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_block("R"))
    rows, _ = sch.split(i, [None, 4])
    loops = []
    for name, at in (("C", -1), ("D", 1)):
        block = sch.get_block(name)
        spans, _ = sch.split(sch.get_loops(block)[-1], [None, span])
        part = sch.rfactor(spans, 0)
        sch.compute_at(block, rows, index=at)
        spans = sch.get_loops(block)[1]
        sch.compute_at(part, spans)
        sch.decompose_reduction(block, spans)
        loops.append(spans)
    sums = sch.merge(*loops)
    sch.compute_at(sch.get_block("E"), sums)
    top = sch.get_block("T")
    sch.compute_at(top, rows)
    inside, k = sch.get_loops(top)[1:]
    spans, step = sch.split(k, [None, span])
    sch.reorder(spans, step, inside)
    sch.decompose_reduction(top, spans)
    return sch, spans, sums


@pytest.mark.parametrize(("m", "span", "reach"), [(37, 8, None), (32, 8, None), (9, 8, None), (40, 8, 2), (21, 20, 15)])
def test_sums_relative_to_a_growing_maximum(m, span, reach):
    func = weighted(m=m, reach=reach)
    sch, largest, sums = blocked(func, span)
    sch.merge_online(largest, sums)
    check(sch, func)
    assert sch.func.script().count("T.axis.scan") == 2
    lower(IRModule({"main": sch.func}))
    again = Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert structural_equal(again.func, sch.func)


def test_rows_of_infinities_and_extreme_numbers():
    func = weighted(m=19)
    sch, largest, sums = blocked(func, 4)
    sch.merge_online(largest, sums)
    draw = np.random.default_rng(3)
    s, v = draw.standard_normal((19, 10)).astype("float32") * 40, draw.standard_normal((19, 5)).astype("float32")
    s[:8, 0] = -np.inf       # nothing in the first blocks
    s[:, 1] = -np.inf        # nothing at all
    s[9:, 2], s[:9, 2] = 1e30, -1e30
    s[3, 3], s[17, 4] = np.inf, np.nan
    s[:, 5] = np.finfo("float32").min
    out = []
    for f in (func, sch.func):
        r = np.zeros((10, 5), "float32")
        with np.errstate(all="ignore"):
            run_prim_func(f, [s, v, r])
        out.append(r)
    np.testing.assert_allclose(out[1], out[0], rtol=2e-5, atol=1e-5)
    assert np.isnan(out[1]).all(axis=1).tolist() == [k in (1, 3, 4) for k in range(10)]


def test_what_is_refused():
    sch, largest, sums = blocked(weighted(most=te.max_number), 8)
    with pytest.raises(ScheduleError, match="finite"):
        sch.merge_online(largest, sums)
    sch, largest, sums = blocked(weighted(), 8)
    with pytest.raises(ScheduleError, match="neighbours"):
        sch.merge_online(sums, largest)
    sch, largest, sums = blocked(weighted(most=te.min), 8)
    with pytest.raises(ScheduleError, match="maxima"):
        sch.merge_online(largest, sums)
    sch, largest, sums = blocked(weighted(squares=True), 8)
    with pytest.raises(ScheduleError, match="no sum of products"):
        sch.merge_online(largest, sums)
    sch, largest, sums = blocked(weighted(), 8)
    loop = sch.merge_online(largest, sums)
    with pytest.raises(ScheduleError, match="scan"):
        sch.reorder(sch.get_loops(sch.get_block("C_update"))[0], loop)
