# SPDX-License-Identifier: Apache-2.0
"""Layers drawn at random: matrix products, convolutions of all kinds, reductions, pools, attention, products and convolutions of 8-bit numbers,
transpositions, chains of elementwise operators. The same seed draws the same layers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .layers import Layer, layer_norm, matmul, softmax

MOST_FLOPS, LEAST_FLOPS, MOST_BYTES = 2e8, 2e5, 2e7  # of a layer


def draw(rng: random.Random) -> Iterator[Layer]:
    """Layers without end: one of each kind, in shuffled order, then again."""
    while True:
        for kind in rng.sample(list(KINDS), len(KINDS)):
            layer = KINDS[kind](rng)
            while not (LEAST_FLOPS <= layer.flops <= MOST_FLOPS and layer.bytes <= MOST_BYTES and min(layer.out) > 0):
                layer = KINDS[kind](rng)
            yield layer


def _size(rng: random.Random, low: int, high: int) -> int:
    """Between the two, as likely in each octave."""
    return max(1, round(float(np.exp(rng.uniform(np.log(low), np.log(high))))))


def _matmul(rng: random.Random) -> Layer:
    return matmul(_size(rng, 2, 1200), _size(rng, 16, 2048), _size(rng, 16, 2048))


def _vector(rng: random.Random) -> Layer:
    return matmul(1, _size(rng, 64, 8000), _size(rng, 64, 2000), "gemv")


def _batched(rng: random.Random) -> Layer:
    b, m, n, k = _size(rng, 2, 16), _size(rng, 4, 256), _size(rng, 8, 256), _size(rng, 8, 256)
    return Layer("batched", f"{b}x{m}x{n}x{k}", "MatMul", (b, m, k), (b, m, n), ((b, k, n),), (), 2.0 * b * m * n * k)


def convolution_nd(cin: int, cout: int, size: Sequence[int], kernel: Sequence[int], stride: int = 1, groups: int = 1, dilation: int = 1,
                   transposed: bool = False) -> Layer:
    """A convolution with bias over any number of axes, padded so that stride 1 keeps the size."""
    span = [dilation * (k - 1) + 1 for k in kernel]
    pads = tuple([s // 2 for s in span] * 2)
    axes = range(len(size))
    out = tuple(
        (size[i] - 1) * stride - 2 * pads[i] + span[i] if transposed else (size[i] + 2 * pads[i] - span[i]) // stride + 1 for i in axes
    )
    kind = "transposed " if transposed else "dw " if groups == cin and groups > 1 else f"g{groups} " if groups > 1 else ""
    name = f"{kind}{cin}->{cout} {'x'.join(map(str, size))} k{'x'.join(map(str, kernel))} s{stride}" + (f" d{dilation}" if dilation > 1 else "")
    attributes = (("kernel_shape", tuple(kernel)), ("pads", pads), ("strides", (stride,) * len(size)), ("group", groups),
                  ("dilations", (dilation,) * len(size)))
    weight = (cin, cout // groups, *kernel) if transposed else (cout, cin // groups, *kernel)
    points = np.prod(size) if transposed else np.prod(out)
    flops = 2.0 * cin * cout / groups * float(np.prod(kernel)) * float(points)
    return Layer("conv", name, "ConvTranspose" if transposed else "Conv", (1, cin, *size), (1, cout, *out), (weight, (cout,)), attributes, flops)


def _channels(rng: random.Random) -> int:
    """Multiples of 8 and, one time in five, any number."""
    return _size(rng, 3, 400) if rng.random() < 0.2 else 8 * _size(rng, 1, 48)


def _image(rng: random.Random) -> tuple[int, int]:
    side = _size(rng, 7, 112)
    return side, side if rng.random() < 0.7 else _size(rng, 7, 112)


def _convolution(kernels: Sequence[int], stride: Sequence[int] = (1,), dilation: int = 1) -> Callable[[random.Random], Layer]:
    def make(rng: random.Random) -> Layer:
        k = rng.choice(kernels)
        return convolution_nd(_channels(rng), _channels(rng), _image(rng), (k, k), rng.choice(stride), 1, dilation)

    return make


def _grouped(rng: random.Random) -> Layer:
    groups = rng.choice((2, 4, 8))
    return convolution_nd(groups * 8 * _size(rng, 1, 12), groups * 8 * _size(rng, 1, 12), _image(rng), (3, 3), rng.choice((1, 2)), groups)


def _depthwise(rng: random.Random) -> Layer:
    channels = 8 * _size(rng, 2, 120)
    k = rng.choice((3, 3, 5, 7))
    return convolution_nd(channels, channels, _image(rng), (k, k), rng.choice((1, 1, 2)), channels)


def _few_channels(rng: random.Random) -> Layer:
    k, side = rng.choice((3, 5, 7)), _size(rng, 48, 224)
    return convolution_nd(rng.choice((1, 3, 4)), 8 * _size(rng, 1, 8), (side, side), (k, k), rng.choice((1, 2)))


def _transposed(rng: random.Random) -> Layer:
    return convolution_nd(_channels(rng), _channels(rng), (_size(rng, 5, 48), _size(rng, 5, 48)), (rng.choice((2, 3, 4)),) * 2, 2, transposed=True)


def _one_axis(rng: random.Random) -> Layer:
    return convolution_nd(_channels(rng), _channels(rng), (_size(rng, 20, 2000),), (rng.choice((3, 5, 9)),), rng.choice((1, 1, 2)))


def _three_axes(rng: random.Random) -> Layer:
    size = tuple(_size(rng, 4, 28) for _ in range(3))
    return convolution_nd(8 * _size(rng, 1, 12), 8 * _size(rng, 1, 12), size, (3, 3, 3), rng.choice((1, 1, 2)))


def _shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(_size(rng, 4, 200) for _ in range(rng.choice((1, 2)))) + (_size(rng, 8, 3000),)


def _mean(rng: random.Random) -> Layer:
    """Over the last axis, the first, the middle, or the last two of four."""
    shape = (_size(rng, 2, 16), _size(rng, 8, 128), _size(rng, 4, 64), _size(rng, 4, 64))
    axes = rng.choice(((3,), (0,), (1,), (2, 3), (1, 2)))
    out = tuple(n for i, n in enumerate(shape) if i not in axes)
    name = f"{'x'.join(map(str, shape))} over {','.join(map(str, axes))}"
    return Layer("mean", name, "ReduceMean", shape, out, (), (("axes", axes), ("keepdims", 0)), 1.0 * float(np.prod(shape)))


def _attention(rng: random.Random) -> Layer:
    """Of one sequence with itself: queries, keys and values are all the input."""
    heads, rows, width = _size(rng, 1, 12), _size(rng, 8, 400), 16 * _size(rng, 1, 6)
    shape = (1, heads, rows, width)
    scale = np.array(width**-0.5, np.float32)
    steps = (("Transpose", ("x",), {"perm": (0, 1, 3, 2)}), ("MatMul", ("x", "t0"), {}), ("Constant", (), {"value": scale}), ("Mul", ("t1", "t2"), {}),
             ("Softmax", ("t3",), {"axis": -1}), ("MatMul", ("t4", "x"), {}))
    return Layer("attention", f"{heads}x{rows}x{width}", "Attention", shape, shape, (), (), 4.0 * heads * rows * rows * width, steps)


def _eight_bits(rng: random.Random) -> Layer:
    """A product of the input, quantised, with constant weights of signed bytes."""
    m, n, k = _size(rng, 1, 600), _size(rng, 16, 1500), _size(rng, 16, 1500)
    weights = np.random.default_rng(0).integers(-127, 128, (k, n)).astype(np.int8)
    steps = (("DynamicQuantizeLinear", ("x",), {}), ("Constant", (), {"value": weights}), ("MatMulInteger", ("t0", "t1", "t0_2"), {}),
             ("Cast", ("t2",), {"to": 1}), ("Mul", ("t3", "t0_1"), {}))
    return Layer("8-bit", f"{m}x{n}x{k}", "MatMulInteger", (m, k), (m, n), (), (), 2.0 * m * n * k, steps)


def _eight_bit_convolution(rng: random.Random) -> Layer:
    """The same for a convolution."""
    cin, cout, (height, width), k, stride = _channels(rng), _channels(rng), _image(rng), rng.choice((1, 3, 5)), rng.choice((1, 1, 2))
    weights = np.random.default_rng(0).integers(-127, 128, (cout, cin, k, k)).astype(np.int8)
    attributes = {"kernel_shape": (k, k), "pads": (k // 2,) * 4, "strides": (stride, stride)}
    steps = (("DynamicQuantizeLinear", ("x",), {}), ("Constant", (), {"value": weights}), ("ConvInteger", ("t0", "t1", "t0_2"), attributes),
             ("Cast", ("t2",), {"to": 1}), ("Mul", ("t3", "t0_1"), {}))
    out = tuple((n - 1) // stride + 1 for n in (height, width))
    name = f"{cin}->{cout} {height}x{width} k{k} s{stride}"
    return Layer("8-bit", name, "ConvInteger", (1, cin, height, width), (1, cout, *out), (), (), 2.0 * cin * cout * k * k * out[0] * out[1], steps)


def _pool(rng: random.Random) -> Layer:
    """The largest or the mean of each window."""
    channels, (height, width), k, stride = _channels(rng), _image(rng), rng.choice((2, 3, 3, 5)), rng.choice((1, 2, 2))
    op, pad = rng.choice(("MaxPool", "AveragePool")), k // 2 if k % 2 else 0
    out = tuple((n + 2 * pad - k) // stride + 1 for n in (height, width))
    attributes = (("kernel_shape", (k, k)), ("pads", (pad,) * 4), ("strides", (stride, stride)))
    name = f"{channels} {height}x{width} k{k} s{stride}"
    return Layer("pool", name, op, (1, channels, height, width), (1, channels, *out), (), attributes, 1.0 * channels * k * k * out[0] * out[1])


def _transposition(rng: random.Random) -> Layer:
    shape = tuple(_size(rng, 3, 160) for _ in range(rng.choice((2, 3, 4))))
    perm = list(range(len(shape)))
    while perm == sorted(perm):
        rng.shuffle(perm)
    name = f"{'x'.join(map(str, shape))} to {','.join(map(str, perm))}"
    return Layer("transpose", name, "Transpose", shape, tuple(shape[k] for k in perm), (), (("perm", tuple(perm)),), 1.0 * float(np.prod(shape)))


def _chain(rng: random.Random) -> Layer:
    """Some elementwise operators, one with a row of weights, and half of the time a sum over an axis."""
    shape = tuple(_size(rng, 4, 300) for _ in range(rng.choice((2, 3))))
    ops = [rng.choice(("Relu", "Tanh", "Sigmoid", "Exp", "Abs", "Erf")) for _ in range(_size(rng, 1, 5))]
    steps: list[Any] = [(rng.choice(("Mul", "Add")), ("x", "w0"), {})]
    steps += [(op, (f"t{k}",), {}) for k, op in enumerate(ops)]
    out, name = shape, f"{'x'.join(map(str, shape))} {steps[0][0]} {' '.join(ops)}"
    if rng.random() < 0.5:
        axis = rng.randrange(len(shape))
        steps.append(("ReduceMean", (f"t{len(ops)}",), {"axes": (axis,), "keepdims": 0}))
        out, name = tuple(n for k, n in enumerate(shape) if k != axis), f"{name} mean over {axis}"
    return Layer("chain", name, "chain", shape, out, ((shape[-1],),), (), len(steps) * float(np.prod(shape)), tuple(steps))


def _symbolic(rng: random.Random) -> Layer:
    """One of the others whose first dimension may be anything, compiled for any."""
    layer = rng.choice((_matmul, _eight_bits, _chain, _norm, _softmax))(rng)
    while layer.shape[0] != layer.out[0]:
        layer = rng.choice((_matmul, _norm, _softmax))(rng)
    return replace(layer, name=f"{layer.name} symbolic", is_symbolic=True)


def _softmax(rng: random.Random) -> Layer:
    return softmax(*_shape(rng))


def _norm(rng: random.Random) -> Layer:
    return layer_norm(*_shape(rng))


KINDS: dict[str, Callable[[random.Random], Layer]] = {
    "matrix product": _matmul, "vector": _vector, "batched": _batched, "1x1": _convolution((1,)), "3x3": _convolution((3,)), "5x5": _convolution((5,)),
    "strided": _convolution((1, 3, 5), (2,)), "dilated": _convolution((3,), dilation=2), "grouped": _grouped, "depthwise": _depthwise,
    "few channels": _few_channels, "transposed": _transposed, "1-D": _one_axis, "3-D": _three_axes,
    "softmax": _softmax, "mean": _mean, "layer norm": _norm, "attention": _attention, "8-bit": _eight_bits, "8-bit convolution": _eight_bit_convolution,
    "pool": _pool, "transposition": _transposition, "chain": _chain, "symbolic": _symbolic,
}
