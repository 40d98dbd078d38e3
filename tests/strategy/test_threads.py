# SPDX-License-Identifier: Apache-2.0
"""Schedules for threads: every element has a thread, results stay, kinds of programs are told apart."""

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.strategy import threads


def _program(kind):
    a, b = te.placeholder((30, 20), "float32", "A"), te.placeholder((20, 12), "float32", "B")
    k, j = te.reduce_axis((0, 20), "k"), te.reduce_axis((0, 20), "j")
    if kind == "matmul":
        twice = te.compute((30, 20), lambda i, j: a[i, j] * 2.0, "twice")
        return te.create_prim_func([a, b, te.compute((30, 12), lambda i, j: te.sum(twice[i, k] * b[k, j], axis=k), "C")]), lambda x, y: 2 * x @ y
    if kind == "gemv":
        v = te.placeholder((20,), "float32", "v")
        return te.create_prim_func([a, v, te.compute((30,), lambda i: te.sum(a[i, k] * v[k], axis=k), "C")]), lambda x, y: x @ y
    if kind == "reduction":
        return te.create_prim_func([a, te.compute((30,), lambda i: te.sum(a[i, k], axis=k), "C")]), lambda x: x.sum(1)
    if kind == "general_reduction":
        top = te.compute((30,), lambda i: te.max(a[i, k], axis=k), "top")
        return te.create_prim_func([a, te.compute((30,), lambda i: te.sum(a[i, j] - top[i], axis=j), "C")]), lambda x: (x - x.max(1, keepdims=True)).sum(1)
    if kind == "transpose":
        return te.create_prim_func([a, te.compute((20, 30), lambda i, j: a[j, i], "C")]), lambda x: x.T
    return te.create_prim_func([a, te.compute((30, 20), lambda i, j: a[i, j] + 1.0, "C")]), lambda x: x + 1


KINDS = ("matmul", "gemv", "reduction", "general_reduction", "transpose")


@pytest.mark.parametrize("kind", [*KINDS, "elementwise"])
def test_bound_programs_compute_the_same(kind):
    func, wanted = _program(kind)
    rng = np.random.default_rng(0)
    scheduled = threads.bind_threads(func, 64)
    inputs = [rng.standard_normal([int(d.value) for d in func.buffers[p].shape]).astype("float32") for p in func.params]
    rd.interpret(scheduled.mod)["main"](*inputs)
    np.testing.assert_allclose(inputs[-1], wanted(*inputs[:-1]), rtol=1e-4, atol=1e-4)
    assert 'thread="threadIdx.x"' in scheduled.mod.script() and "range(30)" not in scheduled.mod.script()


@pytest.mark.parametrize("kind", [*KINDS, "elementwise"])
def test_kinds_are_told_apart(kind):
    func, _ = _program(kind)
    assert [k for k in KINDS if getattr(threads, f"is_{k}")(func)] == ([kind] if kind in KINDS else [])
