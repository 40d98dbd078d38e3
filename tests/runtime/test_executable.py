# SPDX-License-Identifier: Apache-2.0
"""Calling built functions from Python: results, symbolic shapes, every kind of array, every kind of mistake."""

from __future__ import annotations

import gc
import threading

import ml_dtypes
import numpy as np
import pytest

from roundel.ir import DType, options
from roundel.ir.errors import CallError
from roundel.runtime import Executable, get_func, has_func, register_func, remove_func, tensors
from runtime.native_module import WEIGHT, load_in_process

F = np.float32


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1000])
def test_graph_function_returns_its_result(graphs, n):
    x = np.random.rand(n, 4).astype(F)
    y = graphs["scale"](x)
    assert y.shape == (n, 4) and y.dtype == F
    np.testing.assert_array_equal(y, 2 * x + WEIGHT)
    np.testing.assert_array_equal(graphs["scale"](x=x), y)


def test_tensor_program_writes_in_place(programs):
    x, y = np.random.rand(5, 4).astype(F), np.zeros((5, 4), F)
    assert programs["scale"](x, y) is None
    np.testing.assert_array_equal(y, 2 * x + WEIGHT)


def test_nested_arguments_and_results_and_scalars(graphs):
    x, y = np.arange(3, dtype=F), np.arange(2, dtype=F)
    both, (total,) = graphs["concat"]((x, y))
    np.testing.assert_array_equal(both, [0, 1, 2, 0, 1])
    assert total == 4.0 and isinstance(total, float)
    assert graphs["concat"]([x[:0], y[:0]])[0].shape == (0,)


def test_result_of_unknown_shape_owns_its_memory(graphs):
    x = np.array([0, 1, 0, 2, 3], F)
    results = [graphs["nonzero"](x) for _ in range(50)]
    gc.collect()
    for r in results:
        np.testing.assert_array_equal(r, [1, 3, 4])
    assert graphs["nonzero"](x[:1]).shape == (0,)
    part = results[0][1:]
    del results, r
    gc.collect()
    np.testing.assert_array_equal(part, [3, 4])


def test_scalar_argument_is_a_symbol(graphs):
    np.testing.assert_array_equal(graphs["fill"](3), [3, 3, 3])
    np.testing.assert_array_equal(graphs["fill"](np.int64(2)), [2, 2])
    assert graphs["fill"](0).shape == (0,)


def test_strided_read_only_and_broadcast_inputs(graphs):
    base = np.random.rand(6, 8).astype(F)
    frozen = base[:, :4].copy()
    frozen.flags.writeable = False
    for x in (
        base[:, ::2],
        base[::-2, 4:],
        base.T[:4].T,
        np.broadcast_to(base[0, :4], (3, 4)),
        frozen,
        np.asfortranarray(base[:, :4]),
    ):
        np.testing.assert_array_equal(graphs["scale"](x), 2 * x + WEIGHT)


def test_strided_and_overlapping_outputs(programs):
    x = np.random.rand(6, 4).astype(F)
    wide = np.zeros((6, 8), F)
    programs["scale"](x, wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], 2 * x + WEIGHT)
    assert not wide[:, 1::2].any()
    expected = 2 * x + WEIGHT
    programs["scale"](x, x)
    np.testing.assert_array_equal(x, expected)
    buffer = np.random.rand(7, 4).astype(F)
    expected = 2 * buffer[:6] + WEIGHT
    programs["scale"](buffer[:6], buffer[1:])
    np.testing.assert_array_equal(buffer[1:], expected)
    row = np.arange(8, dtype=F)
    programs["update"](row[::2])
    np.testing.assert_array_equal(row, [1, 1, 3, 3, 5, 5, 7, 7])


def test_unaligned_input(graphs, programs):
    raw = np.zeros(4 * 4 * 3 + 1, np.uint8)
    x = raw[1:].view(F).reshape(3, 4)
    x[:] = 1
    programs["scale"](x.copy(), x)
    np.testing.assert_array_equal(x, 2 + np.tile(WEIGHT, (3, 1)))
    x[:] = 1
    np.testing.assert_array_equal(graphs["scale"](x), 2 + np.tile(WEIGHT, (3, 1)))


def test_small_types(graphs):
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    y = graphs["half"](x)
    assert y.dtype == x.dtype and (y == x).all()
    n = np.array([-8, 7, -1, 3, 0], ml_dtypes.int4)
    z = graphs["nibbles"](n)
    assert z.dtype == n.dtype and z.astype(int).tolist() == [-8, 7, -1, 3, 0]


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_packing(name, count):
    values = np.arange(count, dtype=np.uint8) % (1 << DType(name).bits)
    unpacked = tensors.unpack(values, DType(name), (0,))
    assert unpacked.size == 0
    original = values.view(DType(name).numpy) if name.startswith("float") else values.astype(DType(name).numpy)
    packed = tensors.pack(original, DType(name).bits)
    assert packed.size == DType(name).nbytes(count)
    np.testing.assert_array_equal(tensors.unpack(packed, DType(name), (count,)).astype(float), original.astype(float))


def test_python_values_and_dlpack(graphs):
    np.testing.assert_array_equal(graphs["scale"]([[1, 2, 3, 4.0]]), [[3, 6, 9, 12]])

    class Foreign:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **named):
            return self.a.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    np.testing.assert_array_equal(graphs["scale"](Foreign(np.ones((1, 4), F))), [[3, 4, 5, 6]])


def test_torch(graphs, programs):
    torch = pytest.importorskip("torch")
    x = torch.rand(3, 4, requires_grad=True)
    y = graphs["scale"](x)
    assert isinstance(y, torch.Tensor) and torch.equal(y, (2 * x + torch.from_numpy(WEIGHT)).detach())
    assert torch.equal(graphs["scale"](torch.rand(4, 3).T * 0 + 1), y * 0 + 2 + torch.from_numpy(WEIGHT))
    half = torch.arange(3).to(torch.bfloat16)
    assert torch.equal(graphs["half"](half), half)
    assert graphs["scale"](torch.zeros(0, 4)).shape == (0, 4)
    out = torch.zeros(3, 4)
    programs["scale"](x, out)
    assert torch.equal(out, y)
    assert torch.equal(graphs["nonzero"](torch.tensor([0.0, 1.0])), torch.tensor([1]))


@pytest.mark.parametrize(
    "name, args, message",
    [
        ("scale", (np.zeros((2, 5), F),), r"dimension 1 of input 0 \('x'\) is 5, expected 4"),
        ("scale", (np.zeros((2, 4)),), r"input 0 \('x'\) has dtype float64, expected float32"),
        ("scale", (np.zeros(4, F),), r"has 1 dimensions, expected 2"),
        ("scale", (), "takes 1 argument "),
        ("scale", ("text",), "not a tensor|cannot be taken"),
        ("scale", (None,), "not a tensor"),
        ("scale", ([[1, 2], [3]],), "cannot be taken"),
        ("concat", ((np.zeros(2, F),),), "a tuple of 2 was expected"),
        ("concat", ((np.zeros(2, F), np.zeros((2, 1), F)),), r"input 1 \('y'\) has 2 dimensions"),
        ("fill", (-1,), "would be -1"),
    ],
)
def test_mistakes_are_named(graphs, name, args, message):
    with pytest.raises(CallError, match=message):
        graphs[name](*args)


def test_keyword_mistakes(graphs):
    x = np.zeros((1, 4), F)
    for named, message in (({"y": x}, "unknown: y"), ({}, "takes 1 argument")):
        with pytest.raises(CallError, match=message):
            graphs["scale"](**named)
    with pytest.raises(CallError, match="given twice"):
        graphs["scale"](x, x=x)
    with pytest.raises(KeyError, match="it has scale"):
        graphs["nothing"]


def test_mistakes_in_outputs(programs):
    x = np.zeros((2, 4), F)
    with pytest.raises(
        CallError, match=r"dimension 0 of output 0 \('y'\) is 3, but 'n' is 2 \(dimension 0 of input 0 \('x'\)\)"
    ):
        programs["scale"](x, np.zeros((3, 4), F))
    with pytest.raises(CallError, match="read-only"):
        programs["scale"](x, np.broadcast_to(F(1), (2, 4)))
    with pytest.raises(CallError, match="list was passed for an output"):
        programs["scale"](x, [[0.0] * 4] * 2)
    shared = np.zeros(3, F)
    with pytest.raises(CallError, match="share memory"):
        programs["concat"](np.zeros(1, F), np.zeros(2, F), shared, shared[:1].reshape(()))
    with pytest.raises(CallError, match="the result has 1 there"):
        programs["nonzero"](np.ones(1, F), np.zeros(2, np.int64))


def test_failure_inside_the_model(graphs):
    with pytest.raises(RuntimeError, match="k = 101 is more than 100"):
        graphs["fill"](101)
    assert graphs["fill"](1).tolist() == [1]


def test_registered_functions(graphs):
    seen = []

    def callback(x, k, f, out):
        seen.append((type(x), k, f))
        out[:] = x * k + f

    register_func("test.callback", callback)
    assert get_func("test.callback") is callback
    register_func("test.value")(lambda x: float(x.sum()))
    try:
        x = np.array([1, 2], F)
        np.testing.assert_array_equal(graphs["callback"](x), x * 3 + 0.5 + 3)
        assert seen == [(np.ndarray, 3, 0.5)] and has_func("test.value") and get_func("test.value")(x) == 3.0

        class OddError(Exception):
            pass

        def broken(*args):
            raise KeyError("from the callback")

        register_func("test.callback", broken, override=True)
        with pytest.raises(KeyError, match="from the callback"):
            graphs["callback"](x)
        register_func("test.callback", callback, override=True)
        register_func("test.value", lambda x: np.array(x.sum()), override=True)
        np.testing.assert_array_equal(graphs["callback"](x), x * 3 + 0.5 + 3)
        register_func("test.value", lambda x: x, override=True)
        with pytest.raises(CallError, match="returned 1 dimensions, expected 0"):
            graphs["callback"](x)
    finally:
        remove_func("test.callback")
        remove_func("test.value")
    with pytest.raises(RuntimeError, match=r"'test\.callback', which is not registered"):
        graphs["callback"](x)
    with pytest.raises(KeyError):
        get_func("test.callback")


def test_a_compiled_function_is_one_of_the_ffi(programs, graphs):
    programs["half"].register("test.half")
    programs["scale"].register("test.scale")
    x, y = np.ones((2, 4), F), np.zeros((2, 4), F)
    get_func("test.scale")(x, y)
    np.testing.assert_array_equal(y, 2 + np.tile(WEIGHT, (2, 1)))
    with pytest.raises(ValueError, match="dimension 1 of input 0"):
        get_func("test.scale")(np.ones((2, 3), F), y)
    with pytest.raises(TypeError, match="takes 2 tensors"):
        get_func("test.scale")(x)
    # a compiled function calls another by name
    programs["fill"].register("test.callback")
    try:
        with pytest.raises(TypeError, match="'fill' takes 2 tensors"):
            graphs["callback"](x[0])
    finally:
        for name in ("test.callback", "test.scale", "test.half"):
            remove_func(name)


def test_concurrent_calls(graphs):
    right = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x = rng.random((int(rng.integers(0, 200)), 4), F)
            right.append(np.array_equal(graphs["scale"](x), 2 * x + WEIGHT))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(right) == 1200 and all(right)


def test_blocks_are_used_again(graphs):
    def addresses(size):
        first, second, third = graphs["blocks"](size)
        assert third == first != second
        return first, second

    before = addresses(1 << 20)
    assert addresses(1 << 20) == before
    assert addresses(1 << 24)[1] not in before
    assert addresses(1 << 20) == addresses(1 << 20)


def test_poison(in_process, monkeypatch):
    monkeypatch.setenv("ROUNDEL_POISON", "1")
    rt = Executable.from_address(in_process[1], constants=[WEIGHT], keep=in_process[0])
    y = np.zeros(4, F)
    for _ in range(2):
        rt["peek"](y)
        assert np.isnan(y).all()


def test_profile(in_process):
    rt = Executable.from_address(in_process[1], constants=[WEIGHT], keep=in_process[0], profile=True)
    x = np.zeros((64, 4), F)
    for _ in range(3):
        rt["scale"](x, x.copy())
    times = rt["scale"].profile()
    assert times["add"][0] == 3 and times["add"][1] > 0 and times["double"] == (0, 0.0)
    assert rt["scale"].profile()["add"][0] == 0


def test_number_of_threads(in_process):
    with options.override(threads=3):
        assert Executable.from_address(in_process[1], constants=[WEIGHT], keep=in_process[0]).num_threads == 3
    assert Executable.from_address(in_process[1], constants=[WEIGHT], keep=in_process[0], threads=5).num_threads == 5


def test_code_for_another_cpu_is_refused(tmp_path):
    import platform

    if platform.machine() != "x86_64":
        pytest.skip("the feature is one of x86-64")
    code, address = load_in_process(tmp_path, '-DNEEDS="sse2,xop"')
    with pytest.raises(CallError, match="CPUs with xop, which this CPU does not have"):
        Executable.from_address(address, constants=[WEIGHT], keep=code)


def test_missing_weights(in_process):
    with pytest.raises(CallError, match="needs its weights"):
        Executable.from_address(in_process[1], keep=in_process[0])
