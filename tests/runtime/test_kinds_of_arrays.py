# SPDX-License-Identifier: Apache-2.0
"""Arrays and tensors of every kind: each gives the result that its elements say, or a CallError that says what to pass instead."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roundel as rd
from roundel.ir.errors import CallError
from roundel.runtime import tensors

torch = pytest.importorskip("torch")
VALUES = np.arange(1, 9, dtype=np.float32).reshape(2, 4)


@pytest.fixture(scope="module")
def double():
    """Twice its input, ``float32[2, 4]``."""
    model = rd.compile(_Double(), (torch.from_numpy(VALUES),))
    return lambda x: np.asarray(model(x))


class _Double(torch.nn.Module):
    def forward(self, x):
        return x * 2


def _strided(source: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(source, (2, 4), strides)


def _unaligned() -> np.ndarray:
    return np.frombuffer(b"x" + VALUES.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 4)


def _field() -> np.ndarray:
    table = np.zeros((2, 4), "i1,f4")
    table["f1"] = VALUES
    return table["f1"]


def _frozen() -> np.ndarray:
    copy = VALUES.copy()
    copy.flags.writeable = False
    return copy


class _Wrapped:
    def __array__(self, dtype=None, copy=None):
        return VALUES


class _Subclass(torch.Tensor):
    pass


def _complex() -> torch.Tensor:
    return torch.complex(torch.zeros(2, 4), torch.from_numpy(VALUES))


RIGHT = {
    "big-endian": lambda: VALUES.astype(">f4"),
    "negative strides": lambda: VALUES[::-1, ::-1].copy()[::-1, ::-1],
    "zero strides": lambda: np.broadcast_to(VALUES[:, :1], (2, 4)),
    "Fortran order": lambda: np.asfortranarray(VALUES),
    "read-only": _frozen,
    "unaligned": _unaligned,
    "a field of records": _field,
    "strides that are no multiples of the element": lambda: _strided(np.frombuffer(bytes(2) + VALUES.tobytes(), np.uint8)[2:].view(np.float32), (16, 4)),
    "matrix": lambda: np.asmatrix(VALUES),
    "nested lists": lambda: VALUES.tolist(),
    "__array__": _Wrapped,
    "torch": lambda: torch.from_numpy(VALUES),
    "requires_grad": lambda: torch.nn.Parameter(torch.from_numpy(VALUES)),
    "negative bit": lambda: _complex().conj().imag,
    "negative and transposed": lambda: _complex().mT.contiguous().conj().mT.imag,
    "expanded": lambda: torch.from_numpy(VALUES[:, :1].copy()).expand(2, 4),
    "strided": lambda: torch.from_numpy(np.repeat(VALUES, 2, 1))[:, ::2],
    "subclass": lambda: torch.from_numpy(VALUES).as_subclass(_Subclass),
    "inference": lambda: torch.inference_mode()(lambda: torch.from_numpy(VALUES) * 1)(),
}
REFUSED = {
    "masked": (lambda: np.ma.masked_greater(VALUES, 3), "filled"),
    "structured": (lambda: np.zeros((2, 4), "i1,f4"), "structured"),
    "objects": (lambda: VALUES.astype(object), "object"),
    "dates": (lambda: np.zeros((2, 4), "datetime64[s]"), "datetime64"),
    "texts": (lambda: VALUES.astype(str), "<U"),
    "extended precision": (lambda: VALUES.astype(np.longdouble), "float"),
    "sparse": (lambda: torch.from_numpy(VALUES).to_sparse(), "to_dense"),
    "sparse rows": (lambda: torch.from_numpy(VALUES).to_sparse_csr(), "to_dense"),
    "quantised": (lambda: torch.quantize_per_tensor(torch.from_numpy(VALUES), 0.1, 0, torch.qint8), "dequantize"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(4), torch.ones(2)]), "to_padded_tensor"),
    "jagged": (lambda: torch.nested.nested_tensor([torch.ones(4), torch.ones(2)], layout=torch.jagged), "to_padded_tensor"),
    "meta": (lambda: torch.empty(2, 4, device="meta"), "no data"),
    "another type": (lambda: VALUES.astype(np.float64), "float64"),
    "another rank": (lambda: VALUES[0], "1 dimensions"),
    "no tensor": (lambda: object(), "object is not a tensor"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", RIGHT)
def test_right(double, kind):
    value = RIGHT[kind]()
    with torch.no_grad():
        expected = 2 * (value.resolve_neg().numpy() if isinstance(value, torch.Tensor) else np.asarray(value, np.float32))
    np.testing.assert_array_equal(double(value), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED)
def test_refused_with_what_to_do(double, kind):
    make, words = REFUSED[kind]
    with pytest.raises(CallError, match=words):
        double(make())


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(-3, 3)), max_size=4), st.sampled_from(["<f4", ">f4"]), st.booleans())
def test_whatever_the_strides(dims, dtype, through_torch):
    """Sizes and strides at random, of size-1 dimensions too: what is passed on holds the elements that the array has."""
    backing = np.arange(64, dtype=dtype)
    array = np.lib.stride_tricks.as_strided(backing[32:], [d for d, _ in dims], [4 * s for _, s in dims])
    value = torch.from_numpy(array.copy()) if through_torch and dtype == "<f4" else array
    _, keep = tensors.view(tensors.prepare(value, rd.ir.DType("float32")))
    described = keep.tensor if isinstance(keep, tensors.Described) else None
    if described is not None:
        assert keep.shape == array.shape and (dtype == "<f4" or keep.keep[2].dtype.isnative)
        np.testing.assert_array_equal(keep.keep[2], array)


def test_outputs_that_would_not_get_the_result_are_refused():
    from roundel.script import tir as T

    @T.prim_func
    def twice(x: T.Buffer((2, 4), "float32"), y: T.Buffer((2, 4), "float32")):
        for i, j in T.grid(2, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)

    function = rd.build(twice)
    y = np.zeros((2, 4), np.float32)
    function(VALUES, y)
    np.testing.assert_array_equal(y, 2 * VALUES)
    big = np.zeros((2, 4), ">f4")
    function(VALUES, big)
    np.testing.assert_array_equal(big, 2 * VALUES)
    function(y, y)  # the input is the output
    np.testing.assert_array_equal(y, 4 * VALUES)
    rows = np.zeros(12, np.float32)
    rows[:8] = VALUES.reshape(-1)
    function(rows[:8].reshape(2, 4), rows[4:].reshape(2, 4))  # they overlap
    np.testing.assert_array_equal(rows[4:], 2 * VALUES.reshape(-1))
    for output, words in ((np.ma.zeros((2, 4), np.float32), "mask"), (_complex().conj().imag, "negative"), (_frozen(), "read-only"),
                          (np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 4), (0, 4)), "share memory"),
                          (torch.zeros(1, 4).expand(2, 4), "share memory")):
        with pytest.raises(CallError, match=words):
            function(VALUES, output)


def test_memory_of_large_results_is_used_again_when_the_last_view_is_gone():
    tensors._kept.clear()
    first = tensors.empty((1 << 17,), np.dtype(np.float32))
    place, part = first.ctypes.data, first[5:]
    assert place % 64 == 0
    del first
    gc.collect()
    assert tensors.empty((1 << 17,), np.dtype(np.float32)).ctypes.data != place  # a view of it lives
    part[:] = 1
    del part
    held = [tensors.empty((1 << 17,), np.dtype(np.float32)) for _ in range(40)]
    places = [x.ctypes.data for x in held]
    assert place in places and len(set(places)) == len(held)
    assert len(tensors._kept) == tensors._KEPT_COUNT
    view = memoryview(held.pop())  # the last one's: other users than arrays count too
    assert tensors.empty((1 << 17,), np.dtype(np.float32)).ctypes.data not in places
    del view
    for _ in range(2):
        assert tensors.empty((1 << 17,), np.dtype(np.float32)).ctypes.data in {places[-1], tensors.address(tensors._kept[-1][0]) + tensors._kept[-1][1]}
    assert sum(raw.size for raw, _ in tensors._kept) <= tensors._KEPT_MOST


def test_a_result_that_is_empty_but_too_wide_for_numpy_is_an_error_of_ours():
    """NumPy multiplies the other dimensions of an empty array: 0 x 2**62 is too big for it."""
    with pytest.raises(CallError, match="cannot be a NumPy array"):
        tensors.empty((0, 2**62), np.dtype(np.float32))
