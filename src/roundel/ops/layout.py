# SPDX-License-Identifier: Apache-2.0
"""Named layouts of tensors ("NCHW", "OIHW8i16o"): from logical positions, by letter, to indices and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from roundel.ir import tir
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import RoundelError

from .dims import simplify


@dataclass(frozen=True)
class Position:
    """A logical position known as ``outer * factor + inner`` (or, with factor 1, as ``outer``)."""

    outer: Any
    inner: Any = None
    factor: int = 1

    @property
    def value(self) -> tir.Expr:
        """The position as one number."""
        return tir.as_index(self.outer) if self.factor == 1 else self.outer * self.factor + self.inner

    def quotient(self, by: tir.Expr) -> tir.Expr:
        """The whole part of the position by a number, of its outer part alone where that is enough."""
        if isinstance(by, tir.IntImm) and self.factor > 1 and by.value % self.factor == 0:
            return tir.floordiv(self.outer, by.value // self.factor)
        return tir.floordiv(self.value, by)

    def after(self, start: tir.Expr) -> Position:
        """The position so far behind a start, in the same parts where it begins such a part."""
        whole = simplify(tir.floordiv(start, self.factor))
        is_whole = self.factor > 1 and simplify(whole * self.factor - start) is tir.index_const(0)
        return Position(whole + self.outer, self.inner, self.factor) if is_whole else Position(start + self.value)

    def split(self, factor: int) -> tuple[tir.Expr, tir.Expr]:
        """Quotient and remainder by ``factor``."""
        if factor == 1:
            return self.value, tir.index_const(0)
        if factor == self.factor:
            return self.outer, self.inner
        return tir.floordiv(self.value, factor), tir.floormod(self.value, factor)


@dataclass(frozen=True)
class NamedLayout:
    """Axes in memory order: an upper-case letter is a logical axis, (letter, factor) a block of it."""

    spec: str
    axes: tuple[tuple[str, int | None], ...]

    def factor(self, letter: str) -> int:
        """The block size of a logical axis (1: not blocked)."""
        return next((f for c, f in self.axes if c == letter and f is not None), 1)

    def letters(self) -> tuple[str, ...]:
        """The logical axes in memory order."""
        return tuple(c for c, f in self.axes if f is None)

    def extents(self, shape: Sequence[Any]) -> dict[str, tir.Expr]:
        """Logical extents of a tensor of this layout and (physical) shape."""
        sizes = {c: tir.as_index(n) for (c, f), n in zip(self.axes, shape) if f is None}
        return {c: simplify(n * self.factor(c)) for c, n in sizes.items()}

    def shape(self, extents: Mapping[str, Any]) -> tuple[tir.Expr, ...]:
        """The physical shape for logical extents."""
        return tuple(
            simplify(tir.floordiv(extents[c], self.factor(c))) if f is None else tir.index_const(f)
            for c, f in self.axes
        )

    def index(self, at: Mapping[str, Position]) -> tuple[tir.Expr, ...]:
        """The physical index of a logical position."""
        return tuple(at[c].split(self.factor(c))[0 if f is None else 1] for c, f in self.axes)

    def positions(self, index: Sequence[Any]) -> dict[str, Position]:
        """The logical position of a physical index."""
        outer = {c: i for (c, f), i in zip(self.axes, index) if f is None}
        inner = {c: i for (c, f), i in zip(self.axes, index) if f is not None}
        return {c: Position(i, inner.get(c), self.factor(c)) for c, i in outer.items()}

    def to_logical(self, array: np.ndarray, order: str) -> np.ndarray:
        """The array with one axis per letter of ``order``."""
        places: dict[str, list[int]] = {}
        for k, (c, f) in enumerate(self.axes):
            places.setdefault(c, []).insert(0 if f is None else 1, k)
        moved = array.transpose([k for c in order for k in places[c]])
        return moved.reshape([int(np.prod([array.shape[k] for k in places[c]], dtype=np.int64)) for c in order])

    def from_logical(self, array: np.ndarray, order: str) -> np.ndarray:
        """The inverse of ``to_logical``."""
        blocks = {c: f for c, f in self.axes if f is not None}
        split: list[int] = []
        labels: list[tuple[str, int | None]] = []
        for c, n in zip(order, array.shape):
            split += [n // blocks[c], blocks[c]] if c in blocks else [n]
            labels += [(c, None), (c, blocks[c])] if c in blocks else [(c, None)]
        return np.ascontiguousarray(array.reshape(split).transpose([labels.index(a) for a in self.axes]))


@lru_cache(maxsize=256)
def named_layout(spec: str) -> NamedLayout:
    """The layout called ``spec``; raises RoundelError when it is not one."""
    parts = re.findall(r"(\d*)([A-Za-z])", spec)
    axes = tuple((c.upper(), int(n) if n else None) for n, c in parts)
    upper = [c for c, f in axes if f is None]
    ok = "".join(n + c for n, c in parts) == spec and len(set(upper)) == len(upper) and len(set(axes)) == len(axes)
    if (
        not ok
        or any((f is None) != c.isupper() for (_, c), (_, f) in zip(parts, axes))
        or {c for c, f in axes} != set(upper)
    ):
        raise RoundelError(
            f"{spec!r} is not a layout", hint='upper-case letters are axes, numbered lower-case ones blocks: "NCHW8c"'
        )
    return NamedLayout(spec, axes)
