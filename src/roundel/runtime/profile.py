# SPDX-License-Identifier: Apache-2.0
"""Where the time of a model's runs goes: its kernels, timed in the model itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ..ir import escape
from ..ir.dataclass import dataclass
from ..ir.errors import CallError, OptionError
from . import columns
from .inputs import dims_of_inputs, known_dims, random_input, with_sizes

if TYPE_CHECKING:
    from .executable import BoundFunction

_FEWEST = 5  # runs


@dataclass(frozen=True)
class KernelTime:
    """A kernel in one run: how often it is called, ``milliseconds`` of all these calls, ``share`` of the time of all kernels. ``rule``: how it is
    computed; ``nodes``: those of the model that it computes (both empty where the file does not tell)."""

    kernel: str
    calls: float
    milliseconds: float
    share: float
    rule: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """What `Model.profile` measured; printed, it is a table. ``kernels``: those first that take longest, as in the fastest quarter of ``runs`` (others
    may use the machine); ``fastest``: milliseconds of a whole run there; ``milliseconds``: the median of all runs."""

    kernels: tuple[KernelTime, ...]
    milliseconds: float
    fastest: float
    runs: int
    threads: int
    called_with: str

    def __iter__(self) -> Iterator[KernelTime]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __str__(self) -> str:
        of_kernels = sum(k.milliseconds for k in self.kernels)
        rows = [columns.Row(k.kernel, (f"{k.calls:g}", f"{k.milliseconds:.4f}", f"{k.share:.1%}"), (k.rule,) if k.rule else ()) for k in self.kernels]
        told = (f"median {self.milliseconds:.4f} ms of {self.runs} runs, {self.threads} thread{'s' * (self.threads > 1)}; in the fastest quarter of them "
                f"{self.fastest:.4f} ms, of which kernels take {of_kernels:.4f}; called with {self.called_with}")
        return "\n".join([columns.table("kernel", ("calls", "ms a run", "share"), rows), "", *columns.hanging(told)])


def profiled(function: BoundFunction, threads: int, inputs: Sequence[Any] | Mapping[str, Any] | None, sizes: Mapping[str, int] | None, seconds: float,
             facts: Mapping[str, Mapping[str, Any]]) -> Profile:
    """Run a function that was opened with times of its kernels for so long. ``facts``: what its file tells of kernels, by their names."""
    checked_seconds(seconds)
    arrays = arguments(function, inputs, sizes)
    run: Callable[[], Any] = lambda: function(*arrays)
    with with_sizes(function.info.inputs, sizes or {}, inputs):
        run(), run()
    function.profile()
    runs: list[tuple[float, dict[str, tuple[int, float]]]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(runs) < _FEWEST:
        begun = time.perf_counter()
        run()
        took = time.perf_counter() - begun
        runs.append((took, function.profile()))
    best = sorted(runs, key=lambda one: one[0])[: -(-len(runs) // 4)]
    found = {name: (fmean(of[name][0] for _, of in best), fmean(of[name][1] for _, of in best)) for name in best[0][1]}
    whole = fmean(took for took, _ in best)
    if not any(calls for calls, _ in found.values()):  # a tensor program is its own and only kernel
        found = {function.info.name: (1.0, whole)}
    total = sum(spent for _, spent in found.values()) or 1.0
    kernels = [KernelTime(name, calls, spent * 1e3, spent / total, str(known.get("rule", "")), tuple(known.get("nodes", ())))
               for name, (calls, spent) in sorted(found.items(), key=lambda item: -item[1][1]) if calls for known in (facts.get(name, {}),)]
    return Profile(tuple(kernels), median(took for took, _ in runs) * 1e3, whole * 1e3, len(runs), threads, described(function, arrays))


def checked_seconds(seconds: Any) -> None:
    """Raises OptionError for what is no length of time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise OptionError(f"seconds cannot be {escape.value(seconds)}", hint="give a number, 0 or more")


def arguments(function: BoundFunction, inputs: Sequence[Any] | Mapping[str, Any] | None, sizes: Mapping[str, int] | None) -> list[Any]:
    """What a function is called with: the given inputs, in order or by name; of what is not given, random numbers of the right type and shape.
    Raises OptionError for sizes of dimensions that the inputs do not have, CallError."""
    info = function.info
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Sequence | Mapping | None):
        raise CallError(f"inputs cannot be {escape.value(inputs)}", hint="give a list of arrays, or a mapping from names to arrays")
    if not isinstance(sizes, Mapping | None):
        raise OptionError(f"sizes cannot be {escape.value(sizes)}", hint='give them by name, such as {"batch": 1}')
    expected = info.inputs if info.kind == "graph" else (*info.inputs, *info.outputs)
    known_dims(dims_of_inputs(expected), sizes or {})
    given = dict(inputs) if isinstance(inputs, Mapping) else {t.name: value for t, value in zip(expected, inputs or ())}
    hint = f"its inputs are {', '.join(t.name for t in expected)}"
    if unknown := [name for name in given if name not in [t.name for t in expected]]:
        raise CallError(f"{info.name} has no input {escape.value(unknown[0])}", hint=hint)
    if len(inputs or ()) > len(expected):
        raise CallError(f"{info.name} does not take {len(inputs or ())} inputs", hint=hint)
    learnt = dict(sizes or {})
    for t in expected:
        shape = getattr(given.get(t.name), "shape", ())
        learnt.update({d: int(n) for d, n in zip(t.shape, shape) if isinstance(d, str) and d.isidentifier()})
    return [given[t.name] if t.name in given else random_input(t, learnt, k) for k, t in enumerate(expected)]


def described(function: BoundFunction, arrays: Sequence[Any]) -> str:
    """Names, types and shapes of what a function is called with."""
    expected = (*function.info.inputs, *function.info.outputs)
    return ", ".join(f"{t.name} {t.dtype}{list(getattr(a, 'shape', ()))}" for t, a in zip(expected, arrays))
