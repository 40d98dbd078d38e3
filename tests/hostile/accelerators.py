# SPDX-License-Identifier: Apache-2.0
"""Convolutions on the simulated accelerators of examples/: every sum is right bit for bit, the simulators trap nothing, and they count at most 1.5 times
the cycles of their roofline. The first are those of ResNet-18, others are drawn.

The roofline of a layer is what its own products take at the array's peak, or what it takes to move data, weights and 32-bit sums once each, whichever is
longer. It knows nothing of tiles. Drawn layers have few pixels or channels that fill no tiles, so only their results count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import roundel as rd
from roundel.intrinsics import accelerators
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.target import Target

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from accelerators import dsp, simulated, vta  # type: ignore[import-not-found]

CHIPS = {"vta": (vta, 256, 16), "dsp": (dsp, 256, 32)}  # products in a cycle, bytes of DMA in a cycle
MOST = 1.5  # times the roofline
RESNET18 = [(3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1), (128, 256, 28, 3, 2), (128, 256, 28, 1, 2),
            (256, 256, 14, 3, 1), (256, 512, 14, 3, 2), (256, 512, 14, 1, 2), (512, 512, 7, 3, 1)]  # channels, filters, size, window, stride


def attack(count: int, seed: int) -> Iterator[str]:
    """Each attempt is a layer on one of the chips in turn."""
    rng = np.random.default_rng(seed)
    layers = [(layer, True) for layer in RESNET18 for _ in CHIPS]
    for k in range(count):
        name = list(CHIPS)[k % len(CHIPS)]
        layer, is_judged = layers[k] if k < len(layers) else (_drawn(rng), False)
        wrong, ratio = tried(name, layer, rng)
        if wrong or (is_judged and ratio > MOST):
            yield f"{name}, layer {layer}: {wrong} wrong sums, {ratio:.2f} times the roofline"


def _drawn(rng: np.random.Generator) -> tuple[int, ...]:
    size, window = int(rng.integers(3, 20)), int(rng.choice([1, 2, 3, 5]))
    return int(rng.integers(4, 80)), int(rng.integers(64, 150)), max(size, window), window, int(rng.integers(1, 3))


def tried(name: str, layer: tuple[int, ...], rng: np.random.Generator) -> tuple[int, float]:
    """How many sums of a layer are wrong on a chip, and how many times the roofline its simulator counts."""
    chip, peak, rate = CHIPS[name]
    channels, filters, size, window, stride = layer
    weight = rng.integers(-128, 128, (filters, channels, window, window)).astype(np.int8)
    made = network(weight, channels, size, stride)
    accelerators.register(chip.CHIP)
    try:
        model = rd.compile(made, target=Target(f"x86-64-v3 -device={name}"), threads=1)
    finally:
        accelerators.unregister(chip.CHIP)
    x = rng.choice(np.array([0, 1, 127, 128, 255, *rng.integers(0, 256, 8)], np.uint8), (1, channels, size, size))
    simulated.reset(chip.SIMULATOR)
    y = np.asarray(model(x))
    cycles = simulated.counted(chip.SIMULATOR).cycles
    places = y.shape[2] * y.shape[3]
    pixels = min(size * size, places * window * window)
    roofline = max(weight.size * places / peak, (pixels * channels + weight.size + 4 * filters * places) / rate)
    return int((y != convolved(x, weight, stride)).sum()), cycles / roofline


def network(weight: np.ndarray, channels: int, size: int, stride: int) -> Any:
    """A module that is one convolution of bytes, summed in 32 bits."""
    border = weight.shape[2] // 2

    @I.ir_module
    class Layer:
        @R.function
        def main(x: R.Tensor((1, channels, size, size), "uint8")):
            with R.dataflow():
                y = R.nn.conv2d(x, R.const(weight), strides=[stride, stride], padding=[border, border, border, border], out_dtype="int32")
                R.output(y)
            return y

    return Layer


def convolved(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """The convolution by NumPy, exact: sums of at most 2^53 in float64."""
    border, (_, _, window, _) = weight.shape[2] // 2, weight.shape
    wide = np.pad(x[0].astype(np.float64), ((0, 0), (border, border), (border, border)))
    seen = np.lib.stride_tricks.sliding_window_view(wide, (window, window), (1, 2))[:, ::stride, ::stride]
    return np.tensordot(weight.astype(np.float64), seen, ((1, 2, 3), (0, 3, 4)))[None].astype(np.int64)
