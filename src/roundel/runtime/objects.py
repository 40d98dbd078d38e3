# SPDX-License-Identifier: Apache-2.0
"""Objects of Python in compiled functions (``R.Object``): models hand them from packed functions to packed functions and never look into them.

Native code holds a number for each. While a function with objects runs, a table tells which object a number is; when the call is over, the objects
that it got and made are forgotten. A packed function that takes or gives objects is called through `CALL_WITH_OBJECTS`, which is told which of its
arguments are numbers of objects.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .registry import get_func, has_func, register_func

CALL_WITH_OBJECTS = "roundel.call_with_objects"
"""``(name, kinds, *args)``: ``kinds`` has a letter for each argument and one for the result, ``o`` for an object."""

_numbers = itertools.count(1)
_objects: dict[int, Any] = {}
_calls = threading.local()


@contextmanager
def known() -> Iterator[None]:
    """For one call of a compiled function: objects that get a number within are forgotten at its end."""
    if not has_func(CALL_WITH_OBJECTS):
        register_func(CALL_WITH_OBJECTS, _call)
    around, _calls.made = getattr(_calls, "made", None), []
    try:
        yield
    finally:
        for number in _calls.made:
            del _objects[number]
        _calls.made = around


def number_of(value: Any) -> np.ndarray:
    """The number of an object for the current call."""
    number = next(_numbers)
    _objects[number] = value
    _calls.made.append(number)
    return np.array(number, np.int64)


def object_of(number: Any) -> Any:
    """The object that has this number."""
    return _objects[int(number)]


def take(flat: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The arguments of a function with the objects among them as numbers."""
    places = extra.get("object_inputs", ())
    return [number_of(a) if k in places else a for k, a in enumerate(flat)]


def give(results: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The results of a function with the objects that numbers among them stand for."""
    places = extra.get("object_outputs", ())
    return [object_of(r) if k in places else r for k, r in enumerate(results)]


def _call(name: str, kinds: str, *args: Any) -> Any:
    found = get_func(name)(*(object_of(a) if kind == "o" else a for a, kind in zip(args, kinds, strict=False)))
    return int(number_of(found)) if kinds[-1] == "o" else found


__all__ = ["CALL_WITH_OBJECTS", "give", "known", "number_of", "object_of", "take"]
