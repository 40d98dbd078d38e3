# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines. Observers see what is to be seen of it (time, programs, correctness), from outside the passes."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ..ir.errors import RoundelError
from ..ir.module import IRModule
from .progress import report
from .registry import flatten, name_of

_log = logging.getLogger("roundel.passes")


class Observer:
    """Told of every pass of a run; subclasses override what they need."""

    def begin(self, mod: IRModule) -> None:
        """Before the first pass."""

    def before(self, name: str, mod: IRModule) -> None:
        """A pass is about to run."""

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        """A pass has run; ``before is after`` when it changed nothing."""

    def end(self, mod: IRModule) -> None:
        """After the last pass."""


def run(
    mod: IRModule, pipeline: Iterable[Any], *, observers: Sequence[Observer] = (), verify: bool = False
) -> IRModule:
    """Apply passes (functions, registered names or nested lists of them) in order.

    ``verify`` adds an observer that interprets the module before and after each pass; raises VerifyError naming the
    first pass after which results differ.
    """
    watching = list(observers)
    if verify:
        from .verify import Verify

        watching.append(Verify())
    for o in watching:
        o.begin(mod)
    for p in flatten(pipeline):
        name = name_of(p)
        report(name.replace("_", " "))
        for o in watching:
            o.before(name, mod)
        start = time.perf_counter()
        new = p(mod)
        seconds = time.perf_counter() - start
        _log.debug("pass %s: %.4f s%s", name, seconds, ", nothing changed" if new is mod else "")
        if not isinstance(new, IRModule):
            raise RoundelError(f"pass {name} returned {type(new).__name__}, not an IRModule")
        for o in watching:
            o.after(name, mod, new, seconds)
        mod = new
    for o in watching:
        o.end(mod)
    return mod
