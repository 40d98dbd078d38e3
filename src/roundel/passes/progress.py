# SPDX-License-Identifier: Apache-2.0
"""What a long compilation is doing: a line on a terminal that moves while it works and is gone when it is done.

Whoever does long work calls ``report``; it costs nothing where nobody watches. The option ``progress`` turns the line off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..ir import escape, options

Watcher = Callable[[str, int, int], None]
_watcher: ContextVar[Watcher | None] = ContextVar("roundel_progress", default=None)


def report(step: str, done: int = 0, total: int = 0) -> None:
    """Say what is being done, and how much of it is done where that is known."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(step, done, total)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Have ``watcher(step, done, total)`` called for all that the enclosed code reports."""
    mark = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(mark)


@contextmanager
def shown(title: str) -> Iterator[None]:
    """Show on the terminal what the enclosed code reports; nothing happens inside of another ``shown``, or without a terminal."""
    if _watcher.get() is not None or not options.get("progress") or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as line:
        task = line.add_task(escape.name(title), total=None)

        def update(step: str, done: int, total: int) -> None:
            line.update(task, description=escape.name(f"{title}: {step}"), completed=done, total=total or None)

        with watched(update):
            yield
