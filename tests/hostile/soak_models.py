# SPDX-License-Identifier: Apache-2.0
"""The five models of the soak, each in two variants with other weights, and their inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

F = np.float32
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass(frozen=True)
class Case:
    """A model: how it is built from random weights, its input for a size, sizes, and arguments that it must refuse."""

    build: Callable[[np.random.Generator], ModelProto]
    make_one: Callable[[np.random.Generator, int], Sequence[np.ndarray]]
    sizes: tuple[int, ...]
    wrong: Callable[[random.Random], Sequence[np.ndarray]] | None

    def inputs(self) -> list[tuple[int, int]]:
        """Size and number of each input; three of a size."""
        return [(size, number) for size in self.sizes for number in range(3)]

    def make(self, size: int, number: int) -> Sequence[np.ndarray]:
        """The same arrays for the same size and number."""
        return self.make_one(np.random.default_rng((size, number)), size)


def _model(nodes: Sequence[Any], inputs: Sequence[tuple[str, int, list]], outputs: Sequence[tuple[str, int, list]], **weights: np.ndarray) -> ModelProto:
    values = [helper.make_tensor_value_info(*i) for i in inputs], [helper.make_tensor_value_info(*o) for o in outputs]
    graph = helper.make_graph(list(nodes), "g", *values, [numpy_helper.from_array(np.asarray(w), n) for n, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def _op(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F)


def _mlp(rng: np.random.Generator) -> ModelProto:
    return _model([_op("MatMul", "x w1", "a"), _op("Add", "a b1", "h"), _op("Relu", "h", "r"), _op("MatMul", "r w2", "y")],
                  [("x", FLOAT, ["n", 32])], [("y", FLOAT, ["n", 64])], w1=_normal(rng, 32, 96), b1=_normal(rng, 96), w2=_normal(rng, 96, 64))


def _conv(rng: np.random.Generator) -> ModelProto:
    return _model([_op("Conv", "x w b", "c", pads=[1, 1, 1, 1]), _op("Relu", "c", "r"), _op("Conv", "r v", "d", strides=[2, 2]),
                   _op("GlobalAveragePool", "d", "p"), _op("Flatten", "p", "y")],
                  [("x", FLOAT, ["n", 3, "h", "w_"])], [("y", FLOAT, ["n", 8])],
                  w=_normal(rng, 16, 3, 3, 3), b=_normal(rng, 16), v=_normal(rng, 8, 16, 3, 3))


def _attention(rng: np.random.Generator) -> ModelProto:
    return _model([_op("MatMul", "x wq", "q"), _op("MatMul", "x wk", "k"), _op("MatMul", "x wv", "v"), _op("Transpose", "k", "kt", perm=[0, 2, 1]),
                   _op("MatMul", "q kt", "s"), _op("Mul", "s scale", "t"), _op("Softmax", "t", "p", axis=-1), _op("MatMul", "p v", "y")],
                  [("x", FLOAT, ["b", "s_", 32])], [("y", FLOAT, ["b", "s_", 32])],
                  wq=_normal(rng, 32, 32), wk=_normal(rng, 32, 32), wv=_normal(rng, 32, 32), scale=F(32**-0.5))


def _embedding(rng: np.random.Generator) -> ModelProto:
    return _model([_op("Gather", "table i", "e"), _op("ReduceMean", "e", "y", axes=[1], keepdims=0)],
                  [("i", INT64, ["n", "s_"])], [("y", FLOAT, ["n", 16])], table=_normal(rng, 50, 16))


def _control(rng: np.random.Generator) -> ModelProto:
    """``If`` on the sum, and the places of what is positive, of which there are as many as the data say."""
    def branch(name: str, weight: str) -> Any:
        return helper.make_graph([_op("Mul", f"x {weight}", name)], name, [], [helper.make_tensor_value_info(name, FLOAT, ["n"])])

    return _model([_op("ReduceSum", "x", "sum", keepdims=0), _op("Greater", "sum zero", "c"),
                   helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "w"), else_branch=branch("e", "v")),
                   _op("Greater", "y zero", "g"), _op("NonZero", "g", "places")],
                  [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"]), ("places", INT64, [1, "count"])],
                  zero=F(0), w=_normal(rng, 1), v=_normal(rng, 1))


def _ids_outside(source: random.Random) -> Sequence[np.ndarray]:
    ids = np.zeros((4, 6), np.int64)
    ids[source.randrange(4), source.randrange(6)] = source.choice([50, -51, 2**40, -(2**62)])
    return [ids]


CASES = {
    "mlp": Case(_mlp, lambda rng, n: [_normal(rng, n, 32)], (1, 2, 7, 64, 3000), lambda _: [np.zeros((2, 31), F)]),
    "conv": Case(_conv, lambda rng, n: [_normal(rng, 1 + n % 3, 3, n, n + 2)], (8, 15, 33, 64), lambda _: [np.zeros((1, 4, 8, 8), F)]),
    "attention": Case(_attention, lambda rng, n: [_normal(rng, 1 + n % 2, n, 32)], (1, 5, 17, 64, 200), lambda _: [np.zeros((1, 2, 32), np.float64)]),
    "embedding": Case(_embedding, lambda rng, n: [rng.integers(-50, 50, (n, 6))], (1, 3, 40), _ids_outside),
    "control": Case(_control, lambda rng, n: [_normal(rng, n)], (1, 4, 100, 70000), lambda _: [np.zeros((2, 2), F)]),
}


def save_all(folder: Path) -> None:
    """Compile both variants of all."""
    import roundel as rd

    for name, case in CASES.items():
        for variant in "ab":
            rd.compile(case.build(np.random.default_rng(ord(variant)))).save(folder / f"{name}-{variant}.so")
