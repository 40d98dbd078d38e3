# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that look into strings or decode images: Python functions, called back from the compiled model.

Operators that only move, select or compare strings are those of integers, see runtime/text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir import tir
from ....ir.errors import RoundelError, RunError
from ....runtime.text import numbers_of, strings_of
from ..importer import NodeContext, Value
from ..registry import converter
from ..run_time_sizes import integers

INT = "int64"


def _on_text(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A function of strings as one of numbers."""
    return lambda *arrays: numbers_of(fn(*(strings_of(a) for a in arrays)))


def _size(node: NodeContext, fn: Callable[..., Sequence[int]], x: Any, count: int) -> list[tir.Var]:
    """Sizes that only the run can tell: ``fn(array)`` gives ``count`` of them."""
    found = node.numpy(lambda v: np.asarray(fn(v), np.int64), [x], [((count,), INT)])
    return integers(node, Value(found), "the size")


def to_text(node: NodeContext, x: Value) -> Value:
    """Numbers as the standard's Cast prints them."""
    def show(v: Any) -> str:
        if isinstance(v, float | np.floating):
            return "NaN" if np.isnan(v) else ("INF" if v > 0 else "-INF") if np.isinf(v) else repr(float(v)) if v.itemsize > 4 else str(v)
        return str(int(v))

    def cast(array: np.ndarray) -> np.ndarray:
        return numbers_of(np.array([show(v) for v in array.reshape(-1)], object)).reshape(array.shape)

    return node.text(node.numpy(cast, [x.expr], [(x.expr.sinfo.shape, INT)]))


def from_text(node: NodeContext, x: Value, dtype: Any) -> Any:
    """Strings as numbers: integers in decimal, floats also as NaN, INF and in scientific notation. What is no number, and what is too large
    for an integer of 64 bits, is an error of the run."""
    wide = "float64" if dtype.is_float else "int64"

    def number(text: str) -> float | int:
        try:
            if "_" in text:  # Python's numbers may have underscores
                raise ValueError
            found = float(text) if dtype.is_float else int(text) if text.lstrip("+-").isdigit() else int(float(text))
            return found if dtype.is_float else int(np.int64(found))
        except (ValueError, OverflowError):
            raise RunError(f"the string {text[:100]!r} is no {'number' if dtype.is_float else 'integer of 64 bits'}", where=node.where,
                           why=f"Cast makes {dtype} of it") from None

    def read(array: np.ndarray) -> np.ndarray:
        return np.array([number(v) for v in strings_of(array).reshape(-1)], wide).reshape(array.shape)

    return node.make("astype", node.numpy(read, [x.expr], [(x.expr.sinfo.shape, wide)]), dtype=dtype)


@converter("StringConcat", since=20)
def _concat(node: NodeContext, a: Value, b: Value) -> Any:
    shape = node.make("add", a.expr, b.expr).sinfo.shape
    return node.text(node.numpy(_on_text(lambda x, y: np.asarray(x + y, object)), [a.expr, b.expr], [(shape, INT)]))


@converter("StringSplit", since=20)
def _split(node: NodeContext, x: Value) -> Any:
    delimiter, most = node.attr("delimiter", "") or None, node.attr("maxsplit", -1)
    parts = lambda array: [s.split(delimiter, most) if s else [] for s in strings_of(array).reshape(-1)]
    (width,) = _size(node, lambda array: [max(map(len, parts(array)), default=0)], x.expr, 1)
    shape = x.expr.sinfo.shape

    def split(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = parts(array)
        longest = max(map(len, found), default=0)
        words = np.array([p + [""] * (longest - len(p)) for p in found], object).reshape(*array.shape, longest)
        return numbers_of(words), np.array([len(p) for p in found], np.int64).reshape(array.shape)

    words, counts = node.numpy(split, [x.expr], [((*shape, width), INT), (shape, INT)])
    return node.text(words), counts


@converter("RegexFullMatch", since=20)
def _full_match(node: NodeContext, x: Value) -> Any:
    try:
        pattern = re.compile(node.attr("pattern", ""))
    except re.error as error:
        raise node.error(f"the pattern is not valid: {error}") from None

    def match(array: np.ndarray) -> np.ndarray:
        return np.array([pattern.fullmatch(s) is not None for s in strings_of(array).reshape(-1)], np.bool_).reshape(array.shape)

    return node.numpy(match, [x.expr], [(x.expr.sinfo.shape, "bool")])


@converter("StringNormalizer", since=10)
def _normalise(node: NodeContext, x: Value) -> Any:
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}.get(node.attr("case_change_action", "NONE"))
    if change is None:
        raise node.error(f"case_change_action is {node.attr('case_change_action')!r}, not NONE, LOWER or UPPER")
    exact = bool(node.attr("is_case_sensitive", 0))
    fold = str if exact else str.lower
    stop = {fold(w) for w in node.attr("stopwords", [])}

    def kept(array: np.ndarray) -> list[str]:
        return [change(s) for s in strings_of(array).reshape(-1) if fold(s) not in stop] or [""]

    (count,) = _size(node, lambda array: [len(kept(array))], x.expr, 1)
    shape = (*(tir.index_const(1) for _ in x.expr.sinfo.shape[1:]), count)
    out = node.numpy(lambda array: numbers_of(np.array(kept(array), object)).reshape((1,) * (array.ndim - 1) + (-1,)), [x.expr], [(shape, INT)])
    return node.text(out)


def unique_text(node: NodeContext, x: Value) -> Any:
    """Unique of strings in their own order, which their numbers do not have."""
    axis = node.attr("axis", None)
    if x.expr.sinfo.ndim != 1 and axis is not None:
        raise node.unsupported("sorting rows of strings")

    def unique(array: np.ndarray) -> tuple[np.ndarray, ...]:
        values, first, inverse, counts = np.unique(strings_of(array).reshape(-1).astype(str), True, True, True)
        return numbers_of(values), first, inverse.reshape(-1), counts

    (count,) = _size(node, lambda array: [len(np.unique(array))], x.expr, 1)
    total = tir.product_of(x.expr.sinfo.shape)
    values, *rest = node.numpy(unique, [x.expr], [((n,), INT) for n in (count, count, total, count)])
    return (node.text(values), *rest)


@converter("ImageDecoder", since=20)
def _decode_image(node: NodeContext, data: Value) -> Any:
    kind = node.attr("pixel_format", "RGB")
    modes = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
    if kind not in modes:
        raise node.error(f"pixel_format is {kind!r}, not RGB, BGR or Grayscale")

    def decode(array: np.ndarray) -> np.ndarray:
        try:
            from PIL import Image
        except ImportError:
            raise RoundelError("ImageDecoder needs Pillow", hint="pip install pillow") from None
        pixels = np.asarray(Image.open(io.BytesIO(array.tobytes())).convert(modes[kind]))
        return pixels[..., ::-1] if kind == "BGR" else pixels.reshape(*pixels.shape[:2], -1)

    height, width = _size(node, lambda array: decode(array).shape[:2], data.expr, 2)
    return node.numpy(decode, [data.expr], [((height, width, tir.index_const(1 if kind == "Grayscale" else 3)), "uint8")])
