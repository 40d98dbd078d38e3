# SPDX-License-Identifier: Apache-2.0
"""Calls with other sizes than an operator asks for: empty, off by one, large, or all of one size changed.

An error is right unless the sizes were not changed; a result has to be that of ONNX Runtime or PyTorch where these give one. Each attempt is in
guarded memory, a signal is a finding. Of what is reduced over nothing, others say different things: there only shapes are compared.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from .guarded import Pool
from .size_subjects import Subject, drawn, subjects

ROUND = 27  # attempts on one operator before the next


def attempts(start: int, count: int, seed: int, place: Path) -> Iterator[str]:
    """The attempts from ``start`` on, in this process; ``place`` says which one is being made."""
    pool, model, last = Pool(pages=8192), None, -1
    order = np.random.default_rng(seed).permutation(len(chosen := subjects()))
    with place.open("w") as progress:
        for number in range(start, count):
            subject = chosen[order[number // ROUND % len(order)]]
            arrays, right = drawn(np.random.default_rng((seed, number)), subject)
            progress.seek(0)
            progress.write(f"{number} {subject.name} {[list(a.shape) for a in arrays]}" + " " * 200)
            progress.flush()
            if number // ROUND != last:
                last = number // ROUND
                try:
                    model = subject.compile()
                except Exception:  # a finding, once
                    model = None
                    yield f"{subject.name}: not compiled: {traceback.format_exc()[-300:]}"
            finding = attempt(subject, model, arrays, right, pool, number % 2 == 0) if model is not None else None
            if finding:
                yield f"{subject.name}: attempt {number}: {finding}"


def attempt(subject: Subject, model: Any, arrays: Sequence[np.ndarray], right: bool, pool: Pool, at_end: bool) -> str | None:
    """One call; what is wrong with it."""
    import roundel as rd
    from roundel.runtime import tensors

    pool.reset(at_end)
    given = [pool.copy(a) for a in arrays]
    shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
    try:
        with patch.object(tensors, "empty", pool.empty):
            got = model(*given)
    except rd.RoundelError as error:
        return f"an error for what is right: {error} ({shown})" if right else None
    except Exception:  # anything else is a finding
        return f"{traceback.format_exc()} ({shown})"
    got = list(map(np.array, got if isinstance(got, tuple) else (got,)))
    try:
        wanted = subject.reference(arrays)
    except Exception:  # the other implementation refuses the call, or does not know the operator
        return None
    for a, b in zip(got, map(np.asarray, wanted), strict=False):
        if a.shape != b.shape:
            return f"a result of shape {a.shape} instead of {b.shape} ({shown})"
        if all(x.size for x in arrays) and not _close(a.astype(np.float64), b.astype(np.float64)):
            return f"another result than the reference ({shown})"
    return None


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two results are alike, for sums of some hundred numbers in single precision."""
    return np.allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.nanmax(np.abs(b), initial=0, where=np.isfinite(b)))), equal_nan=True)


if __name__ == "__main__":
    for line in attempts(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])):
        print(line.replace("\n", " "), flush=True)
