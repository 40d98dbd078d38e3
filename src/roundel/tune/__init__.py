# SPDX-License-Identifier: Apache-2.0
"""Tuning: what can be measured of a model, how it is measured, and what was found. ``rd.tune(model)`` does all of it."""

import sys
from types import ModuleType
from typing import Any

from .api import tune
from .database import Database
from .measure import Builder, LocalBuilder, LocalRunner, Runner
from .result import Result
from .search import Search
from .session import Session
from .space import Candidate, Space
from .tasks import Task, tasks

__all__ = ["Builder", "Candidate", "Database", "LocalBuilder", "LocalRunner", "Result", "Runner", "Search", "Session", "Space", "Task", "tasks", "tune"]


class _Room(ModuleType):
    """``roundel.tune(...)`` is the function `tune`, although it is a room too."""

    def __call__(self, *args: Any, **named: Any) -> Result:
        return tune(*args, **named)


sys.modules[__name__].__class__ = _Room
