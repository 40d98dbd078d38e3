# SPDX-License-Identifier: Apache-2.0
"""te.scan: rows one after another, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir.errors import RoundelError, ScheduleError
from roundel.schedule import Schedule


def sums(m, n):
    """Sums of columns down to each row."""
    x, s = te.placeholder((m, n), name="x"), te.placeholder((m, n), name="s")
    return te.create_prim_func([x, te.scan(te.compute((1, n), lambda _, i: x[0, i]), te.compute((m, n), lambda t, i: s[t - 1, i] + x[t, i]), s)])


@pytest.mark.parametrize("run", [rd.interpret, rd.build])
@pytest.mark.parametrize("sizes", [(5, 3), None])
def test_sums_of_columns(run, sizes):
    func = sums(*(sizes or (te.size_var("m"), te.size_var("n"))))
    x = np.arange(15, dtype="float32").reshape(5, 3)
    out = np.zeros_like(x)
    run(rd.IRModule({"main": func}))["main"](x, out)
    np.testing.assert_array_equal(out, np.cumsum(x, axis=0))


def test_states_that_read_one_another():
    m, n = 6, 2
    x, y, a, b = (te.placeholder((m, n), name=k) for k in "xyab")
    first = [te.compute((2, n), lambda t, i: x[t, i]), te.compute((2, n), lambda t, i: y[t, i])]
    further = [te.compute((m, n), lambda t, i: a[t - 2, i] + b[t - 1, i]), te.compute((m, n), lambda t, i: b[t - 1, i] * y[t, i])]
    p, q = te.scan(first, further, [a, b], inputs=[x, y])
    assert (p.value_index, q.value_index) == (0, 1) and isinstance(p.op, te.ScanOp)
    ins = [np.random.default_rng(0).integers(-3, 4, (m, n)).astype("float32") for _ in range(2)]
    outs = [np.zeros((m, n), "float32") for _ in range(2)]
    rd.build(rd.IRModule({"main": te.create_prim_func([x, y, p, q])}))["main"](*ins, *outs)
    wa, wb = ins[0].copy(), ins[1].copy()
    for t in range(2, m):
        wa[t], wb[t] = wa[t - 2] + wb[t - 1], wb[t - 1] * ins[1][t]
    np.testing.assert_array_equal(outs, [wa, wb])


def test_rows_keep_their_order():
    sch = Schedule(sums(5, 3))
    loop = sch.get_loops("scan")[0]
    with pytest.raises(ScheduleError):
        sch.parallel(loop)


def test_what_is_refused():
    x, s = te.placeholder((4, 3)), te.placeholder((4, 3))
    init, step = te.compute((1, 3), lambda _, i: x[0, i]), te.compute((4, 3), lambda t, i: s[t - 1, i])
    for args, why in (((init, step, step), "no placeholder"), ((init, x, s), "no te.compute"), ((x, te.compute((4, 2), lambda t, i: s[t - 1, i]), s), "shapes"),
                      (([init], [step], [s, s]), "2 states")):
        with pytest.raises(RoundelError, match=why):
            te.scan(*args)
