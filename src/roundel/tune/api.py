# SPDX-License-Identifier: Apache-2.0
"""Tasks in, a database with faster schedules out: a session with what it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..ir import graph
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..target import Target
from ..target.host import usable_cores
from .database import Database
from .measure import Builder, LocalBuilder, LocalRunner, Runner
from .result import Result
from .search import search_named
from .session import Session, Settings
from .task import Task, cases_of, threads_of
from .whole import Whole

TRIALS = 64  # for each task, where neither a time nor a number of trials is given


def tune(found: Sequence[Task], *, threads: int | None = None, seconds: float | None = None, trials: int | None = None, space: Any = "all",
         search: Any = "evolutionary", db: Database | str | os.PathLike[str] | None = None, builder: Builder | None = None, runner: Runner | None = None,
         seed: int = 0, watch: Callable[[Session], None] = lambda session: None, mod: IRModule | None = None,
         sizes: Any = None, postprocessors: Sequence[Any] = (), mutators: Sequence[Any] = ()) -> Result:
    """Measure schedules of tasks and keep the fastest in a database; ``rd.tune`` says what the arguments are. ``mod`` is the model that the tasks are
    of, ``sizes`` what they were made for: at the end the winners are compared inside of it. Raises RoundelError."""
    search_named(search)
    threads = threads_of(threads)
    if not (seconds is None or seconds > 0) or not (trials is None or trials > 0):
        raise OptionError("there is no time to tune", hint="give seconds above 0, and at least one trial")
    database = db if isinstance(db, Database) else Database(db)
    if seconds is None and trials is None:
        trials = TRIALS * len(found)
    if runner is None and (foreign := next((t.program.target for t in found if t.program.target.triple != Target.host().triple), None)) is not None:
        raise OptionError(f"programs for {foreign.triple} cannot be measured here", hint="give a runner that measures on such a machine")
    here = runner is None or isinstance(runner, LocalRunner)
    with ExitStack() as stack:
        if builder is None:
            builder = LocalBuilder(max(usable_cores() - threads, 1))
            stack.callback(builder.close)
        if runner is None:
            runner = LocalRunner()
            stack.callback(runner.close)
        settings = Settings(threads, seconds, trials, space=space, search=search, seed=seed, postprocessors=tuple(postprocessors), mutators=tuple(mutators))
        whole = Whole(mod, found[0].program.target, threads, cases_of(sizes)[0][0]) if mod is not None and found and here and _is_model(mod) else None
        session = Session(found, builder, runner, database, settings, watch, whole)
        session.run()
    return Result(session.attempts, session.elapsed, database.path, session.was_interrupted)


def _is_model(mod: IRModule) -> bool:
    return any(isinstance(f, graph.Function) for _, f in mod.items())
