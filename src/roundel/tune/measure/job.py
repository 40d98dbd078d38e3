# SPDX-License-Identifier: Apache-2.0
"""What is built and measured: values that go from one process to another, so nothing in them refers to a schedule or an open library."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ...ir import tir
from ...ir.dataclass import dataclass


@dataclass(frozen=True)
class Argument:
    """An array that a program is called with: its shape before constants are laid out, and whether it is a constant."""

    shape: tuple[int, ...]
    dtype: str
    is_constant: bool = False


@dataclass(frozen=True)
class Job:
    """What all candidates of a tensor program have in common when they are measured.

    ``cases`` has the arguments of a call for each combination of sizes, in the order of the program's parameters; a number is a scalar.
    ``threads``: most threads of a call. ``flushed_bytes``: constants are read from copies that are so many bytes together, so that no cache
    has them when their turn is there again, as inside of a large model (0: they stay in the caches).
    """

    name: str
    cases: tuple[tuple[Argument | int, ...], ...]
    threads: int = 1
    flushed_bytes: int = 0

    @property
    def key(self) -> str:
        """Equal for equal jobs."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def nbytes(self) -> int:
        """Of the largest case's arrays."""
        from ...ir.dtype import DType

        def of(a: Argument | int) -> int:
            count = 1
            for n in a.shape if isinstance(a, Argument) else ():
                count *= n
            return DType(a.dtype).nbytes(count) if isinstance(a, Argument) else 0

        return max(sum(map(of, case)) for case in self.cases)


@dataclass(frozen=True)
class Source:
    """A scheduled program to be built (see `Plan` for one to be scheduled), and how it wants constants laid out: by position among the parameters the
    index map and the shape."""

    func: tir.PrimFunc
    layouts: Mapping[int, tuple[tir.IndexMap, tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Artifact:
    """A built program. ``code`` is a digest of its code. ``built`` is what `Built` holds."""

    code: str
    built: tuple[Any, ...]
    layouts: Mapping[int, tuple[tir.IndexMap, tuple[int, ...]]] = field(default_factory=dict)
    identity: str = ""  # that of the program before it was lowered, where the builder tells

    @property
    def key(self) -> str:
        """Equal where code and layouts are."""
        return code_key(self.code, self.layouts)


def code_key(code: str, layouts: Mapping[int, tuple[tir.IndexMap, tuple[int, ...]]]) -> str:
    """Equal for programs whose code and layouts of constants are equal."""
    return f"{code} {layouts_key(layouts)}"


def layouts_key(layouts: Mapping[int, tuple[tir.IndexMap, tuple[int, ...]]]) -> str:
    """Equal for equal layouts of constants."""
    return str([(k, repr(m.final_indices), shape) for k, (m, shape) in sorted(layouts.items())])


@dataclass(frozen=True)
class Failure:
    """Why something could not be built or measured. ``kind`` is one of `KINDS`."""

    kind: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}" if self.why else self.kind


@dataclass(frozen=True)
class Twin:
    """What a `Plan` has become, as a program or as code, is what was built before: ``identity`` is one of those that it knows."""

    identity: str


KINDS = ("schedule", "build", "crash", "time limit", "memory", "wrong result", "error")


@dataclass(frozen=True)
class Timed:
    """What a candidate took in a race: of each case the seconds of a call, relative to the champion in the same rounds (``ratios``), and how far
    the quartiles of its ratios lie apart, as a share of the median (``spread``). ``runs`` counts calls that were timed, ``rounds`` the rounds."""

    ratios: tuple[float, ...]
    seconds: tuple[float, ...]
    spread: float = 0.0
    runs: int = 1
    rounds: int = 1
    history: tuple[tuple[float, ...], ...] = ()  # of each case the ratios by round
