# SPDX-License-Identifier: Apache-2.0
"""The same results on machines with narrow vectors and without instructions for narrow floats."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import load
from roundel.driver import compile_module
from roundel.interp import interpret
from roundel.target import Target

from .vector_widths import FAMILIES, TOLERANCE, attack, differences, family, machine, plain_machines


@pytest.mark.parametrize("name", FAMILIES)
def test_vectors_of_one_lane(name):
    assert differences(*family(name), machine(1), TOLERANCE["float32"]) == []


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", ["products", "rows"])
def test_wider_vectors(name, lanes):
    assert differences(*family(name), machine(lanes), TOLERANCE["float32"]) == []


@pytest.mark.skipif(not plain_machines(), reason="another processor than an x86-64")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["convolutions", "products", "rows"])
def test_narrow_floats_on_plain_machines(name, dtype):
    assert differences(*family(name, dtype), Target("x86-64"), TOLERANCE[dtype]) == []


@pytest.mark.skipif(not plain_machines(), reason="another processor than an x86-64")
@pytest.mark.parametrize("machine_", ["x86-64", "x86-64-v2"])
def test_a_saved_file_with_narrow_floats_on_a_plain_machine(tmp_path, machine_):
    mod, inputs = family("attention", "float16")
    path = compile_module(mod, target=machine_).save(tmp_path / "model.so")
    (want,), (got,) = interpret(mod)["main"](*inputs), load(path)(*inputs)
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), atol=TOLERANCE["float16"])


def test_a_few_random_functions():
    assert list(attack(4, seed=1)) == []
