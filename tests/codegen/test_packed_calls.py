# SPDX-License-Identifier: Apache-2.0
"""Buffers in calls of registered functions: they arrive as tensors, in compiled code and in the interpreter alike."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

import roundel as rd
from roundel.ir import assert_structural_equal
from roundel.runtime import register_func
from roundel.script import parse

WAYS = {"interpreted": rd.interpret, "compiled": rd.build}
SEEN = []


@register_func("tests.codegen.copy", override=True)
def copy(a, b):
    a, b = (x if isinstance(x, np.ndarray) else np.from_dlpack(x) for x in (a, b))
    SEEN.append((a.dtype, a.shape, b.shape))
    b[...] = a


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def run(request):
    SEEN.clear()
    return lambda func, *args: request.param(func)["main"](*args)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64", "bool", "bfloat16"])
def test_every_type_arrives(run, dtype):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((4, 3), "{dtype}"), C: T.Buffer((4, 3), "{dtype}")):
    T.evaluate(T.call_packed("tests.codegen.copy", A, C))
""")
    assert_structural_equal(parse(func.script()), func)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a, c = (np.arange(12) % 2).reshape(4, 3).astype(kind), np.zeros((4, 3), kind)
    run(func, a, c)
    np.testing.assert_array_equal(c, a)
    assert SEEN == [(kind, (4, 3), (4, 3))]


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_every_rank_arrives(run, shape):
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer({shape}, "float32"), C: T.Buffer({shape}, "float32")):
    T.evaluate(T.call_packed("tests.codegen.copy", A, C))
""")
    a, c = np.random.default_rng(0).standard_normal(shape).astype("f"), np.zeros(shape, "f")
    run(func, a, c)
    np.testing.assert_array_equal(c, a)
    assert SEEN[0][1:] == (shape, shape)


def test_symbolic_shapes_and_buffers_in_between(run):
    """The function reads what was computed before and what it writes is read afterwards."""
    func = parse("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    before = T.alloc_buffer((n, 3), "float32")
    after = T.alloc_buffer((n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("before"):
            vi, vj = T.axis.remap("SS", [i, j])
            before[vi, vj] = A[vi, vj] + T.float32(1)
    with T.block("called"):
        T.evaluate(T.call_packed("tests.codegen.copy", before, after))
    for i, j in T.grid(n, 3):
        with T.block("after"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = after[vi, vj] * T.float32(2)
""")
    a, c = np.arange(15, dtype="f").reshape(5, 3), np.zeros((5, 3), "f")
    run(func, a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_a_bare_pointer_arrives_as_its_address(run):
    @register_func("tests.codegen.poke", override=True)
    def poke(address, value):
        ctypes.cast(address, ctypes.POINTER(ctypes.c_float))[2] = value

    func = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    T.evaluate(T.call_packed("tests.codegen.poke", A.data, T.float32(7)))
""")
    a = np.zeros(4, "f")
    run(func, a)
    np.testing.assert_array_equal(a, [0, 0, 7, 0])


def test_a_buffer_with_gaps_is_refused():
    with pytest.raises(rd.RoundelError, match="only a buffer in row-major order can be passed as a tensor"):
        parse("""
@T.prim_func
def main(a: T.handle, C: T.Buffer((4, 3), "float32")):
    A = T.match_buffer(a, (4, 3), "float32", strides=(8, 1))
    T.evaluate(T.call_packed("tests.codegen.copy", A, C))
""")
