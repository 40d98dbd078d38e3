# SPDX-License-Identifier: Apache-2.0
"""Programs without a reduction have a space of their own, all of whose candidates compute the same."""

import functools

import numpy as np
import pytest

import roundel as rd
from roundel import strategy, te
from roundel.ir import tir
from roundel.strategy import Program
from roundel.strategy.generic.spatial import spatial
from roundel.target import Target
from roundel.tune.space import Space

TARGET = Target.host()


def added():
    x, y = te.placeholder((64, 100), "float32", "X"), te.placeholder((100,), "float32", "Y")
    z = te.compute((64, 100), lambda i, j: te.tanh(x[i, j]))
    return te.create_prim_func([x, y, te.compute((64, 100), lambda i, j: z[i, j] + y[j])])


def turned():
    x = te.placeholder((50, 3, 70), "float32", "X")
    return te.create_prim_func([x, te.compute((70, 50, 3), lambda i, j, k: x[j, k, i] * 2)])


def looked_up():
    x, at = te.placeholder((50, 33), "float32", "X"), te.placeholder((20,), "int64", "I")
    return te.create_prim_func([x, at, te.compute((20, 33), lambda a, b: x[at[a], b])])


def reversed_bytes():
    x = te.placeholder((7, 130), "int8", "X")
    return te.create_prim_func([x, te.compute((7, 130), lambda a, b: x[6 - a, 129 - b])])


def padded():
    x = te.placeholder((5, 9), "float32", "X")
    inside = lambda i, j: functools.reduce(tir.logical_and, [i >= 1, i < 6, j >= 2, j < 11])
    return te.create_prim_func([x, te.compute((8, 13), lambda i, j: te.if_then_else(inside(i, j), x[i - 1, j - 2], 0.5))])


def result(func, scheduled):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 20, [n.value for n in b.shape]).astype(str(b.dtype)) for b in func.buffer_params]
    rd.build(scheduled.with_attr("global_symbol", "main"))(*arrays)
    return arrays[-1]


@pytest.mark.parametrize("make", [added, turned, looked_up, reversed_bytes, padded])
def test_every_candidate_computes_the_same(make):
    func = make()
    (sketch,) = spatial(Program(func, TARGET))
    wanted, table = result(func, strategy.schedule_program(func, TARGET)[0]), sketch.candidates
    assert len(table) > 50 and np.isfinite(table.cycles).all() and len(np.unique(table.cycles)) > 5
    for k in [table.ranking()[0], *np.random.default_rng(0).integers(len(table), size=6)]:
        np.testing.assert_allclose(result(func, sketch.schedule(table.decisions(int(k))).func), wanted, rtol=1e-5, err_msg=str(table.decisions(int(k))))


def test_there_is_something_to_tune_without_hand_written_rules():
    space = Space.of(Program(added(), TARGET), "generic")
    assert next(w for w in space.ways if w.name == "spatial").size > 100


def test_untuned_compiles_do_not_ask_it():
    func, _ = strategy.schedule_program(added(), TARGET)
    assert func.attrs["scheduled"] == "elementwise"
