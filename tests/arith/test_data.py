# SPDX-License-Identifier: Apache-2.0
"""Data expressions: only folding that holds for every bit pattern; vectors of indices stay ramps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.arith import Analyzer
from roundel.interp.numeric import INTEGER, Machine
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.tir import Broadcast, Ramp, Range, Var, const

I = Var("i", INT64)
F = decl_buffer((8,), "float32", "F")[I]
X = decl_buffer((8,), "int32", "X")[I]
B = decl_buffer((8,), "int8", "B")[I]
W = decl_buffer((8,), "int64", "W")[I]


def same(e, expected):
    got = Analyzer().simplify(e)
    assert got is expected, (e, got)


def f32(value):
    return const(value, "float32")


@pytest.mark.parametrize(
    "e",
    [
        F * f32(0.0),
        F + f32(0.0),
        f32(0.0) + F,
        F - F,
        tir.div(F, F),
        f32(0.0) * F,
        tir.eq(F, F),
        tir.min_(F, f32(math.nan)),
    ],
)
def test_floats_that_stay(e):
    same(e, e)


@pytest.mark.parametrize(
    "e, expected",
    [
        (F * f32(1.0), F),
        (f32(1.0) * F, F),
        (F - f32(0.0), F),
        (F + f32(-0.0), F),
        (tir.div(F, f32(1.0)), F),
        (tir.max_(F, F), F),
        (tir.Add(f32(0.1), f32(0.2)), f32(float(np.float32(0.1) + np.float32(0.2)))),
        (tir.Mul(f32(1e30), f32(1e30)), f32(math.inf)),
        (tir.select(F < f32(0.0), F, F), F),
        (tir.cast(tir.cast(F, "float64"), "float32"), F),
        (tir.LT(f32(1.0), f32(2.0)), const(True)),
    ],
)
def test_floats_that_fold(e, expected):
    same(e, expected)


@pytest.mark.parametrize(
    "e, expected",
    [
        (X + 0, X),
        (tir.Mul(X, const(0, "int32")), const(0, "int32")),
        ((X + 3) - 3, X),
        (X - X, const(0, "int32")),
        (tir.cast(tir.cast(B, "int32"), "int8"), B),
        (tir.cast(tir.cast(B, "int16"), "int64"), tir.cast(B, "int64")),
        (X // 1, X),
        (X % 1, const(0, "int32")),
    ],
)
def test_integers_that_fold(e, expected):
    same(e, expected)


def test_what_may_wrap_is_left_alone():
    same(W * 8 // 8, W * 8 // 8)
    same((X + 1) > X, tir.LT(X, X + 1))
    assert Analyzer().simplify(tir.cast(X, "int64") * 8 // 8) is tir.cast(X, "int64")
    assert Analyzer().bounds(tir.cast(B, "int64") * 4 + 1) == (-511, 509)


def test_calls_with_effects_stay():
    call = tir.call("call_packed", "f", dtype="int32")
    same(tir.Mul(call, const(0, "int32")), tir.Mul(call, const(0, "int32")))
    same(tir.Sub(call, call), tir.Sub(call, call))


def test_operands_are_simplified():
    buffer = decl_buffer((64,), "float32", "A")
    an = Analyzer({I: Range.of(8)})
    assert an.simplify(tir.call("exp", buffer[(I * 8 + 3) // 8])) is tir.call("exp", buffer[I])
    assert an.simplify(tir.if_then_else(I < 8, buffer[I], f32(0.0))) is buffer[I]
    assert an.simplify(tir.call("likely", I < 8)) is const(True)


def test_vectors():
    an = Analyzer({I: Range.of(16)})
    ramp, four = Ramp(I * 4, const(1), 4), Broadcast(const(4), 4)
    assert an.simplify(ramp + Broadcast(I, 4)) is Ramp(an.simplify(I * 5), const(1), 4)
    assert an.simplify(tir.FloorDiv(ramp, four)) is Broadcast(I, 4)
    assert an.simplify(tir.FloorMod(ramp, four)) is Ramp(const(0), const(1), 4)
    assert an.simplify(ramp * four) is Ramp(an.simplify(I * 16), const(4), 4)
    assert an.simplify(tir.LT(ramp, Broadcast(const(64), 4))) is Broadcast(const(True), 4)
    assert an.simplify(tir.LT(ramp, Broadcast(const(63), 4))) is tir.LT(ramp, Broadcast(const(63), 4))
    assert an.simplify(ramp - Ramp(I, const(1), 4)) is Broadcast(an.simplify(I * 3), 4)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("+-*"), st.integers(-(2**31), 2**31 - 1), st.booleans()), max_size=5),
    st.integers(-(2**31), 2**31 - 1),
)
def test_int32_chains_wrap(steps, start):
    """Chains of constants around one load keep their value modulo 2**32."""
    build = {"+": tir.Add, "-": tir.Sub, "*": tir.Mul}
    e = X
    for op, k, left in steps:
        c = const(k, "int32")
        e = build[op](c, e) if left else build[op](e, c)
    assert _wrapping(e, start) == _wrapping(Analyzer().simplify(e), start)


def _wrapping(e, start):
    if e is X:
        return start
    if type(e) is tir.IntImm:
        return e.value
    a, b = _wrapping(e.a, start), _wrapping(e.b, start)
    value = {tir.Add: a + b, tir.Sub: a - b, tir.Mul: a * b}[type(e)]
    return (value + 2**31) % 2**32 - 2**31


def test_what_wraps_tells_nothing_of_its_parts():
    """Products, quotients and magnitudes of 8-bit data: 8 is -88 * -3, 32 * 8 is 0, -128 // -1 and abs(-128) are -128."""
    u = decl_buffer((8,), "uint8", "U")[I]
    an = Analyzer()
    for condition in (
        tir.NE(const(8, "int8"), tir.Mul(B, const(-3, "int8"))),
        tir.GE(tir.Mul(u, const(8, "uint8")), u),
        tir.GE(tir.call("abs", B), const(0, "int8")),
        tir.GE(tir.FloorDiv(B, const(-1, "int8")), const(-127, "int8")),
        tir.LE(tir.Mul(tir.Max(B, const(100, "int8")), const(1, "int8")) + tir.Max(B, const(100, "int8")), const(100, "int8")),
    ):
        assert not an.prove(condition) and not an.prove(tir.Not(condition)), condition
    assert an.bounds(tir.FloorDiv(B, const(-1, "int8"))) == an.bounds(tir.call("abs", B)) == (-128, 127)
    assert an.modular(tir.Mul(B, const(12, "int8"))) == (4, 0)


def test_divisions_by_data_are_not_joined():
    """100 // 200 // 2 is 0, but 2 * 200 is 144 in uint8."""
    x, y = (decl_buffer((8,), "uint8", name)[I] for name in "XY")
    same((x // y) // 2, (x // y) // 2)


def test_divisors_that_are_never_defined_end():
    never = tir.Mod(I, const(0))
    for kind in (tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod):
        Analyzer().simplify(kind(const(2), never))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "popcount", "clz", "abs"])
def test_calls_of_constants_are_what_the_interpreter_gives(op, dtype):
    low, high = DType(dtype).limits
    numbers = sorted({low, low + 1, -3, -1, 0, 1, 2, 5, 77, high - 1, high} & set(range(low, high + 1)))
    amounts = range(DType(dtype).bits) if op.startswith("shift") else numbers
    for a in numbers:
        for b in amounts if op in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right") else (None,):
            args = tuple(const(v, dtype) for v in (a, b) if v is not None)
            e = tir.Call(op, args, DType("int32") if op in ("popcount", "clz") else DType(dtype))
            got = Analyzer().simplify(e)
            assert type(got) is tir.IntImm and got.value == int(evaluated(e)), (e, got)


def evaluated(e):
    """The value of a call of constants by the interpreter's functions."""
    operands = [np.asarray(a.value, a.dtype.numpy) for a in e.args]
    with np.errstate(all="ignore"):
        value = np.abs(operands[0]) if e.op == "abs" else INTEGER[e.op](*operands)
    return np.asarray(value).astype(e.dtype.numpy)


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("to", ["int8", "uint8", "int32", "bool", "float16", "float32", "float64"])
def test_conversions_of_constants_are_what_the_interpreter_gives(source, to):
    for number in (0.0, -0.0, 1.0, -1.5, 2.75, 300.0, -300.0, 65504.0, 1e9):
        with np.errstate(all="ignore"):
            value = np.asarray(number, source)
        if not np.isfinite(value):
            continue
        got = Analyzer().simplify(tir.Cast(DType(to), const(float(value), source)))
        with np.errstate(all="ignore"):
            expected = Machine().cast(value, DType(source), DType(to))
        assert type(got) in (tir.IntImm, tir.FloatImm) and got.value == expected, (source, to, number, got)


def test_shifts_take_the_amount_modulo_the_width():
    e = tir.Call("shift_right", (B, const(9, "int8")), DType("int8"))
    assert Analyzer().bounds(e) == (-128, 127)
    e = tir.Call("shift_right", (B, const(3, "int8")), DType("int8"))
    assert Analyzer().bounds(e) == (-16, 15)
