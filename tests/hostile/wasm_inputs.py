# SPDX-License-Identifier: Apache-2.0
"""WebAssembly models in node that are called and loaded wrongly: an error in words with a kind, never another exception, a trap or a spoilt model.

Calls have inputs of other types, sizes, shapes and classes, detached buffers, tensors that were kept by others or released, functions and outputs that there
are not; modules and weights, beside or within, are cut, changed anywhere, or another model's; memory is too small; models are disposed of before. After each
attempt a right call must give, bit by bit, what it gave before. Without node or ziglang there is nothing to attack.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from onnx import helper

import roundel as rd
from roundel.runtime import web
from tests.codegen.c_models import onnx_model
from tests.node_models import FOUND

_SECONDS = 0.5  # for an attempt
_SCRIPT = Path(__file__).with_suffix(".mjs")


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` wrong uses of one model, which has weights, sizes of its own, two types of inputs and a state that grows."""
    if FOUND is None or find_spec("ziglang") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, factor, target in (("m", 1, "wasm32"), ("other", 2, "wasm32"), ("threads", 1, "wasm32-threads"), ("within", 1, "wasm32")):
            rd.compile(_model(factor), target=target).save(Path(folder, f"{name}.wasm"), side_file=name != "within")
        loader = Path(web.__file__).parent / "roundel.mjs"
        command = [FOUND, str(_SCRIPT), str(loader), folder, str(seed), str(count), str(start)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 + _SECONDS * count, check=False)
        except subprocess.TimeoutExpired as error:
            yield f"it does not end: {error.stdout!r}"
            return
        *found, last = done.stdout.splitlines() or [""]
        yield from found
        if last != "done" or done.returncode:
            yield f"node ended with status {done.returncode}: {last} {done.stderr[-500:]}"


def _model(factor: int) -> bytes:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Cast", ["k"], ["c"], to=1), helper.make_node("Unsqueeze", ["c", "last"], ["u"]),
             helper.make_node("Add", ["a", "u"], ["y"]), helper.make_node("Slice", ["x", "zero", "three", "last"], ["s"]),
             helper.make_node("Concat", ["past", "s"], ["now"], axis=0)]
    weights = factor * np.random.default_rng(0).standard_normal((7, 50)).astype("f")
    inputs, outputs = {"x": ("f", ("n", 7)), "k": ("q", ("n",)), "past": ("f", ("p", 3))}, {"y": ("f", ("n", 50)), "now": ("f", ("p + n", 3))}
    return onnx_model(nodes, inputs, outputs, {"w": weights, "last": np.array([1]), "zero": np.array([0]), "three": np.array([3])})
