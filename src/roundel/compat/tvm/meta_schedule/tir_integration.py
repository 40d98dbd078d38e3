# SPDX-License-Identifier: Apache-2.0
"""``tvm.meta_schedule.tir_integration``: a tensor program tuned, and its fastest schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....ir.module import IRModule
from ....schedule import Schedule
from ..running import as_target
from .database import Database


def tune_tir(mod: Any, target: Any, work_dir: str | Path, max_trials_global: int = 64, *, space: Any = "post-order-apply", seed: int | None = None,
             **_: Any) -> Database:
    """Measure schedules of tensor programs and keep the fastest: `rd.tune`"""
    return Database(work_dir).tune(_module(mod), as_target(target), max_trials_global, space, seed)


def compile_tir(database: Database, mod: Any, target: Any) -> Schedule | None:
    """The fastest schedule that was found for a tensor program, None for one that was not tuned."""
    if database.result is None:
        database.tune(_module(mod), as_target(target), 1)
    return database.result.schedule() if database.result else None


def _module(mod: Any) -> IRModule:
    return mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)


__all__ = ["compile_tir", "tune_tir"]
