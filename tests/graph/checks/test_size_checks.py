# SPDX-License-Identifier: Apache-2.0
"""No program reads or writes outside of its tensors, whatever the sizes: what loops, conditions and known sizes do not prove is asserted."""

import numpy as np
import pytest
from onnx import helper

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.graph.checks.size_checks import size_checks
from roundel.graph.programs.legalize import legalize
from roundel.graph.rewriter import is_call
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import LowerError
from roundel.ops import make
from roundel.ops.dims import assuming
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

N, M = tir.Var("n", INT64, True), tir.Var("m", INT64, True)


def module(op, shape, *args, **attrs):
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make(op, x, *args, **attrs)))
    return bb.get()


def asserted(mod):
    """The conditions that the pass adds, as text."""
    func = size_checks(legalize(mod))["main"]
    values = [b.value for block in func.body.blocks for b in block.bindings]
    return [v.args[0].value.script() for v in values if is_call(v, "assert_op")]


def shape(*values):
    return graph.ShapeExpr(tuple(map(tir.as_index, values)))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_padding_with_elements_needs_one(mode):
    assert len(asserted(module("nn.pad", (N, 3), shape(1, 0, 0, 0), pad_mode=mode))) == 1


def test_what_is_guarded_by_its_size_needs_nothing():
    assert not asserted(module("nn.pad", (N, M), shape(1, 2, 0, 1)))


def test_loops_over_a_dimension_need_nothing():
    assert not asserted(module("nn.softmax", (N, M), axis=-1))
    assert not asserted(module("sum", (N, M), axis=(0,)))


def test_known_sizes_need_nothing():
    assert not asserted(module("nn.pad", (2, 3), shape(1, 0, 0, 0), pad_mode="edge"))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_an_empty_dimension_is_an_error_that_names_it_unless_the_result_is_empty(mode):
    model = rd.compile(module("nn.pad", (N, M), shape(1, 0, 0, 0), pad_mode=mode))
    with pytest.raises(rd.RoundelError, match=r"dimension 0 of x \(n\) is empty"):
        model(np.ones((0, 3), np.float32))
    assert model(np.ones((2, 0), np.float32)).shape == (3, 0)
    assert model(np.ones((2, 3), np.float32)).shape == (3, 3)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_resizing_nothing_to_something_is_an_error(method):
    model = rd.compile(module("image.resize", (1, 1, N, M), shape(1, 1, 4, 5), method=method))
    for empty in ((1, 1, 0, 2), (1, 1, 2, 0)):
        with pytest.raises(rd.RoundelError, match="is empty"):
            model(np.ones(empty, np.float32))
    np.testing.assert_allclose(model(np.ones((1, 1, 2, 2), np.float32)), np.ones((1, 1, 4, 5)), rtol=1e-5)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_a_size_that_is_known_to_be_zero_is_told_at_compile_time(mode):
    with pytest.raises(rd.RoundelError, match="is empty"):
        rd.compile(module("nn.pad", (0, 8), shape(1, 0, 0, 0), pad_mode=mode))


def test_where_only_data_tells_whether_an_element_is_written_nothing_is_needed():
    model = rd.compile(module("nonzero", (N, M)))
    for x in (np.zeros((4, 3), np.float32), np.zeros((0, 3), np.float32), np.eye(3, dtype=np.float32)):
        np.testing.assert_array_equal(model(x), np.array(np.nonzero(x)))


# ---- programs of users


@I.ir_module
class Added:
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        n, m, k = T.int64(), T.int64(), T.int64()
        A, B, C = T.match_buffer(a, (n,)), T.match_buffer(b, (m,)), T.match_buffer(c, (k,))
        for i in range(k):
            with T.block("add"):
                vi = T.axis.spatial(k, i)
                C[vi] = A[vi] + B[vi]

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        with R.dataflow():
            z = R.call_tir(Added.add, (x, y), R.Tensor((n,), "float32"))
            R.output(z)
        return z


@I.ir_module
class Alike:
    @T.prim_func
    def copy(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A, B, C = T.match_buffer(a, (n,)), T.match_buffer(b, (n,)), T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("copy"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.if_then_else(A[vi] > T.float32(0), A[vi], B[vi])

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        with R.dataflow():
            z = R.call_tir(Alike.copy, (x, y), R.Tensor((n,), "float32"))
            R.output(z)
        return z


def ones(*sizes):
    return [np.ones(n, np.float32) for n in sizes]


def test_the_error_names_node_tensor_dimension_and_both_sizes():
    model = rd.compile(Added)
    np.testing.assert_array_equal(model(*ones(3, 3)), [2, 2, 2])
    np.testing.assert_array_equal(model(*ones(2, 5)), [2, 2])
    with pytest.raises(rd.RoundelError, match=r"dimension 0 of B \(m\) has 4 elements, 5 are needed"):
        model(*ones(5, 4))
    assert model(*ones(0, 0)).shape == (0,)


def test_a_tensor_has_the_sizes_that_a_program_says_it_has():
    model = rd.compile(Alike)
    np.testing.assert_array_equal(model(*ones(3, 3)), [1, 1, 1])
    with pytest.raises(rd.RoundelError, match=r"dimension 0 of B \(m\) has 4 elements, 5 are needed"):
        model(*ones(5, 4))


def test_sizes_of_tensors_within_a_model_count():
    bb, x, y = BlockBuilder(), graph.Var("x", graph.TensorInfo((N,), "float32")), graph.Var("y", graph.TensorInfo((M,), "float32"))
    with bb.function("main", [x, y]):
        inner = bb.emit(make("concat", graph.Tuple((x, x)), axis=0))
        padded = bb.emit(make("nn.pad", bb.emit(make("strided_slice", inner, shape(0), shape(1), shape(N - M))), shape(1, 0), pad_mode="edge"))
        bb.emit_func_output(bb.emit(make("add", padded, padded)))
    model = rd.compile(bb.get())
    assert model(*ones(3, 1)).shape == (2,)
    with pytest.raises(rd.RoundelError, match="is empty"):
        model(*ones(3, 3))


def test_a_view_has_no_more_elements_than_its_tensor():
    K, L = tir.Var("k", INT64, True), tir.Var("l", INT64, True)
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((N,), "float32"))
    s = graph.Var("s", graph.ShapeInfo((K, L)))
    with bb.function("main", [x, s]), assuming():
        bb.emit_func_output(bb.emit(make("reshape", x, graph.ShapeExpr((K, L)))))
    assert any("k * l <= n" in text for text in asserted(bb.get()))


def test_a_size_that_is_divided_by_is_not_zero():
    model = rd.compile(Divided)
    np.testing.assert_array_equal(model(np.arange(4, dtype=np.float32), np.ones(2, np.float32)), [0, 1, 0, 1])
    with pytest.raises(rd.RoundelError, match="a size that is divided by is not positive|is empty"):
        model(*ones(4, 0))


@I.ir_module
class Divided:
    @T.prim_func
    def wrap(a: T.handle, b: T.handle, c: T.handle):
        n, m = T.int64(), T.int64()
        A, B, C = T.match_buffer(a, (n,)), T.match_buffer(b, (m,)), T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("wrap"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi % m] * B[vi % m]

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        with R.dataflow():
            z = R.call_tir(Divided.wrap, (x, y), R.Tensor((n,), "float32"))
            R.output(z)
        return z


def test_where_all_sizes_are_known_nothing_is_asserted():
    for op, args, attrs in (("nn.softmax", (), {"axis": -1}), ("nn.pad", (shape(1, 0, 2, 0),), {"pad_mode": "reflect"}), ("sort", (), {}),
                            ("image.resize", (shape(1, 1, 4, 5),), {"method": "cubic"})):
        sizes = (1, 1, 6, 7) if op == "image.resize" else (6, 7)
        assert not asserted(module(op, sizes, *args, **attrs)), op


@pytest.mark.parametrize("stride", (1, 2, 3))
@pytest.mark.parametrize("parts", (1, 2, 5))
def test_windows_of_a_picture_whose_size_is_computed(stride, parts):
    """Adaptive pooling divides what a convolution left of a picture of any size."""
    torch = pytest.importorskip("torch")
    size = torch.export.Dim("h", min=20, max=200)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3, stride=stride), torch.nn.AdaptiveAvgPool2d(parts)).eval()
    compiled = rd.compile(model, (torch.ones(1, 2, 24, 23),), dynamic=({2: size},))
    for height in (20, 21, 24, 47):
        x = torch.rand(1, 2, height, 23)
        np.testing.assert_allclose(np.asarray(compiled(x.numpy())), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator, weight", [("Conv", (6, 2, 3, 3)), ("ConvTranspose", (4, 3, 3, 3))])
def test_groups_divide_channels(operator, weight):
    """Of numbers of channels that only the run tells."""
    shapes = {"x": ["n", "c", "h", "w"], "k": ["o", "i", 3, 3]}
    infos = [helper.make_tensor_value_info(name, 1, dims) for name, dims in shapes.items()]
    node = helper.make_node(operator, list(shapes), ["y"], "node", group=2)
    proto = helper.make_model(helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, None)]), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 20)])
    model, rng = rd.compile(proto, threads=1), np.random.default_rng(0)
    x, k = (rng.standard_normal(dims).astype(np.float32) for dims in ((2, 4, 5, 6), weight))
    torch = pytest.importorskip("torch")
    reference = torch.conv2d if operator == "Conv" else torch.conv_transpose2d
    np.testing.assert_allclose(model(x, k), reference(torch.from_numpy(x), torch.from_numpy(k), groups=2), rtol=1e-4, atol=1e-5)
    wrong = (x, k[:5]) if operator == "Conv" else (x[:, :3], k[:3])
    with pytest.raises(rd.RoundelError, match=r"node.*dimension . of operand . \(.\) is ., it must be ."):
        model(*wrong)


@pytest.mark.parametrize("pads, text", [
    ((0, -9), "^Pad -> y: size_without_crop is -2, which is negative"),
    ((0, 2**60), r"^Pad -> y: a tensor of shape \[.*\] would have more")])
def test_errors_of_sizes_are_sentences_that_name_the_node(pads, text):
    infos = [helper.make_tensor_value_info("x", 1, ["n"]), helper.make_tensor_value_info("p", 7, [2])]
    proto = helper.make_model(helper.make_graph([helper.make_node("Pad", ["x", "p"], ["y"])], "g", infos, [helper.make_tensor_value_info("y", 1, None)]),
                              ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(rd.RoundelError, match=text):
        rd.compile(proto, threads=1)(np.zeros(7, np.float32), np.array(pads))


@pytest.mark.parametrize("axis", (0, None))
@pytest.mark.parametrize("ordered", (True, False))
def test_all_positions_are_proven_or_depend_on_data(axis, ordered):
    """Merging runs of ``1 << p`` elements in pairs stays inside of what is sorted; how many groups there are is data."""
    model = rd.compile(module("unique", (N, 3), axis=axis, sorted=ordered))
    for rows in (1, 2, 7, 16):
        x = (np.arange(rows * 3).reshape(rows, 3) // 6 % 3).astype(np.float32)
        found = np.asarray(model(x))
        expected = np.unique(x, axis=axis)
        np.testing.assert_array_equal(found if ordered else np.unique(found, axis=axis), expected)


def test_a_place_that_is_not_reached_needs_nothing():
    """One row is sorted in no passes, whose widths are unknown."""
    assert rd.compile(module("unique", (1, 3), axis=0))(np.ones((1, 3), np.float32)).shape == (1, 3)


def test_an_access_that_holds_for_any_value_of_a_computed_size_needs_nothing():
    """Here half of n // 3 + 1 elements, which the analysis sees as half of a size of its own."""
    shape = (N // 3 + 1, 4)
    assert not asserted(module("nn.adaptive_avg_pool2d", (1, 3, *shape), output_size=(2, 2)))


@I.ir_module
class Scattered:
    @T.prim_func
    def mix(a: T.handle, b: T.handle):
        n = T.int64()
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("mix"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[T.bitwise_xor(vi, T.int64(1))]

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            z = R.call_tir(Scattered.mix, (x,), R.Tensor((n,), "float32"))
            R.output(z)
        return z


def test_what_no_condition_on_sizes_keeps_inside_is_refused():
    with pytest.raises(LowerError, match="an access outside of dimension 0 of A cannot be excluded in the program mix"):
        size_checks(legalize(Scattered))
