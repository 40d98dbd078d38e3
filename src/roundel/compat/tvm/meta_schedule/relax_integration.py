# SPDX-License-Identifier: Apache-2.0
"""``tvm.meta_schedule.relax_integration``: the tensor programs of a model, tuned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ....ir.dataclass import dataclass
from ....ir.module import IRModule
from ..running import DATABASE, Module, as_target, build
from .database import Database, tasks


@dataclass(frozen=True)
class ExtractedTask:
    """A tensor program, and how often a run of the model calls it."""

    task_name: str
    mod: IRModule
    target: Any
    weight: int


def extract_tasks(mod: IRModule, target: Any = None, params: Any = None, **_: Any) -> list[ExtractedTask]:
    """What there is to tune: `rd.tune.tasks`"""
    return [ExtractedTask(t.name, IRModule({"main": t.program.func}), target, round(t.weight)) for t in tasks(mod, as_target(target))]


def tune_relax(mod: IRModule, params: Any, target: Any, work_dir: str | Path, max_trials_global: int = 64, *, seed: int | None = None, **_: Any) -> Database:
    """Measure schedules of a model's tensor programs and keep the fastest: `rd.tune`"""
    return Database(work_dir).tune(mod, as_target(target), max_trials_global, seed=seed)


def compile_relax(database: Database, mod: IRModule, target: Any, params: Any = None, **_: Any) -> Module:
    """The module built with what was found."""
    return build(mod.replace(attrs=mod.attrs | {DATABASE: str(database.path)}), target)


__all__ = ["ExtractedTask", "compile_relax", "extract_tasks", "tune_relax"]
