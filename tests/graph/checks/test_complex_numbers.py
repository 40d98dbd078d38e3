# SPDX-License-Identifier: Apache-2.0
"""Complex numbers: operators that move elements move them as they are; what would compute with them is refused, by the name of its node."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.ir.errors import LowerError
from roundel.script import tir as T

TYPES = {"complex64": TensorProto.COMPLEX64, "complex128": TensorProto.COMPLEX128}
ONE, AXIS = np.array([1]), np.int64(0)


def compiled(operator, inputs, kind, constants, attributes, outputs=1):
    infos = [helper.make_tensor_value_info(n, TYPES[kind], ["n", "m"]) for n in dict.fromkeys(inputs) if n == "x"]
    results = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)]
    node = helper.make_node(operator, inputs, [r.name for r in results], name="/it", **attributes)
    made = helper.make_graph([node], "g", infos, results, [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    return rd.compile(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))


def values(kind):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))).astype(kind)
    x[0, 1] = complex(np.nan, -0.0)
    return x


MOVING = {
    "Transpose": (["x"], {}, {}, np.transpose),
    "Concat": (["x", "x"], {}, {"axis": 0}, lambda x: np.concatenate([x, x])),
    "Gather": (["x", "i"], {"i": np.array([1, 0, 1])}, {}, lambda x: x[[1, 0, 1]]),
    "Pad": (["x", "p"], {"p": np.array([1, 0, 0, 2])}, {}, lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "Where": (["c", "x", "x"], {"c": np.array([[True], [False]])}, {}, lambda x: x),
    "Tile": (["x", "r"], {"r": np.array([2, 1])}, {}, lambda x: np.tile(x, (2, 1))),
    "Trilu": (["x"], {}, {}, np.triu),
    "Reshape": (["x", "s"], {"s": np.array([3, 2])}, {}, lambda x: x.reshape(3, 2)),
    "Slice": (["x", "b", "e"], {"b": np.array([0, 1]), "e": np.array([2, 3])}, {}, lambda x: x[:, 1:]),
}
COMPUTING = {
    "ReduceSum": (["x"], {}, {}), "ReduceProd": (["x"], {}, {}), "ReduceMax": (["x"], {}, {}), "MatMul": (["x", "x"], {}, {}), "Gemm": (["x", "x"], {}, {}),
    "Einsum": (["x"], {}, {"equation": "ij->i"}), "CumSum": (["x", "a"], {"a": AXIS}, {}), "TopK": (["x", "k"], {"k": ONE}, {}), "Unique": (["x"], {}, {}),
    "ArgMax": (["x"], {}, {}), "NonZero": (["x"], {}, {}), "Det": (["x"], {}, {}), "Equal": (["x", "x"], {}, {}), "EyeLike": (["x"], {}, {}),
    "GlobalAveragePool": (["x"], {}, {}), "Cast": (["x"], {}, {"to": TensorProto.FLOAT}), "Add": (["x", "x"], {}, {}), "Abs": (["x"], {}, {}),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("operator", MOVING)
def test_elements_are_moved_as_they_are(operator, kind):
    inputs, constants, attributes, expected = MOVING[operator]
    x = values(kind)
    found = np.asarray(compiled(operator, inputs, kind, constants, attributes)(x))
    assert found.dtype == x.dtype
    assert found.tobytes() == np.ascontiguousarray(expected(x)).tobytes()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("operator", COMPUTING)
def test_what_computes_is_refused_with_its_node(operator, kind):
    inputs, constants, attributes = COMPUTING[operator]
    with pytest.raises(rd.RoundelError, match=f"/it.*{kind}"):
        compiled(operator, inputs, kind, constants, attributes, 2 if operator == "TopK" else 1)


def test_casts_to_complex_numbers_are_refused():
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.COMPLEX64, name="/it")
    made = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    with pytest.raises(rd.RoundelError, match="/it.*complex64"):
        rd.compile(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))


@T.prim_func
def doubled(A: T.Buffer((4,), "complex64"), B: T.Buffer((4,), "complex64")):
    for i in range(4):
        B[i] = A[i] + A[i]


@T.prim_func
def turned(A: T.Buffer((4,), "complex64"), B: T.Buffer((4,), "complex64")):
    for i in range(4):
        B[i] = A[3 - i]


def test_programs_of_users_are_held_to_the_same():
    with pytest.raises(LowerError, match="doubled.*move and select complex64"):
        rd.build(doubled)
    x, out = np.array([1 + 2j, 3, -1j, 0], np.complex64), np.zeros(4, np.complex64)
    rd.build(turned)(x, out)
    np.testing.assert_array_equal(out, x[::-1])
