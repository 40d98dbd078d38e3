# SPDX-License-Identifier: Apache-2.0
"""The standard's own tests of operators on machines that emulators imitate: the same results as the standard has, and no signal.

Machines whose emulator or C compiler is not installed are left out; without any there is nothing to attack.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import roundel as rd
from roundel.boards import RemoteModel
from roundel.embed.onnx.conformance import imported
from roundel.ir import options
from roundel.ir.errors import BuildError, CallError, RoundelError
from tests.boards.machines import MACHINES, Emulated

from .attempts import attempts


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` operators, each on the next of the machines."""
    installed = [m for m in MACHINES.values() if not m.missing()]
    shuffled = list(cases())
    random.Random(seed).shuffle(shuffled)
    for k in attempts(range(count if installed else 0), start):
        case, machine = shuffled[k % len(shuffled)], installed[(k + k // len(shuffled)) % len(installed)]
        if wrong := _differs(case, machine):
            yield f"{case.name} on {machine.command}: {wrong}"


@cache
def cases() -> tuple[Any, ...]:
    """Tests of operators whose results are not random."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(c for c in load_model_tests(kind="node") if c.model is not None and not any(word in c.name for word in ("bernoulli", "random", "dropout")))


def _differs(case: Any, machine: Emulated) -> str:
    """What is wrong with a case's results; nothing where they are those of the standard, or where the case cannot be sent to a board."""
    inputs, want = case.data_sets[0]
    try:
        with warnings.catch_warnings(), options.override(accuracy="strict"):
            warnings.simplefilter("ignore")
            module, left = imported(case.model, inputs)
            model = rd.compile(module, target=machine.target)
    except RoundelError:
        return ""  # what is refused is refused for every machine
    if not all(isinstance(v, np.ndarray) and v.dtype.kind in "biuf" for v in [*left, *want]):
        return ""
    try:
        got = RemoteModel(model, machine.command, timeout=60)(*left)
    except CallError as error:
        return str(error)
    except BuildError as error:
        return "" if "without Python" in str(error) else str(error)
    for a, b in zip([got] if len(want) == 1 else got, want, strict=True):
        try:
            np.testing.assert_allclose(a, b, rtol=case.rtol, atol=case.atol)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""
