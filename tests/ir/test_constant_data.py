# SPDX-License-Identifier: Apache-2.0
"""Arrays of constants: what is copied in blocks is what NumPy copies at once, and a key is the same whoever hashes the content, and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from roundel.ir.constants import ConstData, in_order
from roundel.ir.dtype import DType

CASES = [((1031, 517), (1, 0)), ((65, 3, 1500), (2, 0, 1)), ((7, 300, 130), (0, 2, 1)), ((700, 600), (0, 1)), ((5, 3), (1, 0))]


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_a_copy_in_blocks_is_the_whole_array(shape, axes):
    array = np.random.default_rng(0).standard_normal(shape, np.float32).transpose(axes)
    for given in (array, array[::-1], array[..., 1:-1]):
        made = in_order(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype and np.array_equal(made, given)


@pytest.mark.parametrize("begins", ["before", "never", "too late"])
def test_a_key_that_a_thread_works_out_is_the_same(begins):
    array = np.random.default_rng(1).standard_normal((300, 70), np.float32)
    load = lambda: ConstData(load=lambda: array, shape=array.shape, dtype=DType("float32"))
    expected, data, gate = load().key, load(), Event()
    threads = ThreadPoolExecutor(1)
    if begins != "before":
        threads.submit(gate.wait)
    data.hash_ahead(threads)
    if begins == "never":
        gate.set()
        threads.shutdown(cancel_futures=True)
    derived = ConstData.derived(lambda a: a[::-1], (data,), "turned", shape=array.shape, dtype=DType("float32"))
    assert list(derived.leaves()) == [data] and data.key == expected
    gate.set()
    threads.shutdown()
