# SPDX-License-Identifier: Apache-2.0
"""``rd.auto_schedule``: programs as the compiler schedules them, and what is said of those that nobody scheduled."""

import warnings

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir.errors import ModelError
from roundel.script import tir as T
from roundel.strategy import is_unscheduled


def product(n=24, name="product"):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", name)


def by_hand(n=24):
    sch = rd.Schedule(product(n))
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    return sch.mod["main"].with_attr("global_symbol", "product")


def test_a_function_and_a_module_come_back_as_what_they_were():
    func, mod = rd.auto_schedule(product()), rd.auto_schedule(rd.IRModule({"product": product(), "other": product(name="other")}))
    assert func.attrs["scheduled"] and isinstance(mod, rd.IRModule) and all(f.attrs["scheduled"] for _, f in mod.items())
    a, b, c = *np.random.default_rng(0).standard_normal((2, 24, 24), np.float32), np.empty((24, 24), np.float32)
    for runtime in (rd.build(func), rd.interpret(func), rd.build(mod)):
        runtime["product"](a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


def test_what_has_a_schedule_stays_as_it_is():
    scheduled = by_hand()
    assert rd.auto_schedule(scheduled) is scheduled and not is_unscheduled(scheduled)
    again = rd.auto_schedule(product())
    assert rd.auto_schedule(again) is again


def test_a_variable_of_one_point_is_no_schedule():
    @T.prim_func
    def running(x: T.Buffer((5, 40), "float32"), y: T.Buffer((5, 40), "float32")):
        for j in range(40):
            with T.block("scan"):
                vj = T.axis.spatial(40, j)
                total = T.alloc_buffer((1,), "float32", scope="local")
                total[0] = T.float32(0)
                for i in range(5):
                    total[0] = total[0] + x[i, vj]
                    y[i, vj] = total[0]

    assert is_unscheduled(running)
    func = rd.auto_schedule(running, target="x86-64-v3")
    assert func.attrs["scheduled"] == "points" and "vectorized" in func.script()
    x, y = np.ones((5, 40), np.float32), np.empty((5, 40), np.float32)
    rd.build(rd.auto_schedule(running))["running"](x, y)
    np.testing.assert_array_equal(y, np.cumsum(x, 0))


def test_for_another_machine():
    wide, narrow = (rd.auto_schedule(product(96), target=t).script() for t in ("x86-64-v4", "x86-64-v2"))
    assert wide != narrow


def test_symbolic_sizes():
    n = te.size_var("n")
    x = te.placeholder((n, n), name="X")
    func = rd.auto_schedule(te.create_prim_func([x, te.compute((n, n), lambda i, j: x[i, j] + 1.0, name="Y")]).with_attr("global_symbol", "f"))
    given, out = np.ones((7, 7), np.float32), np.empty((7, 7), np.float32)
    rd.build(func)["f"](given, out)
    np.testing.assert_array_equal(out, given + 1)


@pytest.mark.parametrize("given", [3, "product", None, [1]])
def test_what_is_no_program(given):
    with pytest.raises(ModelError, match="this is not a module"):
        rd.auto_schedule(given)


def told(build, mod):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build(mod)
    return [str(w.message) for w in caught if "no schedule" in str(w.message)]


def test_a_large_program_without_a_schedule_is_told_of_with_the_way_out():
    (message,) = told(rd.build, product(256))
    assert message.startswith("product has no schedule") and "rd.auto_schedule" in message


@pytest.mark.parametrize("mod", [product(8), by_hand(256)], ids=["small", "scheduled"])
def test_others_are_not_told_of(mod):
    assert told(rd.build, mod) == []


def test_flat_programs_are_left_alone():
    @T.prim_func
    def flat(x: T.handle, y: T.handle):
        X, Y = T.match_buffer(x, (4,), "float32"), T.match_buffer(y, (4,), "float32")
        for i in range(4):
            Y[i] = X[i] + T.float32(1)

    out = np.empty(4, np.float32)
    rd.build(rd.auto_schedule(flat))["flat"](np.zeros(4, np.float32), out)
    np.testing.assert_array_equal(out, np.ones(4, np.float32))
