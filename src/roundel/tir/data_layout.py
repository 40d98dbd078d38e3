# SPDX-License-Identifier: Apache-2.0
"""Layouts of tensors by letters: ``"NCHW16c"`` has the channels in blocks of 16, innermost; and the maps between two of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..arith import Analyzer
from ..ir import tir
from ..ir.dtype import DType

_AXIS = re.compile(r"(\d*)([A-Za-z])")
UNDEFINED = "__undef__"


class Layout:
    """Axes by letters: a capital is a whole axis, or what is left of it where its small letter, with the number of elements before it,
    is split off. Raises ValueError for a text that is no layout, TypeError for a type that is no integer."""

    def __init__(self, name: str, dtype: Any = "int32") -> None:
        self.dtype = DType(dtype) if isinstance(dtype, str) else None
        if self.dtype is None or not self.dtype.is_int:
            raise TypeError(f"indices of a layout are integers, not {dtype}")
        self.name = name
        parts = [] if name == UNDEFINED else [(m[2], int(m[1]) if m[1] else -1) for m in _AXIS.finditer(name)]
        letters = [letter for letter, _ in parts]
        if name != UNDEFINED and _AXIS.sub("", name):
            raise ValueError(f"{name!r} is no layout: it has letters, and numbers before small ones, as NCHW16c")
        for letter, factor in parts:
            if letters.count(letter) > 1:
                raise ValueError(f"layout {name!r} has axis {letter} twice")
            if letter.islower() != (factor > 0) or (letter.islower() and letter.upper() not in letters):
                raise ValueError(f"layout {name!r}: a small letter has its number before it and its capital elsewhere, a capital has none")
        self.parts = parts

    @property
    def axes(self) -> list[tir.IterVar]:
        """The axes as iteration variables; a whole axis has a variable as extent."""
        return [self._axis(letter, factor) for letter, factor in self.parts]

    def _axis(self, letter: str, factor: int) -> tir.IterVar:
        extent = tir.IntImm(factor, self.dtype) if factor > 0 else tir.Var(f"{letter}_extent", self.dtype, True)  # type: ignore[arg-type]
        return tir.IterVar(tir.Var(letter, self.dtype), tir.Range(tir.IntImm(0, self.dtype), extent), tir.IterKind.SPATIAL)  # type: ignore[arg-type]

    def index_of(self, axis: str) -> int:
        """The place of an axis, -1 where it has none."""
        letters = [letter for letter, _ in self.parts]
        return letters.index(axis) if axis in letters else -1

    def factor_of(self, axis: str) -> int:
        """How many elements of an axis are split off; -1 for none."""
        return dict(self.parts).get(axis.lower(), -1)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, axis: str) -> bool:
        return self.index_of(axis) >= 0

    def __getitem__(self, k: int) -> str:
        return self.parts[k][0]

    def __iter__(self) -> Iterator[str]:
        return iter([letter for letter, _ in self.parts])

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class BijectiveLayout:
    """The map between two layouts of the same axes."""

    def __init__(self, source: Layout, target: Layout) -> None:
        self.src_layout, self.dst_layout = source, target

    def forward_index(self, index: Sequence[Any]) -> list[tir.Expr]:
        """Where an element of the source lies in the target."""
        return _indices(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[tir.Expr]:
        """Where an element of the target lies in the source."""
        return _indices(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[tir.Expr]:
        """The shape in the target of a shape in the source; the last block of an axis may be partly filled."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[tir.Expr]:
        """The shape in the source of a shape in the target."""
        return _shape(self.dst_layout, self.src_layout, shape)


def _indices(source: Layout, target: Layout, index: Sequence[Any]) -> list[tir.Expr]:
    if len(index) != len(source):
        raise ValueError(f"layout {source} has {len(source)} axes, {len(index)} indices given")
    whole: dict[str, tir.Expr] = {}
    for (letter, _), value in zip(source.parts, index):
        step = 1 if letter.islower() else max(source.factor_of(letter), 1)
        whole[letter.upper()] = tir.add(whole.get(letter.upper(), tir.index_const(0)), tir.as_index(value) * step)
    out = []
    for letter, factor in target.parts:
        value = whole[letter.upper()]
        split = target.factor_of(letter)
        out.append(Analyzer().simplify(value % factor if letter.islower() else value if split < 0 else value // split))
    return out


def _shape(source: Layout, target: Layout, shape: Sequence[Any]) -> list[tir.Expr]:
    if len(shape) != len(source):
        raise ValueError(f"layout {source} has {len(source)} axes, a shape of {len(shape)} is given")
    whole: dict[str, tir.Expr] = {}
    for (letter, _), value in zip(source.parts, shape):
        whole[letter.upper()] = tir.mul(whole.get(letter.upper(), tir.index_const(1)), tir.as_index(value))
    out = []
    for letter, factor in target.parts:
        value, split = whole[letter.upper()], target.factor_of(letter)
        out.append(Analyzer().simplify(tir.index_const(factor) if letter.islower() else value if split < 0 else tir.ceildiv(value, split)))
    return out


def layout(name: str, dtype: Any = "int32") -> Layout:
    """The layout of a text."""
    return Layout(name, dtype)


def bijective_layout(source: str | Layout, target: str | Layout) -> BijectiveLayout | None:
    """The map between two layouts; None where they do not have the same axes, or one is undefined."""
    a, b = (x if isinstance(x, Layout) else Layout(x) for x in (source, target))
    same = {letter.upper() for letter in a} == {letter.upper() for letter in b}
    return BijectiveLayout(a, b) if same and len(a) and len(b) else None
