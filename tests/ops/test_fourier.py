# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of known lengths (products of small primes and others) and of symbolic ones, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel import te
from roundel.builder import BlockBuilder
from roundel.driver import compile_module
from roundel.ir import graph
from roundel.ops import make
from roundel.ops.fourier_passes import Passes, factors, roots

LENGTHS = (1, 2, 10, 17, 30, 44, 64)
NORMS = {None: "backward", "root": "ortho", "points": "forward"}


def model(calls, shapes, dtype="float32"):
    """One function with the results of all ``calls(*operands)``."""
    bb = BlockBuilder()
    params = [graph.Var(f"x{k}", graph.TensorInfo(s, dtype)) for k, s in enumerate(shapes)]
    with bb.function("main", params):
        outs = []
        for call in calls(*params):
            held = bb.emit(call)
            outs += [bb.emit(graph.TupleGetItem(held, k)) for k in (0, 1)] if isinstance(held.sinfo, graph.TupleInfo) else [held]
        bb.emit_func_output(graph.Tuple(tuple(outs)))
    return compile_module(bb.finalize()).load()["main"]


def both_ways(re, im, half, half_im, points):
    return [make("fft.c2c", re, im), make("fft.c2c", re, im, inverse=True, norm="points"), make("fft.r2c", re, norm="root"),
            make("fft.r2c", re, onesided=False), make("fft.c2r", half, half_im, points, norm="points")]


def expected(z, half, n):
    out = [np.fft.fft(z), np.fft.ifft(z), np.fft.rfft(z.real, norm="ortho"), np.fft.fft(z.real), np.fft.irfft(half, n)]
    return [p for v in out for p in ((v.real, v.imag) if np.iscomplexobj(v) else (v,))]


def numbers(n, batch=3):
    rng = np.random.default_rng(n)
    return rng.standard_normal((batch, n)) + 1j * rng.standard_normal((batch, n))


def compare(got, want, tolerance):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        assert np.abs(g - w).max(initial=0) <= tolerance * max(np.abs(w).max(initial=0), 1)


@pytest.mark.parametrize("n", LENGTHS)
def test_known_lengths(n):
    z = numbers(n)
    half = np.fft.rfft(z.real)
    operands = [p.astype(np.float32) for v in (z, half) for p in (v.real, v.imag)]
    f = model(lambda *x: both_ways(*x, n), [p.shape for p in operands])
    compare(f(*operands), expected(z, half, n), 2e-6)


def test_symbolic_length():
    b, n = te.size_var("b"), te.size_var("n")
    f = model(lambda re, im: both_ways(re, im, re, im, n * 2 - 2), [(b, n), (b, n)])
    for size in (2, 7, 8, 30, 97):
        z = numbers(size, 2)
        compare(f(z.real.astype(np.float32), z.imag.astype(np.float32)), expected(z, z, 2 * size - 2), 1e-6)


def test_double_precision_and_half():
    z = numbers(60)
    for dtype, tolerance in ((np.float64, 1e-14), (np.float16, 1e-3)):
        parts = [z.real.astype(dtype), z.imag.astype(dtype)]
        got = model(lambda re, im: [make("fft.c2c", re, im, norm="root")], [z.shape] * 2, np.dtype(dtype).name)(*parts)
        assert got[0].dtype == dtype
        want = np.fft.fft(parts[0].astype(float) + 1j * parts[1], norm="ortho")
        compare(got, [want.real, want.imag], tolerance)


def test_what_cancels_by_symmetry_is_exactly_zero():
    x = np.random.default_rng(0).standard_normal((4, 36)).astype(np.float32)
    re, im = model(lambda x: [make("fft.r2c", x)], [x.shape])(x)
    assert not im[:, 0].any() and not im[:, 18].any()
    re, im = model(lambda x: [make("fft.c2c", x, x, norm="points")], [x.shape])(x)
    np.testing.assert_array_equal(re[:, 0], im[:, 0])


@pytest.mark.parametrize("form", ["complex", "real", "to_real"])
@pytest.mark.parametrize("n", [1, 6, 15])
def test_passes_interpreted(n, form):
    table = T(values=Passes.of(n, form).table(), dtype="float32")
    width = n // 2 + 1 if form == "to_real" else n
    parts = [T(2, width) for _ in range(1 if form == "real" else 2)]
    opcheck("fft.passes", (*parts, table), n, form=form, norm="root", tolerance=1e-5)


def test_factors_and_roots():
    assert factors(1) == [1] and factors(2 * 64 * 9 * 7) == [2, 4, 4, 4, 3, 3, 7]
    np.testing.assert_array_equal(roots(12)[:, ::3], [[1, 0, -1, 0], [0, -1, 0, 1]])
    np.testing.assert_allclose(roots(7)[0] + 1j * roots(7)[1], np.exp(-2j * np.pi * np.arange(7) / 7), atol=1e-16)


def test_operands_that_do_not_fit_are_refused():
    x = graph.Var("x", graph.TensorInfo((2, 5), "float32"))
    whole = graph.Var("i", graph.TensorInfo((2, 5), "int32"))
    for call in (lambda: make("fft.c2r", x, x, 10), lambda: make("fft.r2c", x, norm="half"), lambda: make("fft.c2c", whole, x)):
        with pytest.raises(Exception, match="fft"):
            call()
