# SPDX-License-Identifier: Apache-2.0
"""Arguments to measure and check a program with: random, with constants laid out as its schedule wants them, and the comparison of results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from ...runtime import tensors
from ...strategy.pack_constants import relayout
from .job import Argument, Artifact, Failure

MOST_COPIES = 256  # of the constants of a program
MOST_INDEX = 8     # integers that may be indices are below it, and below every extent
_TOLERANCE = {"float64": 1e-8, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}  # of the largest result, for sums in another order


def random_arguments(case: Sequence[Argument | int], name: str) -> list[Any]:
    """Arrays for one case, the same for the same name: floats between -1 and 1, narrow integers of all values, wide ones that are indices into
    any of the arrays."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    least = min((n for a in case if isinstance(a, Argument) for n in a.shape), default=1)
    return [aligned(_random(a, rng, max(1, min(least, MOST_INDEX)))) if isinstance(a, Argument) else a for a in case]


def _random(a: Argument, rng: np.random.Generator, below: int) -> np.ndarray:
    dtype = DType(a.dtype)
    if dtype.is_bool:
        return rng.integers(0, 2, a.shape).astype(dtype.numpy)
    if dtype.is_float:
        return rng.uniform(-1, 1, a.shape).astype(np.float32).astype(dtype.numpy)
    if dtype.bits <= 8:
        signed = not str(dtype).startswith("u")
        low = -(1 << (dtype.bits - 1)) if signed else 0
        return rng.integers(low, low + (1 << dtype.bits), a.shape).astype(dtype.numpy)
    return rng.integers(0, below, a.shape).astype(dtype.numpy)


@dataclass(eq=False)
class LaidOut:
    """The arguments of a case for all artifacts that want constants to lie alike. ``copies``: the constants by position, so often that they take as many
    bytes together as a job asks for; each call that is timed reads the next of them, whichever artifact's it is."""

    arguments: list[Any]
    copies: list[dict[int, Any]]
    next: int = 0

    @staticmethod
    def of(arguments: Sequence[Any], case: Sequence[Argument | int], artifact: Artifact, flushed_bytes: int) -> LaidOut:
        """As an artifact takes them, each array at the beginning of a line of the caches."""
        laid = laid_out(arguments, artifact)
        return LaidOut(laid, copies(laid, case, flushed_bytes))

    def timer(self, function: Any, results: Sequence[np.ndarray]) -> Callable[[int], float]:
        """The seconds of so many calls of an artifact's function, which writes to arrays of its own."""
        own = to_write(function, self.arguments, results)
        seconds = function.timer([[constants.get(k, a) for k, a in enumerate(own)] for constants in self.copies])

        def of_calls(calls: int) -> float:
            first, self.next = self.next, (self.next + calls) % len(self.copies)
            return seconds(calls, first)

        return of_calls


def laid_out(arguments: Sequence[Any], artifact: Artifact) -> list[Any]:
    """The arguments as an artifact takes them, each at the beginning of a line of the caches."""
    return [aligned(relayout(a, *artifact.layouts[k])) if k in artifact.layouts else a for k, a in enumerate(arguments)]


def aligned(array: Any) -> Any:
    """A copy that begins at a line of the caches, as all arrays of a model do."""
    if not isinstance(array, np.ndarray) or not array.size:
        return array
    return tensors.aligned_copy(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).view(array.dtype).reshape(array.shape)


def copies(arguments: Sequence[Any], case: Sequence[Argument | int], flushed_bytes: int) -> list[dict[int, Any]]:
    """The constants among arguments by position, again and again elsewhere in memory until they take ``flushed_bytes`` together."""
    given = {k: arguments[k] for k, a in enumerate(case) if isinstance(a, Argument) and a.is_constant}
    nbytes = sum(a.nbytes for a in given.values())
    count = min(-(-flushed_bytes // nbytes), MOST_COPIES) if nbytes and flushed_bytes else 1
    return [given, *({k: aligned(a) for k, a in given.items()} for _ in range(count - 1))]


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> Failure | None:
    """Why results are wrong; None where they are as near as sums in another order are."""
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        dtype = DType(b.dtype)
        if dtype.is_float:
            x, y = a.astype(np.float64), b.astype(np.float64)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            with np.errstate(invalid="ignore"):
                error, scale = np.abs(np.where(same, 0.0, x - y)).max(initial=0.0), np.abs(y[np.isfinite(y)]).max(initial=0.0)
            limit = _TOLERANCE.get(str(dtype), 0.2) * max(scale, 1e-30)
        else:  # where sums of floats are rounded to few bits, one may fall to the other side
            error, limit = np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0), 1 if 1 < dtype.bits <= 8 else 0
        if not error <= limit:
            return Failure("wrong result", f"output {k} is off by {error:.3g}, which may be {limit:.3g}")
    return None


def outputs_of(function: Any, arguments: Sequence[Any]) -> list[np.ndarray]:
    """What a program writes when it is called with copies of the arguments, or what a graph function returns."""
    if function.info.kind == "graph":
        found = function(*arguments)
        return list(found) if isinstance(found, tuple) else [found]
    positions = output_positions(function)
    args = [aligned(a) if k in positions else a for k, a in enumerate(arguments)]
    function(*args)
    return [args[k] for k in positions]


def output_positions(function: Any) -> list[int]:
    """Which of its arguments a program writes."""
    count = len(function.info.inputs)
    return [k for k, a in enumerate(function.info.arguments) if isinstance(a, int) and a >= count]


def to_write(function: Any, arguments: Sequence[Any], results: Sequence[np.ndarray]) -> list[Any]:
    """The arguments for calls that are timed, with arrays of their own for what is written: behind the others for a graph function."""
    if function.info.kind == "graph":
        return [*arguments, *map(aligned, results)]
    positions = output_positions(function)
    return [aligned(a) if k in positions else a for k, a in enumerate(arguments)]
