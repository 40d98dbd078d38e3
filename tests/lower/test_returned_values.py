# SPDX-License-Identifier: Apache-2.0
"""A tensor program that returns a scalar returns it when it is compiled, as it does in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import IRModule
from roundel.ir.errors import CallError, LowerError
from roundel.runtime import load_executable
from roundel.script import parse


def module(*texts):
    return IRModule({f.__name__: f for f in (parse(f"@T.prim_func\n{t}") for t in texts)})


SCALARS = [("int8", -3), ("uint8", 200), ("int64", 1 << 40), ("float32", 1.5), ("float64", 0.1), ("float16", 0.5), ("bool", True)]


@pytest.mark.parametrize("dtype, value", SCALARS)
def test_scalars_of_every_type(dtype, value):
    mod = module(f"def f(x: T.{dtype}) -> T.{dtype}:\n    return x")
    for run in (rd.interpret, rd.build):
        assert run(mod)["f"](value) == value
    assert type(rd.build(mod)["f"](value)) is type(value)


def test_a_return_ends_the_program():
    mod = module('''def f(A: T.Buffer((8,), "int32"), limit: T.int32) -> T.int32:
    for i in range(8):
        if A[i] > limit:
            T.ret(A[i])
        A[i] = 0
    return T.int32(-1)''')
    for run in (rd.interpret, rd.build):
        values = np.arange(8, dtype="int32")
        assert run(mod)["f"](values, 3) == 4 and values.tolist() == [0, 0, 0, 0, 4, 5, 6, 7]
        assert run(mod)["f"](values, 100) == -1


def test_the_type_follows_where_it_is_not_said():
    mod = module("def f(x: T.float32, y: T.float32):\n    T.ret(x + y)")
    assert rd.build(mod)["f"](1.0, 2.0) == 3.0


def test_different_types_have_to_be_said():
    with pytest.raises(LowerError, match="float32, int32"):
        rd.build(module("def f(x: T.int32, y: T.float32):\n    if x > 0:\n        T.ret(x)\n    T.ret(y)"))


def test_arguments_are_named_and_counted_without_the_place_of_the_result():
    f = rd.build(module("def f(x: T.int32, y: T.int32) -> T.int32:\n    return x - y"))["f"]
    assert f.argument_names == ("x", "y") and f(y=1, x=5) == 4
    with pytest.raises(CallError, match="takes 2 arguments"):
        f(1)


def test_a_saved_library_returns_too(tmp_path):
    rd.build(module("def f(x: T.int32) -> T.int32:\n    return x * 2")).save(tmp_path / "f.so")
    assert load_executable(tmp_path / "f.so")["f"](21) == 42
