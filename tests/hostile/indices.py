# SPDX-License-Identifier: Apache-2.0
"""Indices out of range, in every operator that takes positions from data: an error or the right result, and no byte outside of any tensor.

Every input and output lies between pages that may not be touched, right before or right behind one, in a process of its own: a signal is
a finding. Models are compiled once, for all sizes; each attempt draws sizes, indices and where the tensors lie.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np

from . import index_subjects
from .guarded import Pool

ROUND = 500  # attempts on one operator before the next
MANY = 5000  # attempts from which on each variant of an operator has some
_DEATHS = 5  # after so many the attack ends


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` attempts over all subjects, those of one after another."""
    yield from in_processes(__name__, count, seed)


def in_processes(module: str, count: int, seed: int) -> Iterator[str]:
    """The attempts of a module, whose ``main`` makes them; a process that ends is a finding, the next goes on."""
    with tempfile.TemporaryDirectory() as folder:
        place, deaths, start = Path(folder) / "attempt", 0, 0
        while start < count and deaths < _DEATHS:
            command = [sys.executable, "-m", module, str(start), str(count), str(seed), str(place)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
            yield from done.stdout.splitlines()
            if done.returncode == 0:
                return
            deaths += 1
            number, name = place.read_text().split(" ", 1) if place.exists() else ("-1", "before the first attempt")
            yield f"{name.strip()}: the process ended with {done.returncode} in attempt {number}: {done.stderr.strip()[-300:]}"
            start = int(number) + 1 if int(number) >= 0 else count


def attempts(start: int, count: int, seed: int, place: Path, subjects: Sequence[index_subjects.Subject]) -> Iterator[str]:
    """The attempts from ``start`` on, in this process; ``place`` says which one is being made."""
    pool = Pool()
    each = min(ROUND, -(-count // len(subjects)))
    models: dict[str, object] = {}
    with place.open("w") as progress:
        for number in range(start, count):
            subject = subjects[number // each % len(subjects)]
            progress.seek(0)
            progress.write(f"{number} {subject.name}" + " " * 60)
            progress.flush()
            if subject.name not in models:
                models.clear()
                try:
                    models[subject.name] = subject.compile()
                except Exception:  # a finding, once
                    models[subject.name] = None
                    yield f"{subject.name}: attempt {number}: not compiled: {traceback.format_exc()[-500:]}"
            if models[subject.name] is None:
                continue
            finding = attempt(subject, models[subject.name], np.random.default_rng((seed, number)), pool)
            if finding:
                yield f"{subject.name}: attempt {number}: {finding}"


def attempt(subject: index_subjects.Subject, model: object, rng: np.random.Generator, pool: Pool) -> str | None:
    """One call; what is wrong with it."""
    import roundel as rd
    from roundel.runtime import tensors

    inputs, reference = subject.case(rng)
    pool.reset(bool(rng.integers(2)))
    given = [pool.copy(np.asarray(a)) for a in inputs]
    shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in inputs)
    prescribed, wanted = True, None
    try:
        wanted = reference()
    except index_subjects.Unprescribed:
        prescribed = False
    except (IndexError, ValueError):
        pass
    try:
        with patch.object(tensors, "empty", pool.empty):
            got = model(*given)  # type: ignore[operator]
    except rd.RoundelError as error:
        if wanted is not None:
            return f"an error for what is right: {error} ({shown})"
        return None if "\n" not in str(error).strip() or len(str(error)) < 2000 else f"a long error: {error}"
    except Exception:  # anything else is a finding
        return f"{traceback.format_exc()} ({shown})"
    if wanted is None and prescribed:
        return f"a result for what is out of range ({shown})"
    got = got if isinstance(got, tuple) else (got,)
    for a, b in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=False) if prescribed else ():
        if np.asarray(a).shape != b.shape or not np.allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"another result than the reference ({shown})"
    if not all(np.array_equal(a, np.asarray(b), equal_nan=b.dtype.kind == "f") for a, b in zip(given, map(np.asarray, inputs), strict=True)):
        return f"an input was changed ({shown})"
    return None


def main(subjects: Sequence[index_subjects.Subject]) -> None:
    """The attempts that the command line asks for."""
    for line in attempts(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), subjects):
        print(line.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(index_subjects.subjects() if int(sys.argv[2]) >= MANY else index_subjects.fewer_subjects())
