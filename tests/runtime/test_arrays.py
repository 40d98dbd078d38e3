# SPDX-License-Identifier: Apache-2.0
"""Calls with NumPy arrays that the runtime reads where they are: the same results and errors as the general way, whatever the arrays."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

import roundel as rd
from roundel.ir.errors import CallError
from roundel.runtime import arrays
from roundel.runtime.executable import BoundFunction
from runtime.native_module import WEIGHT

torch = pytest.importorskip("torch")


class _Both(torch.nn.Module):
    def forward(self, x, y):
        return torch.where(x == y, x, y), x == y


def _refused_alike(monkeypatch, function, given) -> CallError:
    """The error of a call the quick way, which is that of the general way."""
    with pytest.raises(CallError) as quick:
        function(given)
    with monkeypatch.context() as general, pytest.raises(CallError) as slow:
        general.setattr(function, "_invoke", None)
        function(given)
    assert str(quick.value) == str(slow.value)
    return quick.value


def _called(monkeypatch) -> list[int]:
    """What the quick way answers, call by call."""
    seen: list[int] = []

    def caller(*args, **named):
        invoke = original(*args, **named)
        return invoke and (lambda *given: seen.append(invoke(*given)) or seen[-1])

    original = arrays.caller
    monkeypatch.setattr(arrays, "caller", caller)
    return seen


@pytest.mark.parametrize("shape, dtype", [((), "float32"), ((0, 3), "int64"), ((5,), "bool"), ((3, 7), "float16"), ((40, 33), "float32")])
def test_every_shape_and_type(monkeypatch, shape, dtype):
    seen = _called(monkeypatch)
    model = rd.compile(_Both(), tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for _ in "xy"))
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, y = (rng.integers(0, 2, shape).astype(dtype) for _ in "xy")
        x, y = np.asarray(x), np.asarray(y)
        chosen, same = model(x, y)
        assert (chosen.dtype, same.dtype, chosen.shape, same.shape) == (x.dtype, np.bool_, shape, shape)
        np.testing.assert_array_equal(chosen, y)
        np.testing.assert_array_equal(same, x == y)
    assert seen == [0, 0]  # the first call goes the general way


def test_a_model_from_a_file_is_called_the_quick_way_too(monkeypatch, tmp_path):
    seen = _called(monkeypatch)
    rd.compile(_Both(), (torch.zeros(3), torch.zeros(3))).save(tmp_path / "both.so")
    del seen[:]
    model, x = rd.load(tmp_path / "both.so"), np.arange(3, dtype=np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(model(x, -x)[0], -x)
    assert seen == [0, 0]


def test_what_is_not_as_expected_goes_the_general_way(monkeypatch, graphs):
    seen = _called(monkeypatch)
    old = graphs["scale"]
    scale = BoundFunction(old._owner, old._index, old._native, old.info)
    x = np.random.rand(6, 8).astype(np.float32)
    frozen, other = x[:, :4].copy(), np.dtype("f4", metadata={"of": "this"})
    frozen.flags.writeable = False
    for given in (x[:, :4].copy(), frozen, x[:, ::2][:, ::-1], np.asfortranarray(x[:, :4]), x[:, :4].astype(">f4"), x[:, :4].astype(other), frozen[:0]):
        for _ in range(2):
            np.testing.assert_array_equal(scale(given), 2 * given + WEIGHT)
    assert seen.count(0) == 8 and seen.count(-1) == 4
    wrong = (x, x[0], x[:, :4].astype(np.float64), np.float32(1), np.zeros((2, 4, 1), np.float32), np.ma.zeros((2, 4), np.float32), None, "text")
    for given in (*wrong, *wrong):
        assert not _refused_alike(monkeypatch, scale, given).__context__


def test_threads_have_results_of_their_own_which_are_kept(graphs):
    scale, wrong = graphs["scale"], []

    def work(seed: int) -> None:
        given = [np.full((1 + k % 5, 4), seed * 1000 + k, np.float32) for k in range(300)]
        results = [scale(x) for x in given]
        wrong.extend(k for k, (x, y) in enumerate(zip(given, results)) if not np.array_equal(y, 2 * x + WEIGHT))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_unknown_layout_or_an_older_runtime_is_left_alone(monkeypatch, graphs):
    old = graphs["scale"]
    monkeypatch.setattr(arrays, "readable", lambda: False)
    scale = BoundFunction(old._owner, old._index, old._native, copy.copy(old.info))
    assert scale._invoke is None
    x = np.ones((2, 4), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(scale(x), old(x))


@pytest.mark.filterwarnings("ignore")
def test_tensors_of_pytorch_are_described_by_it(monkeypatch, graphs):
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch describes its tensors in Python only")
    seen = _called(monkeypatch)
    old = graphs["scale"]
    scale = BoundFunction(old._owner, old._index, old._native, old.info)
    x = torch.rand(6, 4)
    negative = torch.complex(x, x).conj().imag
    given = [x, torch.nn.Parameter(x), torch.rand(4, 6).T, x[::2], x[:1].expand(6, 4), x[:0], negative, torch.rand(7, 4)[1:]]
    for value in (*given, *given):
        result = scale(value)
        assert type(result) is torch.Tensor and not result.requires_grad
        torch.testing.assert_close(result, 2 * value.detach().resolve_neg() + torch.from_numpy(WEIGHT), rtol=0, atol=0)
    assert seen.count(0) >= 10
    wrong = [x.double(), x[0], x[:, :3], x.to_sparse(), x.to("meta"), torch.nested.nested_tensor([x[0], x[0]])]
    for value in (*wrong, *wrong):
        _refused_alike(monkeypatch, scale, value)


@pytest.mark.filterwarnings("ignore")  # of PyTorch, when a tensor without memory is asked where that is
def test_tensors_without_memory_are_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    model = rd.compile(torch.nn.Linear(64, 64), (torch.ones(3, 64),))
    x = torch.ones(3, 64)
    with FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(CallError, match="has no data"):
        model(x)
