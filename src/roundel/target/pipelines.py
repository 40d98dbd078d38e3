# SPDX-License-Identifier: Apache-2.0
"""Pipelines of one's own by target: what models for a kind of target, or for a processor, are compiled by where no pipeline is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.errors import OptionError

_known: dict[str, tuple[Any, ...]] = {}


def register_pipeline(target: str, pipeline: Sequence[Any] | None) -> None:
    """Have ``rd.compile`` take a pipeline for a processor (``"znver5"``) or a kind of target (``"c"``) from now on, in this process; None: the
    default again. That of a processor goes before that of its kind. Raises OptionError for what is no list of passes."""
    if pipeline is None:
        _known.pop(target, None)
        return
    if not isinstance(pipeline, list | tuple) or not all(callable(p) for p in pipeline):
        raise OptionError(f"a pipeline cannot be {pipeline!r}", hint="give a list of passes, such as driver.pipeline(operators=mine)")
    _known[target] = tuple(pipeline)


def registered_pipeline(*names: str) -> Sequence[Any] | None:
    """The pipeline of the first of these names that has one; None where none has."""
    return next((_known[name] for name in names if name in _known), None)


def are_registered() -> bool:
    """Whether any target has a pipeline of its own."""
    return bool(_known)
