# SPDX-License-Identifier: Apache-2.0
"""Compiled models under AddressSanitizer: a short run, and the proof that it finds what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.ir.errors import BuildError

from . import checked_accesses, object_models, objects

_CHECK = "call void @__asan_{}N_noabort(i64 %checked{}, i64 {})"


@pytest.fixture
def with_sanitizer():
    try:
        objects.sanitizer()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_short_form(with_sanitizer):
    assert list(objects.attack(6, seed=0)) == []


@pytest.mark.parametrize("kind", [k for k in object_models.kinds() if k.name.startswith(("Winograd", "Strassen"))], ids=lambda k: k.name)
def test_kinds_that_ask_for_an_algorithm_get_it(kind):
    """Without the sanitizer: an algorithm that cannot be had any more is an error."""
    result = kind.build()(*kind.arguments(np.random.default_rng(0)))
    assert np.isfinite(result).all()


def test_accesses_beside_arguments_weights_results_and_in_single_lanes_are_found(with_sanitizer):
    found = objects.caught()
    assert found.pop("masked lanes behind") == []
    assert all("use-after-poison" in " ".join(said) for said in found.values()), found


def test_each_access_is_checked_with_its_bytes():
    text = checked_accesses.instrument("  %a = load <8 x float>, ptr %p, align 4\n  store i64 %n, ptr @g, align 8, !x !0\n")
    assert _CHECK.format("load", 1, 32) in text
    assert _CHECK.format("store", 2, 8) in text


@pytest.mark.parametrize(
    "access",
    [
        "%m = call <2 x i16> @llvm.masked.load.v2i16.p0(ptr %p, i32 2, <2 x i1> <i1 true, i1 false>, <2 x i16> zeroinitializer)",
        "call void @llvm.masked.store.v2i16.p0(<2 x i16> <i16 1, i16 2>, ptr %p, i32 2, <2 x i1> %mask)",
        "%m = call <2 x i16> @llvm.masked.gather.v2i16.v2p0(<2 x ptr> %p, i32 2, <2 x i1> %mask, <2 x i16> zeroinitializer)",
        "call void @llvm.masked.scatter.v2i16.v2p0(<2 x i16> %v, <2 x ptr> %p, i32 2, <2 x i1> splat (i1 true))",
    ],
)
def test_masked_accesses_are_checked_lane_by_lane(access):
    lines = checked_accesses.instrument(f"  {access}\n").splitlines()
    assert sum("call void @__asan_" in line for line in lines) == sum("i64 2, i64 0" in line for line in lines) == 2


def test_ranges_are_checked_whole():
    text = checked_accesses.instrument("  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)\n")
    assert _CHECK.format("load", 1, "%n") in text
    assert _CHECK.format("store", 2, "%n") in text


@pytest.mark.parametrize("access", ["%x = atomicrmw add ptr %p, i32 1 seq_cst", "%x = load i3, ptr %p", "call void @llvm.memset.inline.p0(ptr %p)"])
def test_what_is_not_known_is_refused(access):
    with pytest.raises((ValueError, KeyError)):
        checked_accesses.instrument(f"  {access}\n")
