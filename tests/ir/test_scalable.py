# SPDX-License-Identifier: Apache-2.0
"""Vectors whose length the machine says: types, scripts, and runs that do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import IRModule, structural_equal, tir
from roundel.ir.dtype import INT32, DType
from roundel.ir.scalable import fix_vectors, lanes_of, vscale
from roundel.script import parse

SCALE = parse('''
@T.prim_func
def scale(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), n: T.int32):
    for i in range(32 // (T.vscale() * 4)):
        at: T.int32 = i * (T.vscale() * 4)
        mask = T.meta_var(T.get_active_lane_mask("uint1xvscalex4", at, n))
        B.vstore([T.Ramp(at, 1, T.vscale() * 4)],
                 A.vload([T.Ramp(at, 1, T.vscale() * 4)], predicate=mask) * T.Broadcast(T.float32(2), T.vscale() * 4), predicate=mask)
''')


def test_types_say_how_many_times_vscale():
    wide = DType("float32xvscalex4")
    assert wide.lanes == -4 and wide.element == "float32" and wide.element.with_lanes(-4) is wide and wide.with_lanes(1) == "float32"
    with pytest.raises(ValueError):
        DType("float32x4xvscale")


def test_lanes_are_a_number_or_that_times_vscale():
    assert lanes_of(4) == lanes_of(tir.index_const(4)) == 4
    assert lanes_of(vscale() * 4) == lanes_of(4 * vscale()) == -4
    for other in (vscale(), vscale() + 3, vscale() * 2 + 5, tir.Var("n", INT32), 0):
        with pytest.raises(TypeError, match="number of lanes"):
            lanes_of(other)


def test_a_scalar_beside_a_scalable_vector_is_spread():
    vector = tir.Ramp(tir.IntImm(0, "int32"), tir.IntImm(1, "int32"), -4) + 3
    assert vector.dtype == "int32xvscalex4" and vector.b.lanes == -4
    assert tir.cast(vector, "float32").dtype == "float32xvscalex4" and (vector < 2).dtype == "boolxvscalex4"


def test_the_script_reads_back():
    assert structural_equal(parse(SCALE.script()), SCALE)
    assert "T.vscale() * 4" in SCALE.script() and "vscale" not in fix_vectors(SCALE, 2).script()


@pytest.mark.parametrize("run, func", [(rd.interpret, SCALE), (rd.build, SCALE), (rd.interpret, fix_vectors(SCALE, 2)), (rd.interpret, fix_vectors(SCALE, 4))])
@pytest.mark.parametrize("n", [32, 19])
def test_every_length_gives_the_same(run, func, n):
    a, b = np.arange(32, dtype="float32"), np.full(32, -1, "float32")
    run(IRModule({"scale": func}))["scale"](a, b, n)
    np.testing.assert_array_equal(b, np.where(np.arange(32) < n, 2 * a, -1))
