# SPDX-License-Identifier: Apache-2.0
"""Measuring where Roundel is not: on a board that ssh reaches, or in an emulator of one.

Each candidate becomes a program of its own for that machine, which is called by turns with the others, as candidates are in a process here. A
program that crashes, never ends or takes all memory is a failure, as here. In an emulator times tell how many instructions the emulator had to
work off, and of caches and ports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...boards import Board, RemoteModel
from ...boards.board import ProgramError
from ...ir.errors import RoundelError
from ...target import Target, TargetLike
from .arrays import output_positions
from .build import linkable
from .job import Artifact, Failure, Job
from .process import Lost
from .race import Place, race
from .runner import MEMORY, RUN_SECONDS, Asked, LocalRunner

EMULATOR = 1 << 30  # bytes of addresses that an emulator takes for itself


class BoardRunner(LocalRunner):
    """Measures on a ``board`` (a `Board`, or its text: ``ssh://pi@pi5``, ``qemu-aarch64-static``) programs for ``target``. ``seconds``: the time limit of
    a candidate; ``memory``: what it may take, in bytes. Raises OptionError for a board or target that is none."""

    is_here = False

    def __init__(self, board: Board | str, target: TargetLike, seconds: float = RUN_SECONDS, memory: int = MEMORY) -> None:
        super().__init__(seconds, memory)
        self.board, self.target = board if isinstance(board, Board) else Board.of(board), Target(target)

    def _for(self, job: Job) -> Asked:
        return _OnBoard(replace(self.board, memory=self.memory + 8 * job.nbytes + EMULATOR))


class _OnBoard:
    """Stands for the process that measures: what it does, it does on a board."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def ask(self, kind: str, *arguments: Any, seconds: Callable[[Any], float]) -> Any:
        """As `Process`, for races alone. Raises Lost."""
        at: Any = None

        def tell(what: Any) -> None:
            nonlocal at
            at = what

        def failed(failure: Failure) -> Lost:
            return Lost(failure, at)

        there = Place(lambda artifact, threads: _Function(artifact, threads, self.board, lambda: seconds(at), failed), lambda run, threads: (run(), True))
        try:
            return race(*arguments, tell=tell, place=there)
        except (RoundelError, OSError) as error:
            raise failed(Failure("error", str(error))) from error


class _Function:
    """The function of an artifact as a race uses it (`roundel.runtime.executable.BoundFunction`): each call is a process on the board."""

    def __init__(self, artifact: Artifact, threads: int, board: Board, limit: Callable[[], float], failed: Callable[[Failure], Lost]) -> None:
        built = linkable(artifact)
        self.info, self._limit, self._failed = built.functions[0].info, limit, failed
        built.capture()
        facts = {"triple": built.spec.triple}
        model = SimpleNamespace(function=self, inputs=self.info.inputs, outputs=self.info.outputs, metadata=facts, save=built.save)
        self._there = RemoteModel(model, board, threads=threads)

    def __call__(self, *arguments: Any) -> None:
        for position, found in zip(output_positions(self), self._run(arguments, 1)[0], strict=True):
            arguments[position][...] = found

    def timer(self, sets: Sequence[Sequence[Any]]) -> Callable[..., float]:
        """The seconds of so many calls in one process, without the first, which finds the caches empty."""
        return lambda calls, first=0: float(self._run(sets[first % len(sets)], calls + 1)[1][1:].sum())

    def _run(self, arguments: Sequence[Any], calls: int) -> tuple[list[np.ndarray], np.ndarray]:
        inputs = [np.asarray(a) for k, a in zip(self.info.arguments, arguments, strict=True) if isinstance(k, int) and k < len(self.info.inputs)]
        self._there.timeout = self._limit()
        try:
            return self._there.run(inputs, calls)
        except ProgramError as error:
            kind = "time limit" if error.is_late else "crash"
            raise self._failed(Failure(kind, error.signal or error.why or error.what)) from error
