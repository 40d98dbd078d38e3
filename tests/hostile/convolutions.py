# SPDX-License-Identifier: Apache-2.0
"""Convolutions of extreme pictures: the error bound of each pixel, blank windows, and that what is not finite stays in its windows.

The bound for a pixel of the result is 8 times that of a plain float32 sum of n = 9 C products, 8 n u |window| |kernel| with Euclidean norms and
u = 2^-24 (and what n denormal products lose). Each algorithm is forced in turn, where the compiler takes it for that kernel; its convolution has an
epilogue or none. A result that is not finite is the same infinity or NaN as in a plain sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from roundel.builder import BlockBuilder
from roundel.driver import compile_module
from roundel.graph.algorithms.winograd import NAMES, is_transformable
from roundel.ir import graph
from roundel.ops import make

TIMES = 8                  # the bound of a plain sum
UNIT = 2.0 ** -24          # the unit roundoff of float32
LEAST = 2.0 ** -149        # the smallest float32 number
TINY = 2.0 ** -63         # values below may count as zero in the test of a tile
PICTURES_PER_MODEL = 16
TILES = (0, 2, 4)          # the direct way, F(2x2,3x3), F(4x4,3x3)
SIZES = [(1, 16, 16, 11, 13), (1, 32, 64, 14, 14), (2, 64, 32, 9, 20), (1, 128, 64, 8, 8), (3, 64, 64, 5, 7), (1, 48, 16, 33, 21), (1, 256, 32, 12, 12),
         (5, 32, 32, 16, 16)]
PADDINGS = [1, 0, (0, 1, 2, 1), 2]

Picture = Callable[[np.random.Generator, np.ndarray], None]  # changes normal numbers [C, H, W]


def _rows(rng: np.random.Generator, x: np.ndarray) -> None:
    x *= 2.0 ** rng.integers(-20, 41, (x.shape[1], 1))


def _pixels(rng: np.random.Generator, x: np.ndarray) -> None:
    x *= 2.0 ** rng.integers(-20, 41, x.shape[1:])


def _channels(rng: np.random.Generator, x: np.ndarray) -> None:
    x *= 2.0 ** rng.integers(-20, 41, (len(x), 1, 1))


def _place(rng: np.random.Generator, x: np.ndarray) -> tuple[int, ...]:
    return tuple(int(rng.integers(n)) for n in x.shape)


def _outlier(rng: np.random.Generator, x: np.ndarray) -> None:
    x[_place(rng, x)] = 10.0 ** rng.integers(1, 30)


def _step(rng: np.random.Generator, x: np.ndarray) -> None:
    _, row, column = _place(rng, x)
    x[:, row:, column:] *= 2.0 ** rng.uniform(-12, 12)


def _blank(rng: np.random.Generator, x: np.ndarray) -> None:
    _, row, column = _place(rng, x)
    x[:, row : row + 6, column : column + 6] = 0


def _points(rng: np.random.Generator, x: np.ndarray) -> None:
    x *= rng.random(x.shape) < 0.002


def _with(value: float) -> Picture:
    def picture(rng: np.random.Generator, x: np.ndarray) -> None:
        x[_place(rng, x)] = value

    return picture


KINDS: dict[str, Picture] = {
    "normal": lambda rng, x: None,
    "rows of powers of two": _rows,
    "pixels of powers of two": _pixels,
    "channels of powers of two": _channels,
    "one outlier": _outlier,
    "a step": _step,
    "a blank area": _blank,
    "points": _points,
    "positive": lambda rng, x: np.abs(x, out=x),
    "constant": lambda rng, x: x.fill(rng.uniform(0.5, 1)),
    "after relu": lambda rng, x: np.maximum(x - 1, 0, out=x),
    "all small": lambda rng, x: np.multiply(x, 2.0 ** -60, out=x),
    "all large": lambda rng, x: np.multiply(x, 2.0 ** 60, out=x),
    "NaN": _with(np.nan),
    "infinity": _with(np.inf),
    "minus infinity": _with(-np.inf),
    "3e38": _with(3e38),
}
KERNELS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, s: rng.standard_normal(s),
    "channels of powers of two": lambda rng, s: rng.standard_normal(s) * 2.0 ** rng.integers(-20, 21, (s[0], 1, 1, 1)),
    "one number": lambda rng, s: rng.standard_normal(s) * (rng.random(s) < 0.01),
    "constant": lambda rng, s: np.full(s, rng.uniform(0.5, 1)),
    "large": lambda rng, s: rng.standard_normal(s) * 2.0 ** rng.integers(60, 120),
    "NaN": lambda rng, s: _kernel_with(rng, s, np.nan),
    "infinity": lambda rng, s: _kernel_with(rng, s, np.inf),
    "minus infinity": lambda rng, s: _kernel_with(rng, s, -np.inf),
    "3e38": lambda rng, s: _kernel_with(rng, s, 3e38),
}


def _kernel_with(rng: np.random.Generator, shape: tuple[int, ...], value: float) -> np.ndarray:
    kernel = rng.standard_normal(shape)
    _with(value)(rng, kernel)
    return kernel


@dataclass(frozen=True)
class Convolution:
    """A compiled convolution with a constant kernel; ``run[threads]`` takes data [N, C, H, W]."""

    name: str
    kernel: np.ndarray
    bias: np.ndarray | None
    shape: tuple[int, ...]
    padding: tuple[int, ...]
    tile: int
    run: dict[int, Callable[[np.ndarray], np.ndarray]]


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` convolutions; a finding for each that is beyond a bound or that something not finite has reached."""
    rng = np.random.default_rng(seed)
    for first in range(0, count, PICTURES_PER_MODEL):
        n, channels, outer, height, width = SIZES[rng.integers(len(SIZES))]
        kind, tile = str(rng.choice(list(KERNELS))), TILES[first // PICTURES_PER_MODEL % len(TILES)]
        kernel = KERNELS[kind](rng, (outer, channels, 3, 3)).astype(np.float32)
        bias = rng.standard_normal((1, outer, 1, 1)).astype(np.float32) if rng.random() < 0.3 else None
        convolution = compiled((n, channels, height, width), kernel, bias, PADDINGS[rng.integers(len(PADDINGS))], tile)
        for _ in range(min(PICTURES_PER_MODEL, count - first)):
            data, kinds = pictures(rng, convolution.shape)
            found = problem(convolution, data)
            if found:
                yield f"{convolution.name}, kernel {kind}, pictures {kinds}: {found}"


def pictures(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[np.ndarray, list[str]]:
    """Data of one to three kinds at once in each picture."""
    data, names = rng.standard_normal(shape), list(KINDS)
    kinds = [names[k] for k in rng.choice(len(names), int(rng.choice([1, 1, 2, 3])), replace=False)]
    with np.errstate(all="ignore"):
        for picture in data:
            for kind in kinds:
                KINDS[kind](rng, picture)
    return np.clip(data, -3.4e38, 3.4e38, where=np.isfinite(data), out=data).astype(np.float32), kinds


def compiled(shape: tuple[int, ...], kernel: np.ndarray, bias: np.ndarray | None, padding: int | tuple[int, ...], tile: int) -> Convolution:
    """The convolution by an algorithm (0: the direct one), for one and two threads."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(make("nn.conv2d", x, graph.Constant.of(kernel), padding=padding))
            y = y if bias is None else bb.emit(make("nn.relu", bb.emit(make("add", y, graph.Constant.of(bias)))))
            y = bb.emit_output(y if bias is not None else make("negative", y))
        bb.emit_func_output(y)
    taken = tile if is_transformable(graph.Constant.of(kernel)) else 0
    built = compile_module(bb.get(), choices={"*": NAMES[taken]})
    sides = (padding,) * 4 if isinstance(padding, int) else padding
    name = f"{'x'.join(map(str, shape))} by {'x'.join(map(str, kernel.shape))}, padding {padding}, tile {tile}"
    return Convolution(name, kernel, bias, shape, sides, taken, {t: built.load(threads=t)["main"] for t in (1, 2)})


def problem(convolution: Convolution, data: np.ndarray) -> str | None:
    """What is wrong with the convolution of ``data``; None if nothing is."""
    windows, expected, norms = reference(convolution, data)
    with np.errstate(all="ignore"):
        size = np.linalg.norm(windows, axis=-1)[..., None] * norms
    n = windows.shape[-1]
    known = np.isfinite(windows).all(-1)
    rounding = 0.0 if convolution.bias is None else UNIT * (size + np.abs(convolution.bias.reshape(-1)))  # of the sum with it
    with np.errstate(all="ignore"):
        bounded = (size < 2.0 ** 127) & known[..., None]
    inside = reference(convolution, np.ones_like(data))[0].all(-1)[..., None] | np.isfinite(norms)  # no product with padding is needed
    special = ~np.isfinite(expected) & inside & (_sizes_of_the_finite(convolution, windows) < 2.0 ** 127)
    for threads, run in convolution.run.items():
        got = np.asarray(run(data)).transpose(0, 2, 3, 1).astype(np.float64)
        with np.errstate(all="ignore"):
            errors = np.maximum(np.abs(got - expected) - rounding, 0)
            excess = errors / (n * (UNIT * size + TINY * norms + LEAST))
        excess[np.isnan(excess)] = np.inf
        worst = float(excess[bounded].max(initial=0))
        if not worst <= TIMES:
            return f"{worst:.3g} times the bound of a plain sum ({threads} threads)"
        if np.isfinite(got[~known]).any() and convolution.bias is None:
            return f"a window that is not finite has a finite result ({threads} threads)"
        if convolution.bias is None and not np.array_equal(got[special], expected[special], equal_nan=True):
            return f"a result is another infinity or NaN than in a plain sum ({threads} threads)"
        blank = ~windows.any(-1)
        beside_tiny = TIMES * n * UNIT * TINY * norms  # what is left of neighbours that count as zero
        if convolution.bias is None and (np.abs(got[blank]) > beside_tiny)[:, np.isfinite(norms)].any():
            return f"a blank window is not zero ({threads} threads)"
    return None


def _sizes_of_the_finite(convolution: Convolution, windows: np.ndarray) -> np.ndarray:
    """|window| |kernel| [N, H, W, O] without what is not finite: where it is large, partial sums overflow."""
    parts = (windows, convolution.kernel.reshape(len(convolution.kernel), -1).astype(np.float64))
    window, kernel = (np.linalg.norm(np.where(np.isfinite(x), x, 0), axis=-1) for x in parts)
    return window[..., None] * kernel


def reference(convolution: Convolution, data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The windows [N, H, W, 9 C], the results [N, H, W, O] in float64, and |kernel| [O]."""
    top, left, bottom, right = convolution.padding
    padded = np.pad(data.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    windows = windows.reshape(*windows.shape[:3], -1)
    kernel = convolution.kernel.reshape(len(convolution.kernel), -1).T.astype(np.float64)
    with np.errstate(all="ignore"):
        result = windows @ kernel
        result = -result if convolution.bias is None else np.maximum(result + convolution.bias.reshape(-1), 0)
    return windows, result, np.linalg.norm(kernel, axis=0)
