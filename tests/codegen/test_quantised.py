# SPDX-License-Identifier: Apache-2.0
"""What ends kernels of quantised models: floats that are rounded, moved by a zero point and limited, as bytes."""

import ctypes
import os
import subprocess

import numpy as np
import pytest
from flat_programs import elementwise

from roundel.codegen.c import prelude, quantised
from roundel.ir import tir


@pytest.mark.parametrize("kind, lanes", [("c", 1), ("c -mattr=+mve.fp", 8), ("", 1)])
@pytest.mark.parametrize("out, zero, low, high", [("int8", -128.0, -128.0, 127.0), ("int8", 3.0, 3.0, 100.0), ("uint8", 0.0, 0.0, 255.0),
                                                  ("uint8", 255.0, 0.0, 255.0), ("int8", 16384.0, -500.0, 500.0), ("int8", 0.5, -128.0, 127.0),
                                                  ("int8", -1e9, -128.0, 127.0)])
def test_a_rounded_number_with_a_zero_point_between_limits(out, zero, low, high, kind, lanes, monkeypatch):
    monkeypatch.setitem(os.environ, "ROUNDEL_TEST_TARGET", kind)
    rng = np.random.default_rng(0)
    ends = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -1.5, 32766.5, 32767.5, -32768.5, 1e9, -1e9, 3e38, 16777217.0, -16511.5,
            1e-45, 127.5, -127.5]
    x = np.concatenate([np.array(ends, np.float32), rng.integers(-600, 600, 107).astype(np.float32) / 2])
    value = lambda x: tir.Max(tir.call("round", x) + tir.const(zero, "float32"), tir.const(low, "float32"))
    fn = lambda x: tir.cast(tir.Min(value(x), tir.const(high, "float32")), out)
    with np.errstate(all="ignore"):
        limited = np.minimum(np.maximum(np.rint(x) + np.float32(zero), np.float32(low)), np.float32(high))
    np.testing.assert_array_equal(elementwise(fn, x, out=out, lanes=lanes), _cut(limited, out))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("out, zero, low, high, moved", [
    ("uint8", -128.0, -128.0, 127.0, 128.0), ("uint8", -13.0, -128.0, 127.0, 128.0), ("int8", 5.0, 0.0, 255.0, -128.0),
    ("uint8", 0.0, 0.0, 127.0, 128.0), ("uint8", -100.0, -200.0, 300.0, 50.0), ("int8", -13.0, -128.0, 127.0, 0.0)])
def test_limited_numbers_are_moved_into_bytes_and_may_be_floats_again(out, zero, low, high, moved, back):
    rng = np.random.default_rng(1)
    ends = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, 1.5, -0.5, -1.5, 1e9, -1e9, 3e38, 16777217.0, 1e-45, 127.5, -127.5, 255.5]
    x = np.concatenate([np.array(ends, np.float32), rng.integers(-900, 900, 111).astype(np.float32) / 2])
    limited = lambda x: tir.Min(tir.Max(tir.call("round", x) + tir.const(zero, "float32"), tir.const(low, "float32")), tir.const(high, "float32"))
    fn = lambda x: tir.cast(limited(x) + tir.const(moved, "float32"), out)
    with np.errstate(all="ignore"):
        want = _cut(np.minimum(np.maximum(np.rint(x) + np.float32(zero), np.float32(low)), np.float32(high)) + np.float32(moved), out)
    if back:
        moved_back = elementwise(lambda x: tir.cast(fn(x), "float32") - tir.const(140.0, "float32"), x, out="float32")
        np.testing.assert_array_equal(moved_back, want.astype("float32") - 140)
    kind = "float32" if back else out
    np.testing.assert_array_equal(elementwise((lambda x: tir.cast(fn(x), "float32")) if back else fn, x, out=kind), want.astype(kind))


def _cut(x, out):
    info = np.iinfo(out)
    return np.nan_to_num(np.clip(x, info.min, info.max)).astype(np.int64).astype(out)


def test_the_rule_is_for_small_numbers():
    assert quantised._whole(tir.const(-128.0, "float32")) == -128
    assert quantised._whole(tir.const(0.5, "float32")) is quantised._whole(tir.const(1e9, "float32")) is None


def test_scales_without_floats_give_what_floats_give(tmp_path):
    """Random scales and sums of all sizes, and those whose results are exactly between two numbers."""
    from roundel.ir.dtype import DType

    byte, number = DType("int8"), DType("float32")
    helpers = (prelude.fused(number), prelude.nearest(number), quantised._helper(byte, "rd_round_f32"),
               quantised._scaled_helper(byte, "rd_quantised_i8", "rd_fma_f32"))
    text = "\n".join(helper for _, helper in helpers)
    includes = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#define RD_ROUNDS\n#define RD_INLINE static inline\n"
    call = "(const int32_t *x, const float *a, const float *b, int8_t *y, int n) {{\n" \
           "  for (int k = 0; k < n; k++) y[k] = rd_scaled_i8(x[k], a[k], b[k], 3, -128, 127);\n}}\n"
    rng, count = np.random.default_rng(2), 200_000
    a, b = ((2.0 ** rng.uniform(*ends, count) * rng.choice([-1, 1, 1, 1], count)).astype(np.float32) for ends in ((-34, 3), (-42, 12)))
    a[1::3] = 2.0 ** rng.uniform(-14, -4, len(a[1::3]))  # as models have them
    a[::7], b[::7], b[::5] = 0.25, rng.integers(-9, 9, len(b[::7])) / 2, 0.0
    for k, special in enumerate([0.0, np.nan, np.inf, 1e-40, 1e38, -np.inf]):
        for array in (a, b):
            array[1000 + k :: 4001] = special
    x = (rng.uniform(-1, 1, count) * 2.0 ** rng.uniform(2, 31, count)).astype(np.int32)
    made = []
    for way in ("floats", "none"):
        machine = "#define RD_NO_FLOATS\n" if way == "none" else "#define FP_FAST_FMAF\n"
        (tmp_path / f"{way}.c").write_text(includes + machine + text + "\nvoid scaled" + call.format())
        subprocess.run(["cc", "-O2", "-w", "-ffp-contract=off", "-shared", "-fPIC", f"{way}.c", "-o", f"{way}.so", "-lm"], cwd=tmp_path, check=True)
        made.append(np.zeros(count, np.int8))
        ctypes.CDLL(str(tmp_path / f"{way}.so")).scaled(*(v.ctypes.data_as(ctypes.c_void_p) for v in (x, a, b, made[-1])), count)
    np.testing.assert_array_equal(*made)
    assert len(np.unique(made[0])) == 256
