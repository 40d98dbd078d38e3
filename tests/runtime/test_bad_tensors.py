# SPDX-License-Identifier: Apache-2.0
"""Tensors that no honest program would pass: each is refused with a message, none crashes."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from roundel.ir.errors import CallError
from roundel.runtime import library, tensors
from roundel.runtime.native import DLTensor
from runtime.native_module import WEIGHT

BIG = 2**62


class Raw:
    """Arguments of ``scale`` as C structures, to be spoilt one field at a time."""

    def __init__(self) -> None:
        self.x, self.y = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
        self.sizes = [(ctypes.c_int64 * 2)(2, 4) for _ in range(2)]
        self.strides = [(ctypes.c_int64 * 2)(4, 1) for _ in range(2)]
        self.tensors = [
            DLTensor(a.ctypes.data, 1, 0, 2, 2, 32, 1, ctypes.addressof(s), ctypes.addressof(t), 0)
            for a, s, t in zip((self.x, self.y), self.sizes, self.strides)
        ]

    def run(self, function) -> int:
        pointers = (ctypes.c_void_p * 2)(*[ctypes.addressof(t) for t in self.tensors])
        return library.runtime().rd_invoke(function._owner.handle, function._index, pointers)


def spoil(raw: Raw, which: int, field: str, value: int) -> None:
    if field.startswith("shape") and field != "shape":
        raw.sizes[which][int(field[5:])] = value
    elif field.startswith("strides") and field != "strides":
        raw.strides[which][int(field[7:])] = value
    else:
        setattr(raw.tensors[which], field, value or None if field in ("data", "shape", "strides") else value)


CASES = [
    ("shape0", -1, "negative"), ("shape0", BIG, "overflows"), ("shape1", -(2**63), "negative"),
    ("shape1", 5, "expected 4"), ("shape", 0, "has no shape"), ("ndim", 0, "0 dimensions"),
    ("ndim", 3, "3 dimensions"), ("ndim", 1000, "1000 dimensions"), ("code", 0, "dtype int32"),
    ("code", 99, "dtype"), ("bits", 0, "dtype"), ("bits", 255, "dtype"), ("lanes", 0, "dtype"),
    ("lanes", 65535, "dtype"), ("device_type", 2, "device type 2"), ("strides0", BIG, "overflow"),
    ("strides1", -BIG, "overflow"), ("data", 0, "has no data"),
]  # fmt: skip


@pytest.mark.parametrize("which", [0, 1], ids=["input", "output"])
@pytest.mark.parametrize("field, value, message", CASES)
def test_refused(programs, which, field, value, message):
    raw = Raw()
    spoil(raw, which, field, value)
    assert raw.run(programs["scale"]) in (2, 3)
    assert message in library.runtime().roundel_last_error().decode()


def test_accepted(programs):
    raw = Raw()
    assert raw.run(programs["scale"]) == 0
    np.testing.assert_array_equal(raw.y, 2 + np.tile(WEIGHT, (2, 1)))
    raw.tensors[0].strides = raw.tensors[1].strides = None
    assert raw.run(programs["scale"]) == 0
    raw = Raw()
    raw.sizes[0][0] = raw.sizes[1][0] = 0
    raw.tensors[0].data = raw.tensors[1].data = None
    assert raw.run(programs["scale"]) == 0


def test_several_spoilt_fields_at_once(programs):
    rng = random.Random(0)
    fields = [c[0] for c in CASES if not c[0].startswith("strides")] + ["data"]
    for _ in range(3000):
        raw = Raw()
        for _ in range(rng.randint(1, 4)):
            field = rng.choice(fields)
            value = 0 if field in ("data", "shape") else rng.choice([-1, 0, 1, 2, 3, 4, 7, BIG, -(2**63), 2**63 - 1])
            spoil(raw, rng.randint(0, 1), field, value)
        assert raw.run(programs["scale"]) in (0, 2, 3)


def test_absurd_sizes(graphs):
    with pytest.raises((CallError, MemoryError)):
        graphs["fill"](2**62)
    with pytest.raises((RuntimeError, MemoryError)):
        graphs["fill"](2**40)


def test_addresses_of_all_kinds_of_arrays():
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    field = np.zeros(3, "i1,f4")["f1"]
    for array in (np.zeros((4, 6), np.int16)[1:, ::-2], np.zeros(2, bool), np.zeros(3, ">f4"), frozen, field, np.full((), 3.0)):
        assert tensors.address(array) == array.ctypes.data
