# SPDX-License-Identifier: Apache-2.0
"""What there is to tune: unique programs of a model, how often they are called, at which sizes."""

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir.errors import OptionError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .programs import doubled, product

RNG = np.random.default_rng(0)
W = [RNG.standard_normal((32, 32)).astype("float32") for _ in range(3)]


@I.ir_module
class Layers:
    @R.function
    def main(x: R.Tensor((8, 32), "float32")):
        a = R.nn.relu(R.matmul(x, R.const(W[0])))
        b = R.nn.relu(R.matmul(a, R.const(W[1])))
        return R.matmul(b, R.const(W[2]))


@I.ir_module
class AnyRows:
    @R.function
    def main(x: R.Tensor(("n", 32), "float32")):
        return R.nn.relu(R.matmul(x, R.const(W[0])))


def test_equal_layers_are_one_task_and_their_calls_are_counted():
    found = rd.tune.tasks(Layers)
    assert sorted(t.weight for t in found) == [1, 2]
    assert all(t.program.constants == (1,) for t in found)


def test_the_arguments_of_a_task_are_those_of_the_program():
    (found,) = rd.tune.tasks(product(8, 16, 24))
    (case,) = found.job(2).cases
    assert [a.shape for a in case] == [(8, 24), (24, 16), (8, 16)] and not any(a.is_constant for a in case)
    (case,) = rd.tune.tasks(Layers)[0].job(1).cases
    assert [a.is_constant for a in case] == [False, True, False]


def test_symbolic_sizes_have_weights():
    (found,) = rd.tune.tasks(AnyRows, sizes=[({"n": 4}, 3), ({"n": 16}, 1)])
    assert [(list(c.sizes.values()), c.weight) for c in found.cases] == [([4], 0.75), ([16], 0.25)]
    assert [case[0].shape for case in found.job(1).cases] == [(4, 32), (16, 32)]
    (same,) = rd.tune.tasks(AnyRows, sizes={"n": [4, 16]})
    assert [c.weight for c in same.cases] == [0.5, 0.5]


def test_a_tensor_expression_is_a_task():
    x, y = te.placeholder((4, 8), "float32", "X"), te.placeholder((4, 8), "float32", "Y")
    (found,) = rd.tune.tasks(te.compute((4, 8), lambda i, j: x[i, j] - y[i, j]))
    assert [a.shape for a in found.job(1).cases[0]] == [(4, 8)] * 3


def test_what_is_decided_is_no_task():
    made, _ = schedule_program(product(), Target.host())
    assert rd.tune.tasks(rd.IRModule({"a": made, "b": doubled()}))[0].name == "b"
    assert rd.tune.tasks(product().with_attr("decisions", {"sketch": "contraction"})) == []


def test_names_do_not_make_another_task():
    (one,), (other,) = rd.tune.tasks(product(name="f")), rd.tune.tasks(product(name="g"))
    assert one.key(1) == other.key(1) != one.key(2)


@pytest.mark.parametrize("sizes", [{"n": [1, 2], "m": [1, 2, 3]}, [{"n": 0}], [({"n": 4}, 0)], ["n"]])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(OptionError):
        rd.tune.tasks(AnyRows, sizes=sizes)
