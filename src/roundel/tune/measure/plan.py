# SPDX-License-Identifier: Apache-2.0
"""Candidates that nobody has scheduled yet, as they go to those who build: a sketch, which is sent as bytes, and a choice.

Scheduling takes about as long as building, so it is done where is built, in several processes. A sketch can be sent if its steps are a function
that another process can import (or a ``partial`` of one). Others, such as those of a template in a notebook, are scheduled where they are known.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any

from ...ir.annotations import GRAIN
from ...ir.dataclass import dataclass
from ...ir.digest import structural_digest
from ...ir.errors import ScheduleError
from ...strategy.schedule_module import finished
from ...strategy.sketch import Applied, Sketch
from .job import Source

OPENED = 32  # sketches that a process keeps


def scheduled(sketch: Sketch, choice: Mapping[str, Any]) -> Applied:
    """The program under a choice. Raises ScheduleError where a step is not legal, also where the rule made a mistake."""
    try:
        return sketch.schedule(choice)
    except ScheduleError:
        raise
    except Exception as error:
        raise ScheduleError(f"sketch {sketch.name} failed: {type(error).__name__}: {error}") from error


def source_of(sketch: str, applied: Applied) -> Source:
    """A schedule to be built, and how it wants constants laid out."""
    func = finished(sketch, applied)
    params = list(func.params)
    buffers = func.buffer_params
    layouts = {params.index(next(p for p in params if func.buffers.get(p) is buffers[k])): (m, tuple(n.value for n in buffers[k].shape))
               for k, m in applied.layouts.items()}
    return Source(func, layouts)


def identity_of(source: Source) -> str:
    """Equal for schedules that lead to one program with the same layouts, whichever sketch they are of."""
    layouts = tuple((k, repr(m.final_indices)) for k, (m, _) in sorted(source.layouts.items()))
    digest = structural_digest(source.func, without_attrs=("scheduled", "schedule_notes"))
    return hashlib.sha256(f"{digest} {layouts}".encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Plan:
    """A choice of decisions for a sketch, that of ``packed``. ``known``: identities, and keys of code, of what was built before, which
    nobody needs again.

    Its ``func`` and ``layouts`` are those of `Source`, made when they are asked for: raises ScheduleError, and RuntimeError where the sketch is not to be
    had in this process."""

    packed: bytes
    choice: Mapping[str, int]
    known: frozenset[str] = frozenset()

    @cached_property
    def source(self) -> Source:
        """The schedule."""
        sketch = unpacked(self.packed)
        return source_of(sketch.name, scheduled(sketch, self.choice))

    @property
    def func(self) -> Any:
        """As `Source`."""
        return self.source.func

    @property
    def layouts(self) -> Any:
        """As `Source`."""
        return self.source.layouts

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self.packed, self.choice, self.known)


def packed(sketch: Sketch) -> bytes | None:
    """A sketch without its tables for another process; None where it cannot be sent, or where its own steps read a grain, which only its tables tell."""
    if GRAIN in sketch.space:
        return None
    stream = io.BytesIO()
    try:
        _Packer(stream, pickle.HIGHEST_PROTOCOL).dump(replace(sketch, candidates=None, beside=None, parts=None, mutators=()))
    except Exception:  # whatever the functions of a rule refer to
        return None
    return stream.getvalue()


@lru_cache(OPENED)
def unpacked(content: bytes) -> Sketch:
    """The sketch that was sent. Raises RuntimeError where that is not possible."""
    try:
        return pickle.loads(content)
    except Exception as error:
        raise RuntimeError(f"the sketch cannot be had in another process: {type(error).__name__}: {error}") from error


class _Packer(pickle.Pickler):
    """Refuses what is of the program that was started: in another process that is another one."""

    def reducer_override(self, obj: Any) -> Any:
        """Functions and classes go by name."""
        if isinstance(obj, FunctionType | type) and obj.__module__ == "__main__":
            raise pickle.PicklingError(f"{obj.__qualname__} is not in a module")
        return NotImplemented
