# SPDX-License-Identifier: Apache-2.0
"""``--json``, which every command has: its result as one JSON value on standard output, and nothing else there."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import typer

JSON = typer.Option(False, "--json", help="The result as JSON on standard output, and nothing else there.")


def print_json(value: Any) -> None:
    """The value as text that every JSON reader takes: numbers that are not finite become ``"nan"``, ``"inf"`` and ``"-inf"``."""
    typer.echo(json.dumps(_plain(value), indent=1, allow_nan=False))


def tensor_facts(infos: Any) -> list[dict[str, Any]]:
    """Inputs or outputs; dimensions are numbers, or texts where they are symbolic."""
    return [{"name": i.name, "dtype": i.dtype, "shape": list(i.shape)} for i in infos]


def array_facts(infos: Any, values: Any) -> list[dict[str, Any]]:
    """What a model was called with, or gave."""
    return [{"name": i.name, "dtype": str(np.asarray(v).dtype), "shape": list(np.shape(v))} for i, v in zip(infos, values, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
