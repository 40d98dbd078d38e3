# SPDX-License-Identifier: Apache-2.0
"""Models of every kind of code that is generated, and calls of them with random sizes; each has few operators, so that its tensors are its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .index_models import Rng, model, node

Arguments = Callable[[Rng], list[np.ndarray]]


@dataclass(frozen=True)
class Kind:
    """A kind of models: how one is compiled, and arguments for a call of it."""

    name: str
    build: Callable[[], Any]
    arguments: Arguments


def normal(rng: Rng, *shape: int) -> np.ndarray:
    """Random float32."""
    return rng.standard_normal(shape).astype(np.float32)


def _constant(name: str, *shape: int) -> Any:
    return _given(name, normal(np.random.default_rng(0), *shape) / np.float32(max(1, shape[0])))


def _given(name: str, value: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(value), name)


def _sizes(*limits: int) -> Callable[[Rng], list[int]]:
    return lambda rng: [int(rng.integers(1, limit + 1)) for limit in limits]


def _floats(*shape: int) -> Arguments:
    """One float32 argument; a negative number is the most that a dimension may be."""
    return lambda rng: [normal(rng, *(d if d > 0 else int(rng.integers(1, 1 - d)) for d in shape))]


def _pictures(most: int) -> Arguments:
    """A picture of 5 to ``most`` pixels a side."""
    return lambda rng: [normal(rng, 2, 3, *rng.integers(5, most + 1, 2))]


def _conv(inputs: str, weight: Sequence[int], algorithm: str = "", **attributes: Any) -> Callable[[], Any]:
    nodes = [node("Conv", "x w b", "c", **attributes), node("Relu", "c")]
    return model(nodes, inputs, [_constant("w", *weight), _constant("b", weight[0])], choices={"*": algorithm} if algorithm else None)


def _winograd(inputs: str, tile: int) -> Callable[[], Any]:
    return _conv(inputs, (32, 16, 3, 3), f"winograd{tile}", pads=[1] * 4)


def _strassen() -> Callable[[], Any]:
    return model([node("MatMul", "x w")], "x:f:n,64", [_constant("w", 64, 70)], choices={"*": "strassen"})


def _scatter_arguments(rng: Rng) -> list[np.ndarray]:
    n, m = _sizes(30, 9)(rng)
    k = int(rng.integers(1, n + 1))
    return [normal(rng, n, m), rng.permutation(n)[:k, None], normal(rng, k, m)]


def _gather_arguments(rng: Rng) -> list[np.ndarray]:
    n, m, k = _sizes(30, 40, 50)(rng)
    return [normal(rng, n, m), rng.integers(-n, n, k)]


def _elements_arguments(rng: Rng) -> list[np.ndarray]:
    n, m = _sizes(20, 40)(rng)
    return [normal(rng, n, m), rng.integers(-n, n, (n, m))]


def _attention_arguments(rng: Rng) -> list[np.ndarray]:
    b, n, k = _sizes(3, 40, 50)(rng)
    return [normal(rng, b, n, 24), normal(rng, b, k, 24), normal(rng, b, k, 24)]


def _attention() -> list[Any]:
    return [node("Transpose", "k", "t", perm=[0, 2, 1]), node("MatMul", "q t", "s"), node("Softmax", "s", "p"), node("MatMul", "p v")]


def _matmul_arguments(rng: Rng) -> list[np.ndarray]:
    n, k, m = _sizes(40, 50, 40)(rng)
    return [normal(rng, n, k), normal(rng, k, m)]


def _bytes_arguments(rng: Rng) -> list[np.ndarray]:
    return [rng.integers(0, 256, (int(rng.integers(1, 40)), 37), np.uint8)]


def _lstm() -> Callable[[], Any]:
    weights = [_constant("w", 1, 76, 11), _constant("r", 1, 76, 19), _constant("b", 1, 152)]
    return model([node("LSTM", "x w r b", "h", hidden_size=19), node("Squeeze", "h one")], "x:f:t,n,11", [*weights, _given("one", [1])])


def _quantised() -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    weights = _given("w", rng.integers(0, 256, (37, 29), np.uint8)), _given("zx", np.uint8(7)), _given("zw", np.uint8(128))
    return model([node("MatMulInteger", "x w zx zw", "p"), node("Cast", "p", to=1)], "x:u:n,37", weights)


def _rounded() -> Callable[[], Any]:
    weights = [_given("s", np.float32(0.05)), _given("z", np.uint8(3)), _constant("w", 37, 21)]
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d"), node("MatMul", "d w")]
    return model(nodes, "x:f:n,37", weights)


def kinds() -> list[Kind]:
    """All kinds."""
    pool = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    picture = "x:f:n,3,h,v"
    one = [_given("one", np.asarray([1]))]
    return [
        Kind("convolution", _conv("x:f:2,3,15,17", (16, 3, 3, 3), strides=[2, 2]), _floats(2, 3, 15, 17)),
        Kind("convolution, any size", _conv(picture, (5, 3, 3, 3), pads=[1] * 4), _pictures(20)),
        Kind("pointwise convolution", _conv(picture, (19, 3, 1, 1)), _pictures(20)),
        Kind("depthwise convolution", _conv("x:f:n,6,h,v", (6, 1, 5, 5), group=6, pads=[2] * 4), _floats(-2, 6, -20, -20)),
        Kind("Winograd, tiles of 2", _winograd("x:f:1,16,13,14", 2), _floats(1, 16, 13, 14)),
        Kind("Winograd, tiles of 4", _winograd("x:f:1,16,13,14", 4), _floats(1, 16, 13, 14)),
        Kind("Winograd, parts of tiles", _winograd("x:f:2,16,7,9", 4), _floats(2, 16, 7, 9)),
        Kind("transposed convolution", model([node("ConvTranspose", "x w", strides=[2, 2])], picture, [_constant("w", 3, 7, 3, 3)]), _pictures(12)),
        Kind("product", model([node("MatMul", "x w")], "x:f:n,37", [_constant("w", 37, 53)]), _floats(-70, 37)),
        Kind("product of arguments", model([node("MatMul", "x u")], "x:f:n,k u:f:k,m"), _matmul_arguments),
        Kind("Strassen", _strassen(), _floats(-130, 64)),
        Kind("attention", model(_attention(), "q:f:b,n,24 k:f:b,k,24 v:f:b,k,24"), _attention_arguments),
        Kind("Gather", model([node("Gather", "x i")], "x:f:n,m i:i:k"), _gather_arguments),
        Kind("Gather of weights", model([node("Gather", "w i")], "i:i:k", [_constant("w", 10, 7)]), lambda rng: [rng.integers(-10, 10, *_sizes(60)(rng))]),
        Kind("GatherElements", model([node("GatherElements", "x i")], "x:f:n,m i:i:n,m"), _elements_arguments),
        Kind("ScatterND", model([node("ScatterND", "x i u")], "x:f:n,m i:i:k,1 u:f:k,m"), _scatter_arguments),
        Kind("softmax", model([node("Softmax", "x")], "x:f:n,m"), _floats(-9, -100)),
        Kind("normalisation", model([node("LayerNormalization", "x w b")], "x:f:n,45", [_constant("w", 45), _constant("b", 45)]), _floats(-9, 45)),
        Kind("reduction", model([node("ReduceSum", "x one", keepdims=0)], "x:f:n,m,k", one), _floats(-6, -40, -40)),
        Kind("transposition", model([node("Transpose", "x", perm=[1, 0])], "x:f:n,m"), _floats(-50, -50)),
        Kind("joining", model([node("Concat", "x x", "c", axis=1), node("Pad", "c p")], "x:f:n,m", [_given("p", [1, 2, 3, 0])]), _floats(-20, -50)),
        Kind("MaxPool", model([node("MaxPool", "x", **pool)], picture), _pictures(20)),
        Kind("AveragePool", model([node("AveragePool", "x", **pool)], picture), _pictures(20)),
        Kind("sorting", model([node("TopK", "x two", "y i", axis=-1)], "x:f:n,m", [_given("two", [2])]), lambda rng: [normal(rng, 5, 1 + _sizes(70)(rng)[0])]),
        Kind("Resize", model([node("Resize", "x - s", mode="linear")], picture, [_given("s", np.float32([1, 1, 1.7, 2.3]))]), _pictures(14)),
        Kind("LSTM", _lstm(), _floats(-6, -4, 11)),
        Kind("quantised product", _quantised(), _bytes_arguments),
        Kind("quantised activations", _rounded(), _floats(-40, 37)),
    ]
