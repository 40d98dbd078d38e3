# SPDX-License-Identifier: Apache-2.0
"""Models that have many of something: the processor time to compile them grows about as their size does, and their results are right.

``count`` is the size. Each kind of model is compiled in a process of its own, at a quarter of the size and at the whole of it.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np

from roundel.driver import compile_module
from roundel.frontend.onnx import from_onnx
from roundel.ir import options

POWER = 1.3  # the time may grow with this power of the size
UNNOTICED = 1.0  # seconds in which any compilation may be done


def attack(count: int, seed: int) -> Iterator[str]:
    """All kinds of models of size ``count``; they are the same for each seed."""
    from .wide_models import KINDS

    for kind in KINDS:
        small, large = (_in_child(kind, max(n, 40)) for n in (count // 4, count))
        if isinstance(small, str) or isinstance(large, str):
            yield f"{kind} of {count}: {small if isinstance(small, str) else large}"
        elif large > UNNOTICED and (power := log(large / small) / log(4)) > POWER:
            yield f"{kind}: {small:.2f} s of processor time for {count // 4}, {large:.2f} s for {count}, so it grows with the power {power:.2f}"


def compiled(kind: str, n: int) -> float:
    """Seconds of processor time to import and compile a model; raises AssertionError for a wrong result."""
    from .wide_models import KINDS

    model, inputs, expected = KINDS[kind](n)
    with options.override(cache=False, workers=1, rates="table"):
        begun = time.process_time()
        built = compile_module(from_onnx(model))
        spent = time.process_time() - begun
        got = built.load(threads=1)["main"](*inputs)
    got = got[0] if isinstance(got, tuple | list) else got
    assert expected is None or np.allclose(np.asarray(got), expected, rtol=1e-4), "the result is wrong"
    return spent


def _in_child(kind: str, n: int) -> float | str:
    """Seconds, or what went wrong."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_tell, args=(theirs, kind, n))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "the process died"
    finally:
        child.join()


def _tell(pipe: Any, kind: str, n: int) -> None:
    try:
        pipe.send(compiled(kind, n))
    except BaseException:
        pipe.send(traceback.format_exc()[-1500:])
