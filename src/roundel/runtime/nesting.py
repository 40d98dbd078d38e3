# SPDX-License-Identifier: Apache-2.0
"""Arguments in tuples, lists and dictionaries, and results in tuples: their tensors in a row, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.errors import CallError
from . import boundary
from .metadata import Template


def flatten(templates: Sequence[Template], values: Sequence[Any], count: int) -> list:
    """The ``count`` tensors in values that are nested as ``templates`` are, whose numbers are places. Raises CallError where a value is not a tuple."""
    flat: list[Any] = [None] * count
    todo = list(zip(templates, values))
    while todo:
        template, value = todo.pop()
        if isinstance(template, int):
            flat[template] = value
        elif isinstance(value, dict) and len(template) == 2:
            todo.extend(zip(template, boundary.entries(value)))
        elif isinstance(value, (tuple, list)) and len(value) == len(template):
            todo.extend(zip(template, value))
        elif isinstance(value, np.ndarray) and value.shape == (len(template),) and value.dtype.kind in "iu":  # a shape, as a function gives it
            todo.extend(zip(template, value.tolist()))
        else:
            raise CallError(f"a tuple of {len(template)} was expected, not {type(value).__name__}")
    return flat


def leaves(values: Iterable[Any], names: Sequence[str]) -> list[Any]:
    """The arrays in nested tuples, lists and dictionaries, in a row. A list of numbers is an array itself. What a dictionary has comes in the order of the
    inputs that are named after its keys; ``names`` are those of the inputs from here on."""
    found: list[Any] = []
    for value in values:
        rest = names[len(found) :]
        inner = _in_order(value, rest) if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ()
        nested = leaves(inner, rest)
        found += nested if nested and all(hasattr(v, "shape") for v in nested) else [value]
    return found


def _in_order(given: Mapping[Any, Any], names: Sequence[str]) -> list[Any]:
    """The values of a dictionary: first of the key after which the first name is called. Long keys choose first, as ``a_b`` is no name after ``b`` then."""
    free, places = list(enumerate(names)), {}
    for key in sorted(given, key=lambda k: -len(str(k))):
        word = re.sub(r"\W", "_", str(key))
        called = re.compile(rf"(?:.*_)?{re.escape(word)}(?:_.*)?")
        places[key] = next((place for place, name in free if called.fullmatch(name)), len(names))
        free = [(place, name) for place, name in free if place != places[key]]
    return [given[key] for key in sorted(given, key=lambda k: places[k])]


def assemble(template: Template, results: Sequence[Any]) -> Any:
    """Results nested as a template is."""
    return results[template] if isinstance(template, int) else tuple(assemble(t, results) for t in template)
