# SPDX-License-Identifier: Apache-2.0
"""What a small file may expand to: errors name the limit and the option that raises it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.frontend.onnx import from_onnx
from roundel.ir import options
from roundel.ir.errors import ModelError, RoundelError, UnsupportedError

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
X = np.arange(4, dtype=np.float32)


def model(nodes, constants=(), functions=(), shape=(4,), output=TensorProto.FLOAT):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [helper.make_tensor_value_info("y", output, None)],
                          [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(constants).items()])
    return helper.make_model(g, opset_imports=OPSETS, functions=list(functions), ir_version=9)


def doubling(depth):
    """``f0`` adds 1; each other function calls the one before twice."""
    functions = [helper.make_function("own", "f0", ["a", "one"], ["b"], [helper.make_node("Add", ["a", "one"], ["b"])], OPSETS)]
    for k in range(1, depth):
        calls = [helper.make_node(f"f{k - 1}", [a, "one"], [b], domain="own") for a, b in (("a", "b"), ("b", "c"))]
        functions.append(helper.make_function("own", f"f{k}", ["a", "one"], ["c"], calls, OPSETS))
    return model([helper.make_node(f"f{depth - 1}", ["x", "one"], ["y"], domain="own")], {"one": np.float32(1)}, functions)


def test_functions_that_call_the_one_before_twice():
    np.testing.assert_array_equal(rd.compile(doubling(6))(X), X + 32)
    with pytest.raises(UnsupportedError, match="expand to more than 20000 nodes.*\n.*max_nodes.*ROUNDEL_MAX_NODES"):
        from_onnx(doubling(26))


def test_the_option_raises_the_limit():
    with options.override(max_nodes=50), pytest.raises(UnsupportedError, match="more than 50 nodes"):
        from_onnx(doubling(6))
    with options.override(max_nodes=200):
        from_onnx(doubling(6))


def test_nodes_of_the_file_do_not_count():
    with options.override(max_nodes=0):
        from_onnx(model([helper.make_node("Neg", [f"t{k}" if k else "x"], [f"t{k + 1}" if k < 99 else "y"]) for k in range(100)]))


@pytest.mark.parametrize("length", [1, 3])
def test_functions_that_call_each_other_without_end(length):
    functions = [helper.make_function("own", f"f{k}", ["a"], ["b"], [helper.make_node(f"f{(k + 1) % length}", ["a"], ["b"], domain="own")], OPSETS)
                 for k in range(length)]
    with pytest.raises(ModelError, match="a function calls itself.*\n.*'f0' -> "):
        from_onnx(model([helper.make_node("f0", ["x"], ["y"], domain="own")], functions=functions))


def test_depth():
    with options.override(max_depth=4), pytest.raises(UnsupportedError, match="nested more than 4 deep.*\n.*max_depth"):
        from_onnx(doubling(6))


@pytest.mark.parametrize("limit", [10**12, 3 * 10**8])
def test_long_ranges_are_not_made_at_compile_time(limit):
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    constants = {"a": np.int64(0), "b": np.int64(limit), "c": np.int64(1)}
    try:
        mod = from_onnx(model(nodes, constants, output=TensorProto.INT64))
    except RoundelError:
        return
    assert not [c for c in (mod.constants or {}).values() if c.nbytes > 1 << 20]


def test_numbers_of_shapes_wrap_as_those_of_tensors_do():
    """Python's integers would grow to 2 ** (2 ** 60)."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"]), *(helper.make_node("Mul", [f"s{k}"] * 2, [f"s{k + 1}" if k < 59 else "y"]) for k in range(60))]
    assert rd.compile(model(nodes, output=TensorProto.INT64))(X).tolist() == [0]


def test_what_is_folded_together_is_limited():
    """40 matrices of 16 MB each, of a file of a few hundred bytes: those beyond the limit are made when the model runs."""
    from roundel.graph.tidy.fold_constants import fold_constants

    nodes = [helper.make_node("Expand", [f"c{k}", "s"], [f"e{k}"]) for k in range(40)] + [helper.make_node("Sum", [f"e{k}" for k in range(40)], ["y"])]
    mod = from_onnx(model(nodes, {"s": np.asarray([2048, 2048]), **{f"c{k}": np.full((1, 1), k, np.float32) for k in range(40)}}))

    def made(most):
        with options.override(max_folded_bytes=most):
            blocks = fold_constants(mod)["main"].body.blocks
        return sum(getattr(b.value.op, "name", "") != "broadcast_to" for block in blocks for b in block.bindings if hasattr(b.value, "op"))

    assert 39 <= made(0) < 80  # the additions are left in any case
    assert len(fold_constants(mod)["main"].body.bindings) > 0


@pytest.mark.parametrize("op", ["SequenceAt", "SequenceLength", "ConcatFromSequence", "SequenceErase", "SequenceInsert", "SequenceMap"])
def test_tensors_where_a_sequence_is_wanted(op):
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "b", [helper.make_tensor_value_info("a", 1, None)],
                             [helper.make_tensor_value_info("b", 1, None)])
    attributes = {"ConcatFromSequence": {"axis": 0}, "SequenceMap": {"body": body}}.get(op, {})
    inputs = ["x", "x", "k"] if op == "SequenceInsert" else ["x", "k"] if op in ("SequenceAt", "SequenceErase") else ["x"]
    with pytest.raises(ModelError, match="a sequence is wanted where the model gives a tensor"):
        from_onnx(model([helper.make_node(op, inputs, ["y"], **attributes)], {"k": np.int64(0)}))


def lrn(x, size, alpha):
    """The definition, one channel at a time."""
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        window = x[:, max(0, c - (size - 1) // 2): c + size // 2 + 1]
        out[:, c] = x[:, c] / (1 + alpha / size * (window**2).sum(1)) ** 0.75
    return out


@pytest.mark.parametrize("shape", [(1, 3, 4, 4), ("n", "c", 4, 4)])
@pytest.mark.parametrize("size", [5, 33, 2**31, 2**40])
def test_windows_of_channels_end_with_the_channels(shape, size):
    x, alpha = np.random.default_rng(0).standard_normal((1, 40 if isinstance(shape[1], str) else 3, 4, 4)).astype(np.float32), size / 3
    m = rd.compile(model([helper.make_node("LRN", ["x"], ["y"], size=size, alpha=alpha, bias=1.0)], shape=shape))
    np.testing.assert_allclose(m(x), lrn(x, size, alpha), rtol=1e-5)


def test_many_pieces_of_one_size_are_rows_of_a_tensor():
    nodes = [helper.make_node("SplitToSequence", ["x"], ["s"]), helper.make_node("SequenceAt", ["s", "k"], ["y"])]
    m = rd.compile(model(nodes, {"k": np.int64(-2)}, shape=(10**6,)))
    np.testing.assert_array_equal(m(np.arange(10**6, dtype=np.float32)), [10**6 - 2])


def test_pieces_that_are_not_equal_count_as_nodes():
    nodes = [helper.make_node("SplitToSequence", ["x", "n"], ["s"]), helper.make_node("SequenceAt", ["s", "k"], ["y"])]
    with pytest.raises(UnsupportedError, match="max_nodes"):
        from_onnx(model(nodes, {"n": np.int64(3), "k": np.int64(-2)}, shape=(10**8,)))


def test_tables_larger_than_what_may_be_computed_at_compile_time():
    sizes = {"a": np.int64(10**8), "b": np.int64(16), "c": np.int64(8192), "d": np.float32(0), "e": np.float32(4096)}
    with pytest.raises(UnsupportedError, match="max_folded_bytes"):
        from_onnx(model([helper.make_node("MelWeightMatrix", [*sizes], ["y"])], sizes))


def _ranks():
    yield "input 'x'", model([helper.make_node("Relu", ["x"], ["y"])], shape=(1,) * 300)
    yield "Unsqueeze", model([helper.make_node("Unsqueeze", ["x", "a"], ["y"])], {"a": np.arange(70)})
    held = model([helper.make_node("Identity", ["w"], ["y"])])
    held.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1] * 1000, raw_data=bytes(4)))
    yield "tensor 'w'", held


@pytest.mark.parametrize(("where", "source"), list(_ranks()))
def test_tensors_of_too_many_dimensions(where, source):
    with pytest.raises(ModelError, match=rf"{where}.*dimensions\n.*at most 64"):
        from_onnx(source)


@pytest.mark.parametrize("kind", ["RandomUniform", "RandomNormal"])
def test_negative_sizes_that_a_node_makes(kind):
    with pytest.raises(ModelError, match=rf"{kind}.*a dimension is negative\n.*\[-5, 3\]"):
        from_onnx(model([helper.make_node(kind, [], ["y"], shape=[-5, 3])]))


EXPANDING = {
    "max_nodes": (50, lambda: doubling(6)),
    "max_depth": (4, lambda: doubling(6)),
}


@pytest.mark.usefixtures("nothing_added")
@pytest.mark.parametrize("option", EXPANDING)
def test_a_limit_holds_for_a_model_that_is_in_the_cache(option, tmp_path):
    low, made = EXPANDING[option]
    path = tmp_path / "m.onnx"
    path.write_bytes(made().SerializeToString())
    with options.override(cache=True, cache_dir=str(tmp_path / "cache")):
        for _ in range(2):
            np.testing.assert_array_equal(rd.compile(path)(X), X + 32)
            with options.override(**{option: low}), pytest.raises(UnsupportedError, match=option):
                rd.compile(path)


@pytest.mark.usefixtures("nothing_added")
def test_what_is_folded_under_one_limit_is_not_taken_under_another(tmp_path):
    nodes = [helper.make_node("Expand", ["one", "shape"], ["w"]), helper.make_node("CumSum", ["w", "axis"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, {"one": np.float32([1]), "shape": np.asarray([50_000, 4]), "axis": np.asarray(0)}).SerializeToString())
    with options.override(cache=True, cache_dir=str(tmp_path / "cache")):
        folded = rd.compile(path)
        with options.override(max_folded_bytes=1000):
            left = rd.compile(path)
    assert left.save(tmp_path / "left.so").stat().st_size < 400_000 < folded.save(tmp_path / "folded.so").stat().st_size
    np.testing.assert_array_equal(left(X), folded(X))
