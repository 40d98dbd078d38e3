# SPDX-License-Identifier: Apache-2.0
"""Tuning: what can be measured of a model, how it is measured, and what was found. ``rd.tune(model)`` does all of it."""

from .api import tune
from .database import Database
from .measure import Builder, LocalBuilder, LocalRunner, Runner
from .result import Result
from .search import Search
from .session import Session
from .space import Candidate, Space
from .tasks import Task, tasks

__all__ = ["Builder", "Candidate", "Database", "LocalBuilder", "LocalRunner", "Result", "Runner", "Search", "Session", "Space", "Task", "tasks", "tune"]
