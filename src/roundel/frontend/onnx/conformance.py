# SPDX-License-Identifier: Apache-2.0
"""Any ONNX model on given inputs: import, compile with little effort, run. What conformance suites and fuzzers call.

Values that must be known to compile (axes, shapes that cannot be left open) may be given as inputs: where the import refuses
for that reason alone, small inputs are taken as constants and the model is compiled for these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...driver import compile_module
from ...ir.module import IRModule
from .importer import DataDependentError, from_onnx

_SMALL = 64


def run(model: Any, inputs: Sequence[Any]) -> list[Any]:
    """Outputs of an ``onnx.ModelProto`` for inputs in graph order (those with an initializer left out)."""
    initial = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in initial]
    given = {i.name: v for i, v in zip(infos, inputs, strict=True)}
    mod, fixed = _import(model, given)
    main = compile_module(mod).load()["main"]
    out = main(*(v for name, v in given.items() if name not in fixed))
    return list(out) if isinstance(out, tuple | list) else [out]


def _import(model: Any, given: dict[str, Any]) -> tuple[IRModule, dict[str, Any]]:
    shapes = {name: np.shape(v) for name, v in given.items()}
    refusal: DataDependentError | None = None
    for fixed in _choices(given):
        try:
            return from_onnx(model, shapes=shapes, constants=fixed), fixed
        except DataDependentError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _choices(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Which inputs to fix: none; small lists of integers; all small lists and scalars; all."""
    yield {}
    lists = {n: np.asarray(v) for n, v in given.items() if isinstance(v, np.ndarray) and v.ndim <= 1 and v.size <= _SMALL}
    yield {n: v for n, v in lists.items() if v.dtype.kind in "iu"}
    yield lists
    yield {n: np.asarray(v) for n, v in given.items() if isinstance(v, np.ndarray) and v.dtype.kind in "biuf"}
