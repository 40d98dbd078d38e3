# SPDX-License-Identifier: Apache-2.0
"""Arguments in tuples and lists, and results in tuples: their tensors in a row, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def leaves(values: Sequence[Any]) -> Iterator[Any]:
    """What lies in nested tuples and lists of arrays. A list of numbers is an array itself."""
    for value in values:
        nested = tuple(leaves(value)) if isinstance(value, tuple | list) else ()
        yield from nested if nested and all(hasattr(v, "shape") for v in nested) else (value,)


def assemble(template: Template, results: Sequence[Any]) -> Any:
    """Results nested as a template is."""
    return results[template] if isinstance(template, int) else tuple(assemble(t, results) for t in template)
