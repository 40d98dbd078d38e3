# SPDX-License-Identifier: Apache-2.0
"""The blocks of GGUF: rows of numbers of few bits, some of them together with scales.

Each kind of block is taken apart into whole numbers, a scale for each group of them and, where it has such, what is added after it, by which
compiled products read them packed (ggml's ``ggml-common.h`` and ``ggml-quants.c`` define the bytes).
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from ...ir.dataclass import dataclass


@dataclass(frozen=True)
class Parts:
    """Numbers ``scale * levels + shift``: ``levels`` is (rows, groups, numbers of a group), ``scale`` and ``shift`` (None: nothing) (rows, groups)."""

    levels: np.ndarray
    scale: np.ndarray
    shift: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """As float32, a row for each row."""
        out = self.levels.astype(np.float32) * self.scale[..., None]
        return (out if self.shift is None else out + self.shift[..., None]).reshape(len(out), -1)


@dataclass(frozen=True)
class Kind:
    """A kind of block: how many numbers it holds in how many bytes, and what blocks (rows of bytes) are made of; None: they are plain numbers."""

    name: str
    numbers: int
    nbytes: int
    parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray | None]] | None = None
    dtype: np.dtype | None = None

    def split(self, data: np.ndarray, rows: int) -> Parts:
        """What rows of such blocks are made of."""
        assert self.parts is not None
        levels, scale, shift = self.parts(np.asarray(data).reshape(-1, self.nbytes))
        group = self.numbers // (scale.shape[1] if scale.ndim > 1 else 1)
        shaped = lambda v: None if v is None else v.reshape(rows, -1)
        return Parts(levels.reshape(rows, -1, group), scale.reshape(rows, -1), shaped(shift))

    def plain(self, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers of any kind, in float32."""
        if self.parts is None:
            return np.asarray(data).view(self.dtype).astype(np.float32).reshape(shape)
        return self.split(data, int(np.prod(shape[:-1], dtype=np.int64))).numbers().reshape(shape)


def _half(x: np.ndarray, at: int) -> np.ndarray:
    """A float16 of each block, in float32."""
    return np.ascontiguousarray(x[:, at: at + 2]).view(np.float16).astype(np.float32)[:, 0]


def _nibbles(x: np.ndarray) -> np.ndarray:
    """The lower halves of bytes, then the upper ones."""
    return np.concatenate([x & 15, x >> 4], axis=-1)


def _fifth(x: np.ndarray) -> np.ndarray:
    """The fifth bit of 32 numbers, in the place where they have it."""
    return np.unpackbits(np.ascontiguousarray(x), axis=-1, bitorder="little").astype(np.uint8) << 4


def _q4_0(x: np.ndarray) -> tuple:
    return _nibbles(x[:, 2:]).astype(np.int8) - np.int8(8), _half(x, 0), None


def _q4_1(x: np.ndarray) -> tuple:
    return _nibbles(x[:, 4:]), _half(x, 0), _half(x, 2)


def _q5_0(x: np.ndarray) -> tuple:
    return (_nibbles(x[:, 6:]) | _fifth(x[:, 2:6])).astype(np.int8) - np.int8(16), _half(x, 0), None


def _q5_1(x: np.ndarray) -> tuple:
    return _nibbles(x[:, 8:]) | _fifth(x[:, 4:8]), _half(x, 0), _half(x, 2)


def _q8_0(x: np.ndarray) -> tuple:
    return x[:, 2:].view(np.int8), _half(x, 0), None


def _six_bits(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight scales and eight minima of six bits in twelve bytes."""
    a, b, c = x[:, :4], x[:, 4:8], x[:, 8:]
    return (np.concatenate([a & 63, (c & 15) | ((a >> 6) << 4)], 1).astype(np.float32),
            np.concatenate([b & 63, (c >> 4) | ((b >> 6) << 4)], 1).astype(np.float32))


def _q4_k(x: np.ndarray) -> tuple:
    scales, least = _six_bits(x[:, 4:16])
    return _nibbles(x[:, 16:].reshape(-1, 4, 32)), _half(x, 0)[:, None] * scales, -_half(x, 2)[:, None] * least


def _q5_k(x: np.ndarray) -> tuple:
    scales, least = _six_bits(x[:, 4:16])
    high = (x[:, 16:48, None] >> np.arange(8, dtype=np.uint8) & 1).transpose(0, 2, 1)  # a bit for each of eight groups
    levels = _nibbles(x[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) | (high << 4)
    return levels, _half(x, 0)[:, None] * scales, -_half(x, 2)[:, None] * least


def _q6_k(x: np.ndarray) -> tuple:
    low, high = x[:, :128].reshape(-1, 2, 64), x[:, 128:192].reshape(-1, 2, 32)
    four = np.concatenate([low & 15, low >> 4], axis=-1).reshape(-1, 2, 4, 32)
    two = (high[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8)[:, None]) & 3
    levels = (four | (two << 4)).astype(np.int8) - np.int8(32)
    return levels, _half(x, 208)[:, None] * np.ascontiguousarray(x[:, 192:208]).view(np.int8).astype(np.float32), None


KINDS: dict[int, Kind] = {
    0: Kind("F32", 1, 4, dtype=np.dtype(np.float32)),
    1: Kind("F16", 1, 2, dtype=np.dtype(np.float16)),
    2: Kind("Q4_0", 32, 18, _q4_0),
    3: Kind("Q4_1", 32, 20, _q4_1),
    6: Kind("Q5_0", 32, 22, _q5_0),
    7: Kind("Q5_1", 32, 24, _q5_1),
    8: Kind("Q8_0", 32, 34, _q8_0),
    12: Kind("Q4_K", 256, 144, _q4_k),
    13: Kind("Q5_K", 256, 176, _q5_k),
    14: Kind("Q6_K", 256, 210, _q6_k),
    30: Kind("BF16", 1, 2, dtype=np.dtype(ml_dtypes.bfloat16)),
}
