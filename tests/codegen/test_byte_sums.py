# SPDX-License-Identifier: Apache-2.0
"""Sums of bytes with constant factors, rounded to a byte, without floats: the results of floats."""

import ctypes
import subprocess

import numpy as np
import pytest

from roundel.codegen.c import functions  # noqa: F401  (the rules by which a writer writes)
from roundel.codegen.c.byte_sums import Linear
from roundel.codegen.c.quantised import quantised
from roundel.codegen.c.writer import Helpers, Writer
from roundel.ir import tir

INCLUDES = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#define RD_ROUNDS\n#define RD_INLINE static inline\n"
RNG = np.random.default_rng(0)


def const(value):
    return tir.const(float(np.float32(value)), "float32")


def rounded(value, zero=-128, low=-128, high=127):
    return tir.cast(tir.Min(tir.Max(tir.call("round", value) + const(zero), const(low)), const(high)), "int8")


def written(value, names):
    """The text of a rounded value of variables with these names, and of what it calls."""
    w = Writer(Helpers(), str)
    w.for_board, w.env = True, {v: v.name for v in names}
    text = quantised(w, rounded(value))
    return text, "\n".join(w.helpers.texts.values())


def both(tmp_path, value, a, b):
    """The results for all bytes, with instructions for floats and without."""
    text, helpers = written(value, (a, b))
    x, y = (v.reshape(-1).copy() for v in np.meshgrid(np.arange(-128, 128, dtype=np.int8), np.arange(-128, 128, dtype=np.int8)))
    made = []
    for way, machine in (("floats", "#define FP_FAST_FMAF\n"), ("none", "#define RD_NO_FLOATS\n")):
        loop = f"for (int k = 0; k < n; k++) {{ int8_t a = p[k], b = q[k]; r[k] = {text}; }}"
        call = f"void sums(const int8_t *p, const int8_t *q, int8_t *r, int n) {{ {loop} }}\n"
        (tmp_path / f"{way}.c").write_text(INCLUDES + machine + helpers + "\n" + call)
        subprocess.run(["cc", "-O2", "-w", "-ffp-contract=off", "-shared", "-fPIC", f"{way}.c", "-o", f"{way}.so", "-lm"], cwd=tmp_path, check=True)
        made.append(np.zeros(x.size, np.int8))
        ctypes.CDLL(str(tmp_path / f"{way}.so")).sums(*(v.ctypes.data_as(ctypes.c_void_p) for v in (x, y, made[-1])), x.size)
    return text, made


@pytest.mark.parametrize("form", range(6))
def test_sums_without_floats_are_those_of_floats(form, tmp_path):
    """Of all pairs of bytes: factors as models have them, and such that many sums lie exactly between two numbers."""
    a, b = tir.Var("a", "int8"), tir.Var("b", "int8")
    x, y = tir.cast(a, "float32"), tir.cast(b, "float32")
    s, t, u = (const(v) for v in RNG.uniform(0.01, 0.06, 3))
    value = [(x - const(-128)) * s + y * t, ((x - const(-128)) * s + y * t) * const(32.4), x * const(0.25) + y * const(0.5), (x - y) * u,
             x * s * const(9) - const(0.5), tir.call("fma", x, s, (y + const(3)) * const(7.5))][form]
    text, (floats, none) = both(tmp_path, value, a, b)
    assert text.startswith("rd_sum_i8_")
    np.testing.assert_array_equal(none, floats)
    assert len(np.unique(floats)) > 3


def test_what_is_no_such_sum_is_left_to_floats():
    a, x = tir.Var("a", "int8"), tir.Var("x", "float32")
    byte = tir.cast(a, "float32")
    assert Linear.of(byte * byte) is Linear.of(byte + x) is Linear.of(byte * const(np.inf)) is None
    assert not written(byte * const(1e6), (a,))[0].startswith("rd_sum")  # no room behind the point
    assert not written(byte * const(0.1) + x, (a, x))[0].startswith("rd_sum")
