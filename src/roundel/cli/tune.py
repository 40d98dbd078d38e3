# SPDX-License-Identifier: Apache-2.0
"""``roundel tune``: faster schedules for a model, by measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..ir.errors import OptionError
from ..ir.escape import markup
from .arguments import ACCURACY, FIX, LIBRARIES, NO_DIM, TARGET, THREADS, dims, one_of
from .json_output import JSON, print_json

if TYPE_CHECKING:
    from ..tune import Session
    from ..tune.measure.remote import RemoteRunner

MOST_ROWS = 16  # tasks that are shown while it goes on


def tune_command(
    model: Path = typer.Argument(..., help="An ONNX file.", show_default=False),
    seconds: float = typer.Option(None, "--seconds", min=0, help="For how long. Default: until the trials are made."),
    trials: int = typer.Option(None, "--trials", min=0, help="Candidates to measure in all, those of earlier runs with the same database counted; 0 with "
                               "--libraries alone compares with these. Default: 64 for each task where --seconds is not given either."),
    sizes: list[str] = typer.Option([], "--sizes", metavar="NAME=SIZE,SIZE,...", help="Sizes of a symbolic dimension to tune for, such as seq=17,128. "
                                    "May be given several times."),
    db: Path = typer.Option(None, "--db", help="The database to go on with and to add to. Default: the user's own."),
    space: str = typer.Option("all", "--space", autocompletion=one_of("all", "rules", "generic"),
                               help="all sketches, those of hand-written rules, or generic ones."),
    search: str = typer.Option("evolutionary", "--search", autocompletion=one_of("evolutionary", "random", "exhaustive", "replay"),
                                help="evolutionary, random, exhaustive or replay."),
    target: str = TARGET, threads: int = THREADS, fix: list[str] = FIX, dim: list[str] = NO_DIM, accuracy: str = ACCURACY, libraries: str = LIBRARIES,
    seed: int = typer.Option(0, "--seed", min=0, help="Of the search."),
    runner: str = typer.Option(None, "--runner", metavar="HOST[:PORT]", help="Measure on another machine, where `roundel serve-runner` runs, for its target. "
                               "ROUNDEL_RUNNER_KEY is the key of both."),
    tracker: str = typer.Option(None, "--tracker", metavar="HOST[:PORT]", help="Measure on a machine that a tracker lends (`roundel serve-tracker`)."),
    device: str = typer.Option(None, "--device", help="Which: its name there."),
    graphs: int = typer.Option(None, "--graphs", min=0, help="Whole models with other algorithms, layouts, boundaries of kernels or packing to measure first. "
                               "Default: 8, less for few --trials."),
    report: Path = typer.Option(None, "--report", help="Also write a page of HTML: curves by task, candidates by decision, predicted against measured."),
    as_json: bool = JSON,
) -> None:
    """Measure schedules of a model's kernels, and libraries beside them, and keep the fastest in a database, which `roundel compile` reads.

    Ctrl-C ends the search: what was found is compared with the default and kept. The same command goes on where it was.
    """
    from rich.console import Console

    from .. import api
    from ..ir import options

    console = Console(stderr=as_json, emoji=False)
    with options.override(**({"accuracy": accuracy} if accuracy else {})), remote(runner, tracker, device) as measuring:
        target = target or (measuring.target if measuring is not None else None)
        with shown(console) as watch:
            result = api.tune(model, target=target, sizes=lists(sizes), dynamic=dims(fix, "--fix") or None, threads=threads, seconds=seconds,
                              trials=trials, db=db, space=space, search=search, seed=seed, watch=watch, runner=measuring, graphs=graphs)
    if report is not None:
        result.report(report, model.name)
    if as_json:
        print_json(result.as_dict() | {"report": str(report) if report is not None else None})
        return
    typer.echo(str(result))
    typer.echo(f"{'interrupted; ' if result.was_interrupted else ''}{len(result)} tasks, {sum(r.trials for r in result.rows)} trials, "
               f"{result.seconds:.0f} s; the records are in {result.database}")


@contextmanager
def remote(address: str | None, tracker: str | None = None, device: str | None = None) -> Iterator[RemoteRunner | None]:
    """The runner at an address, or one that a tracker lends; None where neither is given."""
    if address is None and tracker is None and device is None:
        yield None
        return
    from ..tune.measure.remote import RemoteRunner
    from ..tune.measure.tracker import LentRunner, lent_name

    if address is not None and tracker is not None:
        raise OptionError("measurements are made on one machine", hint="give --runner, or --tracker with --device")
    name = lent_name(tracker, device)
    found = LentRunner(tracker or "", name) if name is not None else RemoteRunner(address or "")
    try:
        yield found
    finally:
        found.close()


def lists(items: list[str]) -> dict[str, list[int]] | None:
    """``["seq=17,128"]`` as a mapping; raises typer.BadParameter."""
    found: dict[str, list[int]] = {}
    for item in items:
        name, _, values = item.partition("=")
        found[name.strip()] = [dims([f"{name}={value}"], "--sizes")[name.strip()] for value in values.split(",")]
    return found or None


def shown(console: Any) -> AbstractContextManager[Callable[[Session], None]]:
    """How a session is followed: a table that is renewed in a terminal, else a line now and then."""
    return _Table(console) if console.is_terminal else nullcontext(_Lines(console))


class _Lines:
    """A line whenever a task got faster, or a while has passed."""

    SECONDS = 10.0

    def __init__(self, console: Any) -> None:
        self.console = console
        self.told = 0.0
        self.best: dict[str, float] = {}

    def __call__(self, session: Session) -> None:
        from ..tune.result import row

        for attempt in session.attempts:
            r = row(attempt)
            if r.best_ms is not None and r.best_ms < 0.99 * self.best.get(r.name, float("inf")):
                if r.name in self.best:
                    self._print(f"{session.elapsed:7.1f} s {r.name}: {r.best_ms:.4f} ms, {r.gain:.2f} times as fast, {r.sketch}")
                    self.told = session.elapsed
                self.best[r.name] = r.best_ms
        if session.elapsed - self.told > self.SECONDS:
            self.told = session.elapsed
            self._print(f"{session.elapsed:7.1f} s {status(session)}")

    def note(self, text: str) -> None:
        """What happens before the tasks are there."""
        self._print(text)

    def _print(self, text: str) -> None:
        self.console.print(markup(text), soft_wrap=True, highlight=False)


class _Table:
    """The tasks that take the most time, and the model."""

    def __init__(self, console: Any) -> None:
        from rich.live import Live

        self.live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Callable[[Session], None]:
        self.live.__enter__()
        return self

    def __call__(self, session: Session) -> None:
        self.live.update(table(session))

    def note(self, text: str) -> None:
        """What happens before the tasks are there."""
        self.live.update(markup(text))

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)


def table(session: Session) -> Any:
    """Tasks with weight, trials, best and gain; below, how it stands."""
    from rich.table import Table

    from ..tune.result import row

    out = Table(caption=status(session))
    out.add_column("task", overflow="ellipsis", no_wrap=True)
    for name in ("weight", "trials", "failed", "default ms", "best ms", "gain"):
        out.add_column(name, justify="right")
    out.add_column("sketch")
    rows = sorted(map(row, session.attempts), key=lambda r: -r.weight * (r.default_ms or 0.0))
    for r in rows[:MOST_ROWS]:
        times = [f"{r.default_ms:.4f}", f"{r.best_ms:.4f}", f"{r.gain:.2f}x"] if r.default_ms is not None and r.best_ms is not None else ["", "", ""]
        out.add_row(markup(r.name), f"{r.weight:g}", str(r.trials), str(r.failures or ""), *times, r.sketch or r.note)
    if len(rows) > MOST_ROWS:
        out.add_row(f"and {len(rows) - MOST_ROWS} more")
    return out


def status(session: Session) -> str:
    """One line: how far it is, and what that means for the model."""
    from ..tune.result import Result

    before, after = Result(session.attempts, session.elapsed, None).model_ms()
    limits = session.settings
    left = f", {max(limits.seconds - session.elapsed, 0):.0f} s left" if limits.seconds is not None else ""
    of = f" of {limits.trials}" if limits.trials is not None else ""
    opened = sum(a.is_open for a in session.attempts)
    gain = f"; kernels {before:.3f} -> {after:.3f} ms, {before / after:.2f} times as fast" if after else ""
    return f"{session.phase}: {opened} of {len(session.attempts)} tasks, {session.trials}{of} trials, {session.elapsed:.0f} s{left}{gain}"
