# SPDX-License-Identifier: Apache-2.0
"""Constant data of a module, whatever language it is written in: structures, arrays, texts and the addresses of functions."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.dataclass import dataclass


@dataclass(frozen=True)
class Number:
    """An integer of so many bits."""

    bits: int
    value: int


@dataclass(frozen=True)
class Text:
    """The address of a text that ends with a zero byte."""

    text: str


@dataclass(frozen=True)
class Symbol:
    """The address of a function that returns nothing or an integer of ``bits``, and takes arguments of these types; of None: no address."""

    name: str | None
    bits: int = 0
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """A structure of ``csrc/roundel.h``, by its name there."""

    kind: str
    fields: tuple[Value, ...]


@dataclass(frozen=True)
class Array:
    """The address of values of one kind, one behind the other; no address where there are none."""

    items: tuple[Value, ...]

    @staticmethod
    def of(items: Sequence[Value]) -> Array:
        """The array of a list."""
        return Array(tuple(items))


Value = Number | Text | Symbol | Record | Array


@dataclass(frozen=True)
class Data:
    """A structure with a name that others know."""

    name: str
    value: Record
