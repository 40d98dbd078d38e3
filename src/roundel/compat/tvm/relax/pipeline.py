# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.pipeline``: lists of passes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ir.errors import OptionError
from ..transform import Pass, Sequential
from . import transform


def _zero(**_: Any) -> Pass:
    """Operators become tensor programs, and those that fit are merged; ``build`` does the rest."""
    return Sequential([transform.LegalizeOps(), transform.FoldConstant(), transform.FuseOps(), transform.FuseTIR()], name="zero")


def _tuned(target: Any = None, work_dir: str = "tuning_logs", total_trials: int = 64, **_: Any) -> Pass:
    """``zero``, then the tensor programs tuned."""
    return Sequential([_zero(), transform.MetaScheduleTuneTIR(work_dir, total_trials), transform.MetaScheduleApplyDatabase(work_dir)], name="tuned")


PIPELINE_MAP: dict[str, Callable[..., Any]] = {"zero": _zero, "default": _zero, "default_build": _zero, "static_shape_tuning": _tuned}


def get_pipeline(name: str = "zero", **options: Any) -> Any:
    """The pipeline of this name: a pass. Raises OptionError that names those there are."""
    if name not in PIPELINE_MAP:
        raise OptionError(f"there is no pipeline {name}", hint=f"those there are: {', '.join(PIPELINE_MAP)}")
    return PIPELINE_MAP[name](**options)


def register_pipeline(name: str) -> Callable[[Any], Any]:
    """A decorator of a function that makes a pipeline: ``get_pipeline(name)`` calls it. Raises ValueError for a name that is taken."""
    if name in PIPELINE_MAP:
        raise ValueError(f"there is a pipeline {name} already")

    def register(function: Any) -> Any:
        PIPELINE_MAP[name] = function
        return function

    return register


__all__ = ["PIPELINE_MAP", "get_pipeline", "register_pipeline"]
