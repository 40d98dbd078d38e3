# SPDX-License-Identifier: Apache-2.0
"""Objects of Python pass through compiled functions as they are, and are forgotten with the call."""

import gc
import weakref

import numpy as np
import pytest

import roundel as rd
from roundel.interp import interpret
from roundel.runtime import objects
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


class Counter:
    def __init__(self, count: int) -> None:
        self.count = count


def counted(counter: Counter, by: int, scale: float, x: np.ndarray, out: np.ndarray) -> None:
    counter.count += int(by)
    out[...] = x * scale + counter.count


@pytest.fixture(autouse=True)
def functions():
    rd.register_func("tests.counter", lambda n: Counter(int(n)), override=True)
    rd.register_func("tests.counted", counted, override=True)


@I.ir_module
class Module:
    @R.function
    def make(size: R.Shape(["n"])) -> R.Object:
        n = T.int64()
        counter: R.Object = R.call_packed("tests.counter", R.prim_value(n), sinfo_args=(R.Object,))
        return counter

    @R.function
    def use(pair: R.Tuple(R.Tensor(("m",), "float32"), R.Object)) -> R.Tuple(R.Object, R.Tuple(R.Tensor(("m",), "float32"), R.Object)):
        m = T.int64()
        x: R.Tensor((m,), "float32") = pair[0]
        given: R.Object = pair[1]
        own: R.Object = R.call_packed("tests.counter", R.prim_value(T.int64(5)), sinfo_args=(R.Object,))
        y = R.call_dps_packed("tests.counted", (given, R.prim_value(1), R.prim_value(T.float64(0.5)), x), out_sinfo=R.Tensor((m,), "float32"))
        z = R.call_dps_packed("tests.counted", (own, R.prim_value(2), R.prim_value(T.float64(2.0)), y), out_sinfo=R.Tensor((m,), "float32"))
        return (own, (z, given))


@pytest.mark.parametrize("stage", ["graph", "host", "native"])
def test_objects_go_in_and_out(stage):
    if stage == "host":
        lowered = rd.driver.prepare(Module, target=rd.driver.target_of(None))
        run = interpret(lowered)
    else:
        run = rd.build(Module) if stage == "native" else rd.interpret(Module)
    counter = run["make"]((3,))
    assert type(counter) is Counter and counter.count == 3
    x = np.arange(4, dtype=np.float32)
    own, (z, given) = run["use"]((x, counter))
    assert given is counter and counter.count == 4 and own.count == 7
    np.testing.assert_allclose(z, (x * 0.5 + 4) * 2 + 7)
    kept = weakref.ref(counter)
    del counter, given
    gc.collect()
    assert kept() is None and not objects._objects


def test_errors_of_packed_functions_leave_nothing_behind():
    run = rd.build(Module)
    with pytest.raises(AttributeError):
        run["use"]((np.zeros(2, np.float32), object()))
    assert not objects._objects
