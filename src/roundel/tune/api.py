# SPDX-License-Identifier: Apache-2.0
"""Tasks in, a database with faster schedules out: a session with what it needs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeGuard

from .. import driver
from ..ir import graph
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..target import Target, TargetLike
from ..target.host import usable_cores
from .database import Database
from .graphs import MOST, Chosen, Graphs
from .measure import Builder, LocalBuilder, LocalRunner, Runner
from .measured import Measured
from .paths import Compared, Paths
from .result import Result
from .search import search_named
from .session import INSIDE, Session, Settings
from .task import Task, cases_of, tasks, threads_of
from .whole import SECONDS, Whole

GRAPHS = 0.2  # share of the time for the choices of the graph
TRIALS_OF_A_GRAPH = 16  # where the number of trials is given, the candidates that a whole model counts as
PATHS = 0.25  # share of the time for the comparison with libraries, where there are any
_log = logging.getLogger("roundel.tune")
TRIALS = 64  # for each task, where neither a time nor a number of trials is given


def tune(found: Sequence[Task] | None, *, threads: int | None = None, seconds: float | None = None, trials: int | None = None, space: Any = "all",
         search: Any = "evolutionary", db: Database | str | os.PathLike[str] | None = None, builder: Builder | None = None, runner: Runner | None = None,
         seed: int = 0, watch: Callable[[Session], None] = lambda session: None, mod: Any = None,
         sizes: Any = None, postprocessors: Sequence[Any] = (), mutators: Sequence[Any] = (), libraries: Sequence[str] = (),
         target: TargetLike | None = None, begun: float | None = None, graphs: int | None = None) -> Result:
    """Measure schedules of tasks and keep the fastest in a database; ``rd.tune`` says what the arguments are. ``mod`` is the model that the tasks are
    of (None: they are made of it), ``sizes`` what they are made for: at the end the winners are compared inside of it, and with what the backends
    ``libraries`` have for its parts. ``begun``: when the time begins to count (of ``time.monotonic``; None: now). Raises RoundelError."""
    search_named(search)
    threads, begun = threads_of(threads), time.monotonic() if begun is None else begun
    if not (seconds is None or seconds > 0) or not (trials is None or trials > 0 or (trials == 0 and libraries)):
        raise OptionError("there is no time to tune", hint="give seconds above 0, and at least one trial, or none and libraries to compare with")
    if libraries and not _is_model(mod):
        raise OptionError("libraries are measured for parts of a model", hint="give the model, not its tasks or a tensor program")
    database = db if isinstance(db, Database) else Database(db)
    chosen = None
    if found is None:
        machine = driver.target_of(target, mod) if _is_model(mod) else target
        known = Measured(database, machine, threads) if _is_model(mod) else None
        if _is_model(mod) and _measures_here(runner) and search != "replay" and trials != 0:
            end = float("inf") if seconds is None else begun + GRAPHS * seconds
            note = getattr(watch, "note", _log.info)
            chosen = _chosen(Graphs(Whole(mod, machine, threads, {}), cases_of(sizes), database, _graphs(graphs, trials), end, note))
        found = tasks(mod, target=target, sizes=sizes, records=known)
    if seconds is None and trials is None:
        trials = TRIALS * len(found)
    if runner is None and (foreign := next((t.program.target for t in found if t.program.target.triple != Target.host().triple), None)) is not None:
        raise OptionError(f"programs for {foreign.triple} cannot be measured here", hint="give a runner that measures on such a machine")
    here = _measures_here(runner)
    with ExitStack() as stack:
        if builder is None:
            builder = LocalBuilder()
            stack.callback(builder.close)
        overlaps = threads < usable_cores() or not here
        if runner is None:
            runner = LocalRunner(beside=builder if isinstance(builder, LocalBuilder) else None)
            overlaps = overlaps or runner.beside is not None
            stack.callback(runner.close)
        searched = seconds and seconds * (1 - PATHS * bool(libraries))
        settings = Settings(threads, searched, trials, space=space, search=search, seed=seed, postprocessors=tuple(postprocessors), mutators=tuple(mutators),
                            overlaps=overlaps)
        whole = None
        if found and here and _is_model(mod):
            compared_for = SECONDS if searched is None else min(SECONDS, INSIDE * searched)
            machine = found[0].program.target
            whole = Whole(mod, machine, threads, cases_of(sizes)[0][0], compared_for, Measured(database, machine, threads))
        session = Session(found, builder, runner, database, settings, watch, whole, begun)
        if trials != 0 and not (chosen and chosen.was_interrupted):
            session.run()
        compared: list[Compared] = []
        if libraries and _is_model(mod) and not session.was_interrupted:
            end = float("inf") if seconds is None else begun + seconds
            machine = driver.target_of(target, mod)
            compared = Paths(mod, machine, threads, libraries, cases_of(sizes), database, runner, end).run()
    was_interrupted = session.was_interrupted or bool(chosen and chosen.was_interrupted)
    return Result(session.attempts, time.monotonic() - begun, database.path, was_interrupted, compared, session.inside, chosen)


def _graphs(most: int | None, trials: int | None) -> int:
    """How many whole models are measured for the choices of the graph."""
    return most if most is not None else MOST if trials is None else min(MOST, trials // TRIALS_OF_A_GRAPH)


def _chosen(search: Graphs) -> Chosen | None:
    """The choices of the graph, which are remembered; None where there are too few models to measure, or they run elsewhere."""
    if search.most < 2 or search.whole.target.triple != Target.host().triple:
        return None
    found = search.run()
    search.database.append(*found.records)
    if found.measured:
        search.tell(str(found))
    return found


def _measures_here(runner: Runner | None) -> bool:
    return runner is None or getattr(runner, "is_here", False)


def _is_model(mod: Any) -> TypeGuard[IRModule]:
    return isinstance(mod, IRModule) and any(isinstance(f, graph.Function) for _, f in mod.items())
