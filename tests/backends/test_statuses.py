# SPDX-License-Identifier: Apache-2.0
"""Kernels that may fail: the status that a C function returns becomes an error that says what it means, and a guard keeps from calling it at all."""

import re

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.relax.dpl import is_op, wildcard
from roundel.script import ir as I
from roundel.script import relax as R

SOURCE = r"""
#include <stdint.h>
static int calls;
int32_t can_double(int64_t n, int64_t limit) { return n <= limit; }
int32_t doubled(const float *x, float *y, int64_t n, int64_t first, int64_t count) {
  calls += 1;
  for (int64_t k = first; k < first + count; k++) {
    if (x[k] < 0) return (int32_t)-x[k];
    y[k] = 2 * x[k];
  }
  return 0;
}
"""


@I.ir_module
class Doubled:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            twice = R.add(x, x)
            out = R.nn.relu(twice)
            R.output(out)
        return out


@pytest.fixture
def kit():
    """A backend whose function doubles numbers and fails with -x at one below 0; at most 40 numbers where it has a guard."""
    made = []

    def register(guard=(), **how):
        def implement(c):
            count = c.result.shape[0] * c.result.shape[1]
            return backends.native(c, "doubled", count, source=SOURCE, operands=(0,), parallel=count, ranges=True, statuses={3: "no {memory}"},
                                   guard=("can_double", count, 40) if guard else (), **how)

        made.append(backends.register(backends.Backend("kit", [("kit.double", is_op("relax.add")(wildcard(), wildcard()))], implement)))

    yield register
    for backend in made:
        backends.unregister(backend)


def rows(n, value=1.0):
    return np.full((n, 4), value, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_status_is_an_error_that_says_what_it_means(kit, threads):
    kit()
    model = rd.compile(Doubled, choices={"*": "kit"}, threads=threads)
    np.testing.assert_array_equal(model(rows(500)), rows(500, 2))
    with pytest.raises(rd.RoundelError, match=r"kit cannot compute double nx4 by nx4: status 3, no \(memory\)"):
        model(rows(500, -3))
    with pytest.raises(rd.RoundelError, match="kit cannot compute double .*: status 77;"):
        model(rows(1, -77))
    np.testing.assert_array_equal(model(rows(3)), rows(3, 2))  # the model is as it was


def test_a_saved_file_and_the_interpreter_say_so_too(kit, tmp_path):
    kit()
    model = rd.load(rd.compile(Doubled, choices={"*": "kit"}).save(tmp_path / "model.so"))
    with pytest.raises(rd.RoundelError, match="status 3, no"):
        model(rows(2, -3))
    lowered = rd.driver.prepare(Doubled, choices={"*": "kit"}, pipeline=[rd.driver.libraries])
    with pytest.raises(rd.RoundelError, match="status 3, no"):
        rd.interpret(lowered)["main"](rows(2, -3))


def test_where_a_guard_says_no_generated_code_runs(kit):
    kit(guard=True)
    model = rd.compile(Doubled, choices={"*": "kit"})
    with pytest.raises(rd.RoundelError, match="status 5"):
        model(rows(10, -5))
    np.testing.assert_array_equal(model(rows(11, -5)), rows(11, 0))
    np.testing.assert_array_equal(model(rows(10)), rows(10, 2))


def test_a_guard_of_numbers_is_asked_once_for_all_calls(kit):
    kit(guard=True)

    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor((10, 4), "float32")):
            with R.dataflow():
                a = R.add(x, x)
                b = R.nn.relu(a)
                out = R.add(b, b)
                R.output(out)
            return out

    lowered = rd.driver.prepare(Twice, choices={"*": "kit"}, pipeline=[rd.driver.libraries])
    assert len(re.findall(r"cls\.can_double\w*,", lowered.script())) == 1
    np.testing.assert_array_equal(rd.compile(Twice, choices={"*": "kit"})(rows(10)), rows(10, 4))


def test_without_statuses_a_function_returns_nothing(kit):
    kit()
    (program,) = [f for name, f in rd.driver.prepare(Doubled, choices={"*": "kit"}, pipeline=[rd.driver.libraries]).items() if "kit" in name]
    assert "status" in program.script()
    plain = backends.native(backends.Composite("kit.double", Doubled["main"], rd.Target.host()), "doubled", 4)
    assert "status" not in plain.program.script()
