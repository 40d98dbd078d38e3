# SPDX-License-Identifier: Apache-2.0
"""Tuning: what can be measured of a model, how it is measured, and what was found. ``rd.tune(model)`` does all of it."""

from importlib import import_module
from typing import Any

_HOMES = {
    "tune": "api", "Database": "database", "Builder": "measure", "LocalBuilder": "measure", "LocalRunner": "measure", "Runner": "measure", "Result": "result",
    "Search": "search", "Session": "session", "Candidate": "space", "Space": "space", "Task": "task", "tasks": "task",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Everything is imported on first use: a model of the cache needs the database, and nothing that compiles."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
