# SPDX-License-Identifier: Apache-2.0
"""Intrinsics against NumPy and SciPy; errors of our own elementary functions in units in the last place."""

import numpy as np
import pytest
import scipy.special
from flat_programs import elementwise

from roundel.codegen.expand import EXPANSIONS
from roundel.interp import numeric
from roundel.ir import DType, tir

EXACT = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": scipy.special.erf, "sigmoid": scipy.special.expit, "exp2": np.exp2,
    "exp10": lambda x: 10.0**x, "expm1": np.expm1, "sinh": np.sinh, "cosh": np.cosh, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "lgamma": lambda x: np.where(np.isinf(x), np.inf, scipy.special.gammaln(x)), "erfc": scipy.special.erfc,
    "exp_flushed": lambda x: np.where(x < -87.3365, 0.0, np.exp(x)),
}
RANGES = {
    "exp": (-110, 95), "log": (0, 100), "tanh": (-12, 12), "erf": (-5, 5), "sigmoid": (-100, 100), "exp2": (-155, 130), "exp10": (-46, 40),
    "expm1": (-30, 90), "sinh": (-91, 91), "cosh": (-91, 91), "log2": (0, 100), "log10": (0, 100), "log1p": (-1, 50), "asinh": (-1e4, 1e4),
    "acosh": (1, 50), "atanh": (-1, 1), "sin": (-100, 100), "cos": (-9000, 9000), "tan": (-100, 100), "asin": (-1, 1), "acos": (-1, 1),
    "atan": (-20, 20), "lgamma": (-30, 60), "erfc": (-5, 10.2), "exp_flushed": (-110, 95),
}
SPECIAL = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-40,
        -1e-40,
        1e-45,
        1.0,
        -1.0,
        3.4e38,
        -3.4e38,
        1e-8,
        -1e-8,
        88.72,
        -87.4,
        -103.9,
        0.5,
        2.0,
        1.17549435e-38,
        0.99999994,
        1.0000001,
        0.921875,
        -0.921874,
    ],
    np.float32,
)


def call(name, x, *more):
    return tir.call(name, x, *more)


def ulps(got, want):
    """Distance from the exact value in units of the last place of float32."""
    want32 = want.astype(np.float32)
    unit = np.maximum(np.spacing(np.abs(want32)), np.float32(1e-45)).astype(np.float64)
    return np.abs(got.astype(np.float64) - want) / unit


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_expansions_are_within_4_ulp(name, lanes):
    low, high = RANGES[name]
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [np.linspace(low, high, 40000), rng.standard_normal(20000), rng.standard_normal(5536) * 1e-3]
    ).astype(np.float32)
    if name.startswith("log") and name != "log1p":
        x = np.abs(x)
    got = elementwise(lambda v, name=name: call(name, v), x, lanes=lanes)
    with np.errstate(all="ignore"):
        want = EXACT[name](x.astype(np.float64))
    finite = np.isfinite(got) & np.isfinite(want.astype(np.float32))
    assert np.array_equal(got[~finite], want[~finite].astype(np.float32), equal_nan=True)
    assert ulps(got, want)[finite].max() <= 4


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_expansions_of_special_values(name, lanes):
    got = elementwise(lambda v, name=name: call(name, v), SPECIAL, lanes=lanes)
    with np.errstate(all="ignore"):
        want = EXACT[name](SPECIAL.astype(np.float64))
    want32 = want.astype(np.float32)
    finite = np.isfinite(want32)
    assert np.array_equal(got[~finite], want32[~finite], equal_nan=True), (got, want32)
    assert ulps(got, want)[finite].max() <= 4
    assert np.array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


def test_angles_near_multiples_of_a_quadrant():
    k = np.arange(1, 5200) * np.pi / 2
    x = np.concatenate([k.astype("f"), np.nextafter(k.astype("f"), np.float32(0))])[:10384]
    for name in ("sin", "cos", "tan"):
        got = elementwise(lambda v, name=name: call(name, v), x, lanes=16)
        assert ulps(got, EXACT[name](x.astype(np.float64))).max() <= 4


def test_no_expansion_makes_a_number_of_nan():
    x = np.array([0x7F800001, 0x7FABCDEF, 0xFFFFFFFF, 0xFF812345] * 4, np.uint32).view("f")
    for name in sorted(EXACT):
        assert np.isnan(elementwise(lambda v, name=name: call(name, v), x, lanes=16)).all(), name


@pytest.mark.parametrize("name,exact", [("pow", np.power), ("atan2", np.arctan2), ("fmod", np.fmod)])
def test_expansions_of_two_operands(name, exact):
    assert set(EXPANSIONS) == {*EXACT, "pow", "atan2", "fmod"}
    rng = np.random.default_rng(0)
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    bits = rng.integers(0, 1 << 32, (2, 16384), dtype=np.uint64).astype(np.uint32).view("f")
    near = np.stack([np.abs(rng.standard_normal(16384)) * 3, rng.uniform(-30, 30, 16384)]).astype("f")
    for lanes, (x, y) in ((16, special), (1, special), (16, bits), (16, near)):
        got = elementwise(lambda a, b: call(name, a, b), x.copy(), y.copy(), lanes=lanes)
        with np.errstate(all="ignore"):
            want = exact(x.astype(np.float64), y.astype(np.float64))
        finite = np.isfinite(got) & np.isfinite(want.astype(np.float32))
        assert np.array_equal(got[~finite], want[~finite].astype(np.float32), equal_nan=True)
        assert ulps(got, want)[finite].max() <= 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_elementary_functions_of_other_types(name, dtype):
    low, high = RANGES[name]
    most = 4 if name == "exp10" else 10
    x = np.linspace(max(low, -most), min(high, most), 1000).astype(DType(dtype).numpy)
    x = x[np.abs(np.abs(x.astype(np.float64)) - 1) > 1e-2]  # where some functions end, and are steep
    x = x[: x.size // 8 * 8]
    got = elementwise(lambda v, name=name: call(name, v), x, lanes=8).astype(np.float64)
    with np.errstate(all="ignore"):
        want = EXACT[name](x.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol={"float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-14}[dtype], atol=1e-7)


UNARY = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp2": np.exp2,
    "exp10": lambda x: 10.0**x,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erfc": scipy.special.erfc,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "nearbyint": np.rint,
    "lgamma": scipy.special.gammaln,
    "tgamma": scipy.special.gamma,
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary_functions(name):
    for dtype, tolerance in (("float32", 2e-6), ("float64", 1e-13), ("float16", 2e-3), ("bfloat16", 1e-2)):
        x = np.concatenate([np.linspace(-3, 3, 113), [0.0, -0.0, np.nan, np.inf, 0.5, 1.5, 2.5]]).astype(
            DType(dtype).numpy
        )
        for lanes in (1, 8):
            got = elementwise(lambda v, name=name: call(name, v), x, lanes=lanes).astype(np.float64)
            with np.errstate(all="ignore"):
                want = UNARY[name](x.astype(np.float64)).astype(x.dtype).astype(np.float64)
            poles = np.isinf(want) & (name == "tgamma")
            np.testing.assert_allclose(got[~poles], want[~poles], rtol=tolerance, atol=tolerance)
    with np.errstate(all="ignore"):  # the interpreter means the same function
        x = x.astype(np.float64)
        np.testing.assert_allclose((numeric.FLOAT | numeric.ANY)[name](x[~poles]), UNARY[name](x[~poles]), rtol=1e-12, atol=1e-12)


def test_binary_functions():
    rng = np.random.default_rng(0)
    a, b = (np.abs(rng.standard_normal(64)) + 0.1).astype("f"), rng.standard_normal(64).astype("f")
    for name, ref in (
        ("pow", np.power),
        ("atan2", np.arctan2),
        ("fmod", np.fmod),
        ("hypot", np.hypot),
        ("copysign", np.copysign),
        ("nextafter", np.nextafter),
    ):
        for lanes in (1, 8):
            np.testing.assert_allclose(
                elementwise(lambda x, y, name=name: call(name, x, y), a, b, lanes=lanes), ref(a, b), rtol=2e-6
            )
    exponents = rng.integers(-5, 5, 64).astype("f")
    np.testing.assert_array_equal(
        elementwise(lambda x, y: call("ldexp", x, tir.cast(y, "int32")), a, exponents),
        np.ldexp(a, exponents.astype(int)),
    )
    c = rng.standard_normal(64).astype("f")
    np.testing.assert_allclose(
        elementwise(lambda x, y, z: call("fma", x, y, z), a, b, c), a * b + c, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integer_powers(dtype):
    rng = np.random.default_rng(0)
    base, power = rng.integers(0, 12, 64).astype(dtype), rng.integers(0, 20, 64).astype(dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(elementwise(lambda x, y: call("pow", x, y), base, power), np.power(base, power))
    if dtype != "uint8":
        got = elementwise(
            lambda x, y: call("pow", x, y), np.array([1, -1, -1, 2, 0], dtype), np.array([-3, -3, -4, -1, -1], dtype)
        )
        assert got.tolist() == [1, -1, 1, 0, 0]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_classification(dtype, lanes):
    x = np.array([0.0, np.nan, np.inf, -np.inf, 1, -1, 1e-7, 100], DType(dtype).numpy)
    for name, ref in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        np.testing.assert_array_equal(
            elementwise(lambda v, name=name: call(name, v), x, out="bool", lanes=lanes), ref(x.astype(np.float64))
        )


@pytest.mark.parametrize("lanes", [1, 4])
def test_bits(lanes):
    rng = np.random.default_rng(0)
    for dtype in ("int8", "uint16", "int32", "uint64"):
        info = np.iinfo(dtype)
        a, b = rng.integers(info.min, info.max, (2, 64), dtype=dtype)
        a[0] = 0
        for name, ref in (("bitwise_and", a & b), ("bitwise_or", a | b), ("bitwise_xor", a ^ b), ("bitwise_not", ~a)):
            args = (a,) if name == "bitwise_not" else (a, b)
            np.testing.assert_array_equal(elementwise(lambda *v, name=name: call(name, *v), *args, lanes=lanes), ref)
        by = rng.integers(0, info.bits + 5, 64).astype(dtype)
        wide = a.astype(object)
        left = np.array(
            [(int(x) << int(s)) & ((1 << info.bits) - 1) for x, s in zip(wide, by)], dtype=np.uint64
        ).astype(dtype)
        right = np.array([int(x) >> int(s) for x, s in zip(wide, by)], dtype=dtype)
        np.testing.assert_array_equal(elementwise(lambda x, y: x << y, a, by, lanes=lanes), left)
        np.testing.assert_array_equal(elementwise(lambda x, y: x >> y, a, by, lanes=lanes), right)
        ones = np.array([bin(int(x) & ((1 << info.bits) - 1)).count("1") for x in a], dtype)
        np.testing.assert_array_equal(elementwise(lambda x: call("popcount", x), a, lanes=lanes), ones)
        zeros = np.array([info.bits - (int(x) & ((1 << info.bits) - 1)).bit_length() for x in a], dtype)
        np.testing.assert_array_equal(elementwise(lambda x: call("clz", x), a, lanes=lanes), zeros)
    bits = elementwise(
        lambda x: tir.Call("reinterpret", (x,), DType("uint32").with_lanes(x.dtype.lanes)),
        SPECIAL,
        out="uint32",
        lanes=lanes,
    )
    np.testing.assert_array_equal(bits, SPECIAL.view(np.uint32))


@pytest.mark.parametrize("lanes", [2, 3, 8, 16, 24])
def test_horizontal_reductions(lanes):
    from flat_programs import c, flat, func, loop

    from roundel.ir import Var, decl_buffer

    rng = np.random.default_rng(0)
    for dtype in ("float32", "int32", "int8", "bfloat16"):
        x = decl_buffer((lanes,), dtype, "x")
        data = (rng.standard_normal(lanes) * 3).astype(DType(dtype).numpy)
        for name, ref in (
            ("reduce_add", np.sum),
            ("reduce_max", np.max),
            ("reduce_min", np.min),
            ("reduce_mul", np.prod),
        ):
            y, i = decl_buffer((1,), dtype, "y"), Var("i", DType("int64"))
            out = np.zeros(1, x.dtype.numpy)
            value = tir.call(name, tir.BufferLoad(x, (tir.Ramp(c(0), c(1), lanes),)))
            flat(func([x, y], loop(i, 1, tir.BufferStore(y, value, (i,)))))["main"](data, out)
            want = ref(data.astype(np.float64)) if dtype != "int8" else ref(data.astype(np.int64)).astype(np.int8)
            np.testing.assert_allclose(
                out.astype(np.float64)[0], np.float64(want), rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-4
            )


@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("kinds", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")])
def test_dot_accumulate(kinds, lanes):
    from flat_programs import c, flat, func

    from roundel.ir import decl_buffer

    rng = np.random.default_rng(0)
    a, b = (rng.integers(np.iinfo(k).min, np.iinfo(k).max, 4 * lanes, endpoint=True).astype(k) for k in kinds)
    acc = rng.integers(-1000, 1000, lanes).astype(np.int32)
    A, B, C = (
        decl_buffer((4 * lanes,), kinds[0], "A"),
        decl_buffer((4 * lanes,), kinds[1], "B"),
        decl_buffer((lanes,), "int32", "C"),
    )
    ramp = lambda n: tir.Ramp(c(0), c(1), n) if n > 1 else c(0)
    value = tir.call(
        "dot_accumulate",
        tir.BufferLoad(C, (ramp(lanes),)),
        tir.BufferLoad(A, (ramp(4 * lanes),)),
        tir.BufferLoad(B, (ramp(4 * lanes),)),
    )
    got = acc.copy()
    flat(func([A, B, C], tir.BufferStore(C, value, (ramp(lanes),))))["main"](a, b, got)
    np.testing.assert_array_equal(got, acc + (a.astype(np.int32) * b.astype(np.int32)).reshape(lanes, 4).sum(1))


def test_loads_of_memory_that_adjoins_are_one():
    from flat_programs import c, flat, func

    from roundel.ir import decl_buffer

    A, B = decl_buffer((8, 4), "int32", "A"), decl_buffer((2, 16), "int32", "B")
    rows = lambda order: tuple(tir.BufferLoad(A, (c(r), tir.Ramp(c(0), c(1), 4))) for r in order)
    shuffles = [tir.Shuffle(rows(order), tuple(range(16))) for order in ((2, 3, 4, 5), (2, 3, 5, 4))]
    stores = tir.seq(*(tir.BufferStore(B, s, (c(k), tir.Ramp(c(0), c(1), 16))) for k, s in enumerate(shuffles)))
    a, out = np.arange(32, dtype=np.int32).reshape(8, 4), np.zeros((2, 16), np.int32)
    flat(func([A, B], stores))["main"](a, out)
    np.testing.assert_array_equal(out, np.stack([a[[2, 3, 4, 5]].reshape(-1), a[[2, 3, 5, 4]].reshape(-1)]))


@pytest.mark.parametrize("target", ["uint8", "int8", "uint16", "int16", "int32"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_vectors_of_floats_saturate(source, target):
    from flat_programs import c, flat, func

    from roundel.ir import decl_buffer

    info = np.iinfo(target)
    edges = [x + d for x in (info.min, info.max, 0) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    data = np.array([*edges, np.nan, np.inf, -np.inf, 1e30, -1e30, 2147483520, 4294967296, -2147483904, -0.0, 3.99, -3.99], source)
    A, B = decl_buffer((32,), source, "A"), decl_buffer((32,), target, "B")
    ramp = tir.Ramp(c(0), c(1), 32)
    out = np.zeros(32, target)
    flat(func([A, B], tir.BufferStore(B, tir.cast(tir.BufferLoad(A, (ramp,)), f"{target}x32"), (ramp,))))["main"](data, out)
    wide = np.nan_to_num(data.astype(np.float64), nan=0, posinf=1e40, neginf=-1e40)
    np.testing.assert_array_equal(out, np.clip(np.trunc(wide), info.min, info.max).astype(np.int64).astype(target))
