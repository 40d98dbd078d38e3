# SPDX-License-Identifier: Apache-2.0
"""Operators on every data type, scalar and vector, against NumPy: wrap-around, division by zero, NaN, infinities."""

import ml_dtypes
import numpy as np
import pytest
from flat_programs import c, elementwise, func, loop

from roundel.build import build
from roundel.ir import DType, IRModule, Var, decl_buffer, tir

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
LANES = [1, 8]


def integers(dtype, count=512, seed=0):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    edges = np.array([info.min, info.max, 0, 1, info.max // 2, *([-1, -2] if info.min < 0 else [2, 3])], dtype)
    x[: len(edges)] = edges
    x[len(edges) : 40] = np.resize(edges, 40 - len(edges))
    rng.shuffle(x[:40])
    return x


def floats(dtype, count=512, seed=0):
    x = (np.random.default_rng(seed).standard_normal(count) * 10).astype(np.float32)
    x[:16] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, -3e38, 65504, 0.5, 1.5, 2.5, -2.5]
    np.random.default_rng(seed + 100).shuffle(x[:64])
    with np.errstate(over="ignore"):
        return x.astype(DType(dtype).numpy)


def same(got, want):
    """Equal values; NaNs equal each other."""
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def div_int(a, b, floor):
    """What division is defined to be: nothing traps, x / 0 is 0."""
    out = []
    lo, bits = np.iinfo(a.dtype).min, np.iinfo(a.dtype).bits
    for x, y in zip(a.tolist(), b.tolist()):
        if y == 0:
            out.append((0, 0))
            continue
        q = x // y if floor else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        r = x - q * y
        q = (q - lo) % (1 << bits) + lo
        out.append((q, r))
    q, r = zip(*out)
    return np.array(q, a.dtype), np.array(r, a.dtype)


ADD, SUB, MUL = (lambda a, b: tir.Add(a, b)), (lambda a, b: tir.Sub(a, b)), (lambda a, b: tir.Mul(a, b))
DIV, MOD = (lambda a, b: tir.Div(a, b)), (lambda a, b: tir.Mod(a, b))
FDIV, FMOD = (lambda a, b: tir.FloorDiv(a, b)), (lambda a, b: tir.FloorMod(a, b))
MIN, MAX = (lambda a, b: tir.Min(a, b)), (lambda a, b: tir.Max(a, b))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTS)
def test_int_ring_wraps(dtype, lanes):
    a, b = integers(dtype, seed=1), integers(dtype, seed=2)
    with np.errstate(over="ignore"):
        for fn, ref in ((ADD, np.add), (SUB, np.subtract), (MUL, np.multiply), (MIN, np.minimum), (MAX, np.maximum)):
            same(elementwise(fn, a, b, lanes=lanes), ref(a, b))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTS)
def test_int_division_never_traps(dtype, lanes):
    a, b = integers(dtype, seed=3), integers(dtype, seed=4)
    b[100:200] = np.random.default_rng(0).integers(1, 10, 100)
    tq, tr = div_int(a, b, False)
    fq, fr = div_int(a, b, True)
    for fn, want in ((DIV, tq), (MOD, tr), (FDIV, fq), (FMOD, fr)):
        same(elementwise(fn, a, b, lanes=lanes), want)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 16, -1, -2, -5])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_int_division_by_constants(dtype, divisor):
    if dtype == "uint8" and divisor < 0:
        pytest.skip("unsigned")
    a = integers(dtype, seed=5)
    b = np.full_like(a, divisor)
    tq, tr = div_int(a, b, False)
    fq, fr = div_int(a, b, True)
    for kind, want in ((tir.Div, tq), (tir.Mod, tr), (tir.FloorDiv, fq), (tir.FloorMod, fr)):
        same(elementwise(lambda x, kind=kind: kind(x, tir.const(divisor, x.dtype)), a), want)
        same(elementwise(lambda x, kind=kind: kind(x, tir.const(divisor, x.dtype)), a, lanes=16), want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operators(dtype, lanes):
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    with np.errstate(all="ignore"):
        for fn, ref in (
            (ADD, np.add),
            (SUB, np.subtract),
            (MUL, np.multiply),
            (DIV, np.true_divide),
            (MIN, np.minimum),
            (MAX, np.maximum),
        ):
            same(elementwise(fn, a, b, lanes=lanes), ref(a, b))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_remainders(dtype):
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    with np.errstate(all="ignore"):
        same(elementwise(MOD, a, b), np.fmod(a, b))
        same(elementwise(FMOD, a, b), np.mod(a, b))
        same(elementwise(FDIV, a, b), np.floor_divide(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minimum_and_maximum_of_whole_registers_keep_nan_of_either(dtype):
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    for lanes in (16, 8, 4):  # of 512 bits there are instructions under a mask
        same(elementwise(MIN, a, b, lanes=lanes), np.minimum(a, b))
        same(elementwise(MAX, a, b, lanes=lanes), np.maximum(a, b))


def test_relu_keeps_nan_and_minimum_orders():
    x = floats("float32")
    same(elementwise(lambda v: tir.max_(v, 0.0), x), np.maximum(x, 0))
    same(elementwise(lambda v: tir.min_(tir.max_(v, 0.0), 6.0), x, lanes=16), np.minimum(np.maximum(x, 0), 6))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32"])
def test_comparisons(dtype, lanes):
    a, b = (
        (integers(dtype, seed=1), integers(dtype, seed=2))
        if "int" in dtype
        else (floats(dtype, seed=1), floats(dtype, seed=2))
    )
    b[::3] = a[::3]
    for kind, ref in (
        (tir.EQ, np.equal),
        (tir.NE, np.not_equal),
        (tir.LT, np.less),
        (tir.LE, np.less_equal),
        (tir.GT, np.greater),
        (tir.GE, np.greater_equal),
    ):
        same(elementwise(lambda x, y, kind=kind: kind(x, y), a, b, out="bool", lanes=lanes), ref(a, b))


@pytest.mark.parametrize("lanes", LANES)
def test_bools(lanes):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 64)).astype(bool)
    for fn, ref in (
        (lambda x, y: tir.And(x, y), a & b),
        (lambda x, y: tir.Or(x, y), a | b),
        (lambda x, y: tir.Not(x), ~a),
        (lambda x, y: tir.NE(x, y), a ^ b),
    ):
        same(elementwise(fn, a, b, lanes=lanes), ref)
    same(
        elementwise(
            lambda x, y: tir.Select(
                x,
                tir.Cast(DType("float32").with_lanes(x.dtype.lanes), y),
                tir.const(3.0, DType("float32").with_lanes(x.dtype.lanes)),
            ),
            a,
            b,
            out="float32",
            lanes=lanes,
        ),
        np.where(a, b.astype("f"), np.float32(3)),
    )
    odd_bytes = np.array([0, 1, 2, 255], np.uint8).view(bool)  # any byte but 0 is true
    same(elementwise(lambda x: tir.Not(x), odd_bytes), np.array([True, False, False, False]))


def test_double_to_half_rounds_once():
    x = np.array(
        [
            1 + 2**-11 + 2**-40,
            1 + 2**-11 - 2**-40,
            1 + 2**-11,
            1 + 3 * 2**-11,
            2**-25 + 2**-60,
            65519.999999999,
            65520,
            1e300,
            -np.inf,
            np.nan,
        ]
    )
    for lanes in (1, 2):
        with np.errstate(over="ignore"):
            same(elementwise(lambda e: tir.cast(e, "float16"), x, out="float16", lanes=lanes), x.astype(np.float16))


def test_multiply_add_contracts_or_not():
    from flat_programs import flat, func, loop

    from roundel.ir import Var, decl_buffer

    a = np.float32(1 + 2**-12)
    for contract, want in ((True, np.float32(float(a) * float(a) - 1)), (False, a * a - np.float32(1))):
        x, y = decl_buffer((1,), "float32", "x"), decl_buffer((1,), "float32", "y")
        i = Var("i", DType("int64"))
        out = np.zeros(1, "float32")
        flat(
            func(
                [x, y],
                loop(i, 1, tir.BufferStore(y, tir.Sub(tir.Mul(x[i], x[i]), tir.const(1.0)), (i,))),
                contract=contract,
            )
        )["main"](np.array([a]), out)
        assert out[0] == want


FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", [*FLOAT8, "float8_e8m0fnu"])
def test_float8_is_exact_for_all_codes(dtype, lanes):
    codes = np.arange(256, dtype=np.uint8).view(DType(dtype).numpy)
    wide = elementwise(lambda x: tir.cast(x, "float32"), codes, out="float32", lanes=lanes)
    same(wide, codes.astype(np.float32))
    back = elementwise(lambda x: tir.cast(x, dtype), wide, out=dtype, lanes=lanes)
    same(back, codes)


@pytest.mark.parametrize("dtype", ["bfloat16", *FLOAT8])
def test_narrowing_rounds_to_nearest_even(dtype):
    bits = np.random.default_rng(0).integers(0, 2**32, 1 << 16, dtype=np.uint32)
    x = bits.view(np.float32)
    y = (np.random.default_rng(1).standard_normal(1 << 16) * 100).astype(np.float32)
    grid = np.arange(-600, 600, 0.0625, dtype=np.float32)
    for v in (x, y, grid, grid / 4096, grid / 65536):
        with np.errstate(all="ignore"):
            same(elementwise(lambda e: tir.cast(e, dtype), v, out=dtype), v.astype(DType(dtype).numpy))


INT_LIKE = ["bool", *INTS]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", INT_LIKE)
@pytest.mark.parametrize("target", [*INT_LIKE, *FLOATS])
def test_casts_of_integers(source, target, lanes):
    x = np.random.default_rng(0).integers(0, 2, 512).astype(bool) if source == "bool" else integers(source)
    with np.errstate(all="ignore"):
        want = x.astype(DType(target).numpy)
    if target == "float16":
        want = x.astype(np.float64).astype(np.float16) if source not in ("bool",) else want
    if target == "bfloat16":
        want = x.astype(np.float32).astype(ml_dtypes.bfloat16)
    same(
        elementwise(
            lambda e: tir.Cast(DType(target).with_lanes(e.dtype.lanes), e) if target != source else e,
            x,
            out=target,
            lanes=lanes,
        ),
        want,
    )


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", [*FLOATS, "float8_e4m3fn"])
@pytest.mark.parametrize("target", [*INTS, "bool", *FLOATS])
def test_casts_of_floats_saturate(source, target, lanes):
    x = floats(source)
    if target in INTS:
        info = np.iinfo(target)
        want = [
            0 if v != v else info.max if v >= float(info.max) else info.min if v <= float(info.min) else int(v)
            for v in x.astype(np.float64).tolist()
        ]
        want = np.array(want, target)
    elif target == "bool":
        want = x.astype(np.float64) != 0
    else:
        with np.errstate(all="ignore"):
            via = x.astype(np.float32) if target == "bfloat16" else x
            want = via.astype(DType(target).numpy)
    same(elementwise(lambda e: tir.cast(e, target), x, out=target, lanes=lanes), want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_choices_among_small_constants_have_their_own_width(dtype, lanes):
    """In C a small constant is an int, and so is a choice among such; what is computed of them has to be as wide as it says."""
    size, i = DType(dtype).bits, Var("i", "int64")
    at = i if lanes == 1 else tir.Ramp(i * lanes, c(1), lanes)
    x, number = decl_buffer((16,), "int32", "x"), lambda v: tir.Broadcast(tir.const(v, dtype), lanes) if lanes > 1 else tir.const(v, dtype)
    limit = lambda v: tir.Broadcast(tir.const(v, "int32"), lanes)
    chosen = lambda at_most, yes, no: tir.Select(i < at_most if lanes == 1 else tir.BufferLoad(x, (at,)) < limit(at_most), number(yes), number(no))
    a, b, some = chosen(3, 2000000011, 7), chosen(9, 2000000011, 5), chosen(5, size - 3, 9)
    call = lambda name, *args: tir.call(name, *args, dtype=a.dtype)
    small = dtype == "int32"  # an int32 of the sort of indices does not wrap
    made = [call("shift_left", a, some), call("shift_right", call("bitwise_not", b), some), call("bitwise_xor", a, call("bitwise_not", b)),
            *([] if small else [tir.Add(a, b), tir.Mul(a, b), tir.Sub(tir.Sub(number(0), a), b)])]
    outs = [decl_buffer((16,), dtype, f"y{k}") for k in range(len(made))]
    body = tir.seq(*(tir.BufferStore(out, value, (at,)) for out, value in zip(outs, made)))
    mod = IRModule({"main": func([x, *outs], loop(i, 16 // lanes, body))})
    given = np.arange(16, dtype=np.int32)
    got = [np.zeros(16, dtype) for _ in made]
    build(mod, "c", pipeline=())["main"](given, *got)
    a, b, some = (np.where(given < k, yes, no).astype(dtype) for k, yes, no in ((3, 2000000011, 7), (9, 2000000011, 5), (5, size - 3, 9)))
    want = [a << some, ~b >> some, a ^ ~b, *([] if small else [a + b, a * b, np.zeros_like(a) - a - b])]
    for one, other in zip(got, want):
        np.testing.assert_array_equal(one, other)
