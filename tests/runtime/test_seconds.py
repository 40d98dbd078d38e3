# SPDX-License-Identifier: Apache-2.0
"""``seconds`` times calls of a built program without Python in between."""

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir.errors import CallError


def doubled(n):
    x = te.placeholder((n,), "float32", "X")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 2, "Y")]).with_attr("global_symbol", "main")


def test_calls_take_turns_with_the_sets_of_arguments():
    function = rd.build(doubled(8))["main"]
    sets = [(np.full(8, k, "float32"), np.zeros(8, "float32")) for k in range(3)]
    assert function.seconds(sets, 2) > 0
    assert [float(y[0]) for _, y in sets] == [0, 2, 0]
    function.seconds(sets, 3)
    assert [float(y[0]) for _, y in sets] == [0, 2, 4]


def test_more_calls_take_longer():
    function = rd.build(doubled(1 << 16))["main"]
    arguments = [(np.ones(1 << 16, "float32"), np.empty(1 << 16, "float32"))]
    function.seconds(arguments, 10)
    assert min(function.seconds(arguments, 100) for _ in range(5)) > min(function.seconds(arguments, 1) for _ in range(5))


def test_arguments_that_do_not_fit_raise():
    function = rd.build(doubled(8))["main"]
    with pytest.raises(CallError):
        function.seconds([(np.ones(9, "float32"), np.empty(8, "float32"))], 1)


def test_functions_of_saved_files_say_that_they_have_no_timer(tmp_path):
    rd.build(doubled(8)).save(tmp_path / "doubled.so")
    function = rd.load(tmp_path / "doubled.so").executable["main"]
    with pytest.raises(CallError, match="time_evaluator"):
        function.seconds([(np.ones(8, "float32"), np.empty(8, "float32"))], 1)
