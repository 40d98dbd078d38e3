# SPDX-License-Identifier: Apache-2.0
"""The standard's own tests of operators as WebAssembly modules in node: the same results as the standard has, or an error in words.

Without node or ziglang there is nothing to attack.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import roundel as rd
from roundel.embed.onnx.conformance import imported
from roundel.ir import options
from roundel.ir.errors import BuildError, RoundelError
from tests.node_models import FOUND, Failed, Node

from .attempts import attempts
from .emulated import cases


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` operators."""
    if FOUND is None or find_spec("ziglang") is None:
        return
    shuffled = list(cases())
    random.Random(seed).shuffle(shuffled)
    with Node() as node, tempfile.TemporaryDirectory() as folder:
        for k in attempts(range(count), start):
            case = shuffled[k % len(shuffled)]
            if wrong := _differs(case, node, Path(folder, f"{k}.wasm")):
                yield f"{case.name}: {wrong}"


def _differs(case: Any, node: Node, file: Path) -> str:
    """What is wrong with a case's results; nothing where they are those of the standard, or where the case cannot be a module."""
    inputs, want = case.data_sets[0]
    try:
        with warnings.catch_warnings(), options.override(accuracy="strict"):
            warnings.simplefilter("ignore")
            module, left = imported(case.model, inputs)
            model = rd.compile(module, target="wasm32")
    except RoundelError:
        return ""  # what is refused is refused for every machine
    if not all(isinstance(v, np.ndarray) and v.dtype.kind in "biuf" for v in [*left, *want]):
        return ""
    try:
        model.save(file)
        got = node.run(file, left)
    except BuildError as error:
        return "" if "without Python" in str(error) or "takes or gives" in str(error) else str(error)
    except Failed as error:
        return f"{error.code}: {error}"
    for a, b in zip(got, want, strict=True):
        try:
            np.testing.assert_allclose(a, b, rtol=case.rtol, atol=case.atol)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""
