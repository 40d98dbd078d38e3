# SPDX-License-Identifier: Apache-2.0
"""Building and measuring by executors: whatever has ``submit(function, *arguments)`` and gives futures with ``result()``.

    client = dask.distributed.Client("scheduler:8786")
    rd.tune(model, builder=ExecutorBuilder(client), runner=ExecutorRunner(client))

An executor of ``concurrent.futures`` and a client of Dask are such; `RayExecutor` makes one of Ray. Those who build and those who measure may be two of
them: machines that measure should do nothing else. In every worker what is built and run is in child processes, as on this machine, so a candidate
that crashes ends none of the executor's own.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol

from ...ir import options
from ...ir.errors import TuneError
from ...target import Target
from .job import Artifact, Failure, Job, Source, Timed, Twin
from .plan import Plan
from .race import QUICK, Effort
from .runner import LocalBuilder, LocalRunner, Runner


class Executor(Protocol):
    """Who runs functions, somewhere."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """What ``result()`` of it gives is what the function returns."""


class ExecutorBuilder:
    """Builds in the workers of an executor."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def build(self, sources: Sequence[Source | Plan], target: Target) -> list[Future[Artifact | Failure | Twin]]:
        """As `Builder` says. A worker that is lost costs the candidates that it was building."""
        settings = dict(options.shaping_code())
        return [_Answer(self.executor, _build, source, target, settings) for source in sources]

    def close(self) -> None:
        """The executor is not ours to end."""


class ExecutorRunner:
    """Measures in a worker of an executor. Several that measure at once: `RunnerPool` of as many of these."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
             effort: Effort = QUICK, seconds: float = 0.0) -> tuple[Timed, list[Timed | Failure]]:
        """As `Runner` says. Raises TuneError where no worker measures it."""
        try:
            return self.executor.submit(_race, job, reference, champion, list(challengers), effort, seconds).result()
        except RuntimeError:
            raise  # the champion cannot be run
        except Exception as error:
            raise TuneError(f"no worker measures: {type(error).__name__}: {error}",
                            hint="what was measured is in the database, and the same command goes on from there") from error

    def close(self) -> None:
        """The executor is not ours to end."""


class RunnerPool:
    """Several runners that measure at once, on machines that are alike: each gets its share of the challengers, and compares them with the champion."""

    def __init__(self, runners: Sequence[Runner]) -> None:
        self.runners = tuple(runners)
        self._threads = ThreadPoolExecutor(len(self.runners), "roundel-runner")

    def race(self, job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact],
             effort: Effort = QUICK, seconds: float = 0.0) -> tuple[Timed, list[Timed | Failure]]:
        """As `Runner` says."""
        count = min(len(self.runners), max(len(challengers), 1))
        shares = [list(challengers[k::count]) for k in range(count)]
        asked = [self._threads.submit(r.race, job, reference, champion, share, effort, seconds)
                 for r, share in zip(self.runners, shares, strict=False)]
        answers = [f.result() for f in asked]
        found: list[Any] = [None] * len(challengers)
        for k, (_, outcomes) in enumerate(answers):
            found[k::count] = outcomes
        return answers[0][0], found

    def close(self) -> None:
        """End them."""
        for runner in self.runners:
            runner.close()
        self._threads.shutdown(cancel_futures=True)


class RayExecutor:
    """Ray's workers (``ray.init`` was called). ``options``: those of a remote function, such as ``num_cpus`` or ``resources``."""

    def __init__(self, **options: Any) -> None:
        import ray

        self._remote: Callable[[Callable[..., Any]], Any] = ray.remote(**options) if options else ray.remote

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """As `Executor` says."""
        return self._remote(function).remote(*arguments).future()


class _Answer(Future):  # type: ignore[type-arg]
    """A future whose ``result`` asks that of an executor, and is a failure where a worker was lost."""

    def __init__(self, executor: Executor, *request: Any) -> None:
        super().__init__()
        try:
            self._asked = executor.submit(*request)
        except Exception as error:
            self.set_result(Failure("build", f"the executor takes nothing: {type(error).__name__}: {error}"))

    def result(self, timeout: float | None = None) -> Any:
        """Of the executor's future."""
        if not self.done():
            try:
                self.set_result(self._asked.result())
            except Exception as error:
                self.set_result(Failure("build", f"the worker is lost: {type(error).__name__}: {error}"))
        return super().result(timeout)


# --- in the workers


@cache
def _builder() -> LocalBuilder:
    made = LocalBuilder(1)
    atexit.register(made.close)
    return made


@cache
def _runner() -> LocalRunner:
    made = LocalRunner()
    atexit.register(made.close)
    return made


def _build(source: Source | Plan, target: Target, settings: dict[str, Any]) -> Artifact | Failure | Twin:
    with options.override(**settings):
        return _builder().build([source], target)[0].result()


def _race(*arguments: Any) -> tuple[Timed, list[Timed | Failure]]:
    return _runner().race(*arguments)
