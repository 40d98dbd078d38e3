# SPDX-License-Identifier: Apache-2.0
"""What a compiled model was made of, so that it can be explained later: remembered without being kept alive, so it takes no memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .ir.errors import RoundelError
from .model_files import ModelFiles


def origin(model: Any, example_inputs: Sequence[Any] | None, asked: Mapping[str, Any], metadata: Mapping[str, Any]) -> Callable[[], Mapping[str, Any] | None]:
    """A function that gives the arguments ``model``, ``example_inputs`` and ``asked`` of ``rd.compile`` again; None once the model is gone, or where
    its file is another than the ``metadata`` of the compiled model tell."""
    there = _file(Path(model), metadata.get("source", {}).get("sha256")) if isinstance(model, str | Path) else _object(model)

    def found() -> Mapping[str, Any] | None:
        now = there()
        return None if now is None else {"model": now, "example_inputs": example_inputs, **asked}

    return found


def _file(path: Path, digest: str | None) -> Callable[[], Path | None]:
    def found() -> Path | None:
        try:
            return path if ModelFiles(path).digest() == digest else None
        except (OSError, RoundelError):
            return None

    return found


def _object(model: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(model)
    except TypeError:  # bytes and the like
        return lambda: None
