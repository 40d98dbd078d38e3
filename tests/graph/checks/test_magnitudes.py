# SPDX-License-Identifier: Apache-2.0
"""Tensors that no machine could hold and loops that no machine could finish are errors, also where fusing means that no memory is asked for."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel import driver
from roundel.builder import BlockBuilder
from roundel.graph.checks.magnitudes import MOST_ELEMENTS, MOST_ITERATIONS, Magnitudes, domains
from roundel.graph.checks.size_checks import size_checks
from roundel.graph.programs.legalize import legalize
from roundel.graph.rewriter import is_call
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import LowerError, RunError
from roundel.ops import make
from roundel.target import Target

N, M, K = (tir.Var(name, INT64, True) for name in "nmk")
PREFIX = driver.DEFAULT[: driver.DEFAULT.index(size_checks) + 1]


def total(*nodes, given, constants=()):
    """The sum of what the nodes make, which is called "big", as a model."""
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in given]
    made = [*nodes, helper.make_node("Cast", ["big"], ["f"], to=1), helper.make_node("ReduceSum", ["f"], ["y"], keepdims=0)]
    g = helper.make_graph(made, "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ())],
                          [numpy_helper.from_array(np.asarray(value), name) for name, value in constants])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


NODE = helper.make_node
MADE_BY = {
    "Expand": total(NODE("Expand", ["x", "k"], ["big"]), given=[("x", 1, (1, 1)), ("k", 7, (2,))]),
    "Tile": total(NODE("Tile", ["x", "k"], ["big"]), given=[("x", 1, (1, 1)), ("k", 7, (2,))]),
    "ConstantOfShape": total(NODE("ConstantOfShape", ["k"], ["big"]), given=[("k", 7, (2,))]),
    "Range": total(NODE("Range", ["zero", "k", "one"], ["big"]), given=[("k", 7, ())], constants=[("zero", 0), ("one", 1)]),
    "broadcasting": total(NODE("Range", ["zero", "k", "one"], ["a"]), NODE("Unsqueeze", ["a", "first"], ["b"]), NODE("Mul", ["a", "b"], ["big"]),
                          given=[("k", 7, ())], constants=[("zero", 0), ("one", 1), ("first", [1])]),
    "Pad": total(NODE("Pad", ["x", "k"], ["big"]), given=[("x", 1, (1,)), ("k", 7, (2,))]),
    "EyeLike": total(NODE("ConstantOfShape", ["k"], ["c"]), NODE("EyeLike", ["c"], ["big"]), given=[("k", 7, (2,))]),
    "Resize": total(NODE("Resize", ["x", "", "", "k"], ["big"], mode="nearest"), given=[("x", 1, (1, 1)), ("k", 7, (2,))]),
    "tensors that are joined": total(NODE("Expand", ["x", "k"], ["a"]), NODE("Concat", ["a", "a"], ["big"], axis=0), given=[("x", 1, (1, 1)), ("k", 7, (2,))]),
}


def asserted(mod):
    """What the module asserts of sizes because no machine could do with more."""
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    return [v.attrs["format"] for v in values if (is_call(v, "assert_op") and str(MOST_ELEMENTS) in v.attrs["format"]) or str(MOST_ITERATIONS) in str(v)]


@pytest.mark.parametrize("made_by", MADE_BY)
def test_tensors_of_sizes_that_are_data_are_asked_how_large_they_are(made_by):
    said = asserted(driver.prepare(rd.import_model(MADE_BY[made_by]), target=Target("x86-64"), pipeline=PREFIX))
    assert said and all(" would have more than " in text for text in said)


@pytest.mark.parametrize("shape", [(2**31, 2**31), (2**32, 2**32), (2**62, 1), (1, 2**63 - 1), (2**62, 2**62)])
def test_a_call_that_would_never_end_is_an_error(shape, expanded):
    assert expanded(np.ones((1, 1), np.float32), np.asarray([7, 9])) == 63
    with pytest.raises(RunError, match=r"Expand -> big: a tensor of shape \[shape_0, shape_1\] would have more than \d+ elements"):
        expanded(np.ones((1, 1), np.float32), np.asarray(shape))


@pytest.fixture(scope="module")
def expanded():
    return rd.compile(MADE_BY["Expand"])


def test_sizes_that_are_known():
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, 1), "float32"))
    with bb.function("main", [x]):
        big = bb.emit(make("broadcast_to", x, graph.ShapeExpr((tir.index_const(2**31), tir.index_const(2**31)))))
        bb.emit_func_output(bb.emit(make("sum", big)))
    with pytest.raises(LowerError, match="would have more than"):
        size_checks(legalize(bb.get()))


def asks(known, asked, of=Magnitudes.elements):
    possible = Magnitudes()
    for shape in known:
        possible.argument(graph.TensorInfo(tuple(map(tir.as_index, shape)), "float32"))
    return of(possible, tuple(map(tir.as_index, asked))) is not None


def test_what_arguments_tell_is_not_asked_again():
    assert not asks([(N, M)], (N, 768, M)) and not asks([(N, M)], (N * M, 9)) and not asks([(N, M)], (N + 3, M - 1)) and not asks([(N, M)], (M,))
    assert asks([(N, M)], (N, N)) and asks([(N, 3), (M, 3)], (N, M)) and asks([(N,)], (N, 1 << 20)) and asks([], (N,))
    assert not asks([], (2, 3, 4)) and asks([], (1 << 47,)) and not asks([], (1 << 47, 0))


def test_what_was_asked_is_not_asked_again():
    possible, eight, four, nine = Magnitudes(), *map(tir.as_index, (8, 4, 9))
    assert possible.elements((N, M, eight)) is not None
    assert possible.elements((M, four, N)) is None and possible.elements((N, M, nine)) is not None
    assert possible.copy().elements((N, K)) is not None and possible.elements((N, K)) is not None


def test_iterations_are_those_of_all_loops():
    bb, a, b = BlockBuilder(), graph.Var("a", graph.TensorInfo((N, K), "float32")), graph.Var("b", graph.TensorInfo((K, M), "float32"))
    with bb.function("main", [a, b]):
        bb.emit_func_output(bb.emit(make("matmul", a, b)))
    mod = legalize(bb.get())
    programs = [mod[name] for name in mod if isinstance(mod[name], tir.PrimFunc)]
    assert [len(domain) for program in programs for domain in domains(program)] == [0, 3]  # the outermost block has no iterations of its own
    assert any("iterations" in text for text in asserted(size_checks(mod)))
    assert asks([(N, K), (K, M)], (N, M, K), Magnitudes.iterations) and not asks([(N, M)], (N, M, 3, 3, 512), Magnitudes.iterations)


def test_products_do_not_wrap():
    condition = Magnitudes().elements((N, M))
    assert "Cast(\"float64\"" in condition.script()
