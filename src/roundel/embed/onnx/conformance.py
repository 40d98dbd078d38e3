# SPDX-License-Identifier: Apache-2.0
"""Any ONNX model on given inputs: import, compile with little effort, run. What conformance suites and fuzzers call.

Values that must be known to compile (axes, shapes that cannot be left open) may be given as inputs: where the import refuses
for that reason alone, small inputs are taken as constants and the model is compiled for these values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from ...driver import compile_module
from ...frontend.onnx.model import from_onnx
from ...frontend.onnx.values import UnsupportedDataError
from ...ir import options
from ...ir.module import IRModule

_SMALL = 64


def run(model: Any, inputs: Sequence[Any]) -> list[Any]:
    """Outputs of an ``onnx.ModelProto`` for inputs in graph order (those with an initializer left out)."""
    with options.override(accuracy="strict"):
        mod, left = imported(model, inputs)
        main = compile_module(mod).load()["main"]
    out = main(*left)
    results = [out] if len(model.graph.output) == 1 else out
    return [_value(v, info.type) for v, info in zip(results, model.graph.output, strict=True)]


def imported(model: Any, inputs: Sequence[Any]) -> tuple[IRModule, list[Any]]:
    """The module for inputs as ``run`` takes them, and those that it takes when it runs: the others have become constants."""
    initial = {t.name for t in model.graph.initializer}
    infos = [i for i in model.graph.input if i.name not in initial]
    given = {i.name: numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for i, v in zip(infos, inputs, strict=True)}
    mod, fixed = _import(model, given)
    return mod, [v for name, v in given.items() if name not in fixed and v is not None]


def load(model: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """``run(inputs) -> outputs`` of a model file, compiled once: inputs in graph order (those with an initializer left out)."""
    main = compile_module(from_onnx(model)).load()["main"]

    def run(inputs: Sequence[Any]) -> list[Any]:
        out = main(*inputs)
        return list(out) if isinstance(out, tuple | list) else [out]

    return run


def _value(result: Any, kind: Any) -> Any:
    """A result as the suite wants it: sequences as lists, empty optionals as None."""
    if kind.HasField("optional_type"):
        inner = kind.optional_type.elem_type
        empty = isinstance(result, tuple) and not result and not inner.HasField("sequence_type")
        return None if empty else _value(result, inner)
    return list(result) if kind.HasField("sequence_type") else result


def _import(model: Any, given: dict[str, Any]) -> tuple[IRModule, dict[str, Any]]:
    shapes = {name: _shape(v) for name, v in given.items()}
    refusal: UnsupportedDataError | None = None
    guessed: tuple[IRModule, dict[str, Any]] | None = None
    for fixed in _choices(given):
        try:
            mod = from_onnx(model, shapes=shapes, constants=fixed)
        except UnsupportedDataError as error:
            refusal = refusal or error
            continue
        if "decided_branches" not in mod["main"].attrs:
            return mod, fixed
        guessed = guessed or (mod, fixed)
    if guessed is not None:
        return guessed
    assert refusal is not None
    raise refusal


def _shape(value: Any) -> Any:
    return None if value is None else [_shape(v) for v in value] if isinstance(value, list | tuple) else np.shape(value)


def _choices(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Which inputs to fix: none; small lists of integers; all small lists and scalars; all."""
    yield {}
    lists = {n: np.asarray(v) for n, v in given.items() if isinstance(v, np.ndarray) and v.ndim <= 1 and v.size <= _SMALL}
    yield {n: v for n, v in lists.items() if v.dtype.kind in "iu"}
    yield lists
    yield {n: np.asarray(v) for n, v in given.items() if isinstance(v, np.ndarray) and v.dtype.kind in "biuf"}
