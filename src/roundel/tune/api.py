# SPDX-License-Identifier: Apache-2.0
"""``rd.tune``: a model, a tensor program or tasks in, a database with faster schedules out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..ir.errors import OptionError
from ..target import TargetLike
from ..target.host import usable_cores
from .database import Database
from .measure import Builder, LocalBuilder, LocalRunner, Runner
from .result import Result
from .search import search_named
from .session import Session, Settings
from .tasks import Task, tasks, threads_of

TRIALS = 64  # for each task, where neither a time nor a number of trials is given


def tune(model: Any, example_inputs: Sequence[Any] | None = None, *, target: TargetLike | None = None, threads: int | None = None,
         seconds: float | None = None, trials: int | None = None, sizes: Any = None, dynamic: Any = None, space: Any = "all", search: Any = "evolutionary",
         db: Database | str | os.PathLike[str] | None = None, builder: Builder | None = None, runner: Runner | None = None, seed: int = 0,
         watch: Callable[[Session], None] = lambda session: None) -> Result:
    """Measure schedules of a model's tensor programs and keep the fastest in a database, which ``rd.compile`` reads.

    ``model``: what `tasks` takes (a model, a module, a tensor program, a tensor expression), or a list of tasks. ``seconds`` and ``trials``: for how
    long, and how many candidates in all, those of earlier sessions in the same database counted; the first that is reached ends the search, as
    Ctrl-C does; without either there are `TRIALS` for each task. ``sizes``: of symbolic dimensions, as for `tasks`. ``space``: ``all`` sketches,
    those of hand-written ``rules``, ``generic`` ones, or a list of rules. ``search``: ``evolutionary``, ``random``, ``exhaustive``, ``replay``, or a class
    derived from `Search`. ``db``: a database or its path; None: the user's own. ``builder`` and ``runner``: who builds and measures, by default child
    processes of this machine. A schedule that is not surely faster than the untuned compiler's by one part in a hundred is not used.
    Raises RoundelError.
    """
    search_named(search)
    threads = threads_of(threads)
    if seconds is not None and not seconds > 0 or trials is not None and trials < 1:
        raise OptionError("there is no time to tune", hint="give seconds above 0, and at least one trial")
    found = list(model) if isinstance(model, Sequence) and not isinstance(model, str | bytes) and all(isinstance(t, Task) for t in model) else \
        tasks(model, example_inputs, target=target, sizes=sizes, dynamic=dynamic)
    database = db if isinstance(db, Database) else Database(db)
    if seconds is None and trials is None:
        trials = TRIALS * len(found)
    with ExitStack() as stack:
        if builder is None:
            builder = LocalBuilder(max(usable_cores() - threads, 1))
            stack.callback(builder.close)
        if runner is None:
            runner = LocalRunner()
            stack.callback(runner.close)
        session = Session(found, builder, runner, database, Settings(threads, seconds, trials, space=space, search=search, seed=seed), watch)
        session.run()
    return Result(session.attempts, session.elapsed, database.path, session.was_interrupted)
