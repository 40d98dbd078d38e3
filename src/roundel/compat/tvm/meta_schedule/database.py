# SPDX-License-Identifier: Apache-2.0
"""What tuning found, in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .... import api
from ....ir.module import IRModule
from ....tune import Result
from .space_generator import rules_of

FILE = "records.db"


class Database:
    """The records in a folder; ``result`` is what the last tuning says: times before and after."""

    def __init__(self, work_dir: str | Path) -> None:
        self.path = Path(work_dir, FILE)
        self.result: Result | None = None

    def tune(self, mod: IRModule, target: Any, trials: int | None, space: Any = "post-order-apply", seed: int | None = None) -> Database:
        """Tune a module, and keep what is found."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.result = api.tune(mod, target=target, trials=trials, space=rules_of(space), db=self.path, seed=seed or 0)
        return self


def tasks(mod: IRModule, target: Any) -> Sequence[Any]:
    """The tensor programs that can be tuned."""
    found: Callable[..., Sequence[Any]] = api.tune.tasks
    return found(mod, target=target)


__all__ = ["Database"]
