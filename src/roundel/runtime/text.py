# SPDX-License-Identifier: Apache-2.0
"""Strings at the boundary of compiled models, which compute with numbers that stand for them.

A string is the 64-bit BLAKE2b hash of its UTF-8 text, the empty one is 0, so equal strings are equal numbers in every process and
whatever moves, selects or compares strings is ordinary integer code. This table of the process turns numbers back into strings;
a shipped model carries the strings that it can give by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.errors import CallError

_strings: dict[int, str] = {0: ""}
_recorders: list[dict[str, None]] = []


def number_of(text: str) -> int:
    """The number that stands for a string, which the table knows from now on."""
    data = text.encode()
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True) if data else 0
    if _strings.setdefault(number, text) != text:
        raise CallError("two strings have the same hash", why=f"{text!r} and {_strings[number]!r}")
    for seen in _recorders:
        seen[text] = None
    return number


def numbers_of(values: Any) -> np.ndarray:
    """An array of strings (or of UTF-8 bytes) as int64."""
    array = np.asarray(values)
    if array.dtype.kind not in "OUS" and array.size:
        raise CallError(f"an array of strings is wanted, this one has elements of {array.dtype}")
    flat = [v.decode() if isinstance(v, bytes) else str(v) for v in array.reshape(-1)]
    return np.array([number_of(v) for v in flat], np.int64).reshape(array.shape)


def strings_of(numbers: np.ndarray) -> np.ndarray:
    """The inverse, an array of Python strings; raises CallError for a number that nobody has given a string."""
    try:
        flat = [_strings[int(v)] for v in numbers.reshape(-1)]
    except KeyError as error:
        raise CallError(f"no string is known for the number {error}", hint="load the model that computed it in this process") from None
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(numbers.shape)


def learn(strings: Iterable[str]) -> None:
    """Enter strings into the table."""
    for text in strings:
        number_of(text)


@contextmanager
def recorded() -> Iterator[dict[str, None]]:
    """The strings that are entered in the meantime."""
    seen: dict[str, None] = {}
    _recorders.append(seen)
    try:
        yield seen
    finally:
        _recorders.remove(seen)
