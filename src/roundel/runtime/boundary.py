# SPDX-License-Identifier: Apache-2.0
"""What a model's signature means beyond tensors of real numbers: complex tensors, which compiled code takes as pairs along a last
axis, strings, which it takes as numbers, sequences of any length, which it takes as rows of one tensor, maps, and inputs that the model
changes (compiled code returns their new content, written back here).

A function's ``extra`` says where: ``complex_inputs``, ``complex_outputs``, ``text_inputs``, ``text_outputs`` (positions; ``texts`` are the
strings that the model may give by itself), ``maps`` ((output, keys): its rows become dictionaries), ``sequence_inputs`` ((input, type,
shape of an item...)), ``sequence_outputs`` and ``updates`` ((output, input) pairs; these outputs come last).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.errors import CallError
from . import objects, tensors, text


def take(flat: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The arguments as compiled code takes them."""
    out = objects.take(flat, extra)
    for k, dtype, *item in extra.get("sequence_inputs", ()):
        out[k] = _stacked(out[k], dtype, item)
    for k in extra.get("complex_inputs", ()):
        out[k] = _parts(out[k])
    for k in extra.get("text_inputs", ()):
        out[k] = text.numbers_of(out[k])
    return out


def give(results: list[Any], flat: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The results that the caller gets; changed inputs are written."""
    results = objects.give(results, extra)
    for k in extra.get("complex_outputs", ()):
        results[k] = _whole(results[k])
    for k in extra.get("text_outputs", ()):
        results[k] = text.strings_of(results[k])
    for k in extra.get("sequence_outputs", ()):
        results[k] = list(results[k])
    for k, keys in extra.get("maps", ()):
        results[k] = [dict(zip(keys, row, strict=True)) for row in np.atleast_2d(np.asarray(results[k])).tolist()]
    updates = extra.get("updates", ())
    for k, i in updates:
        _write(flat[i], results[k])
    return results[: len(results) - len(updates)]


def entries(value: Mapping[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Keys and values of a map as compiled code takes them, in the order of the keys."""
    keys = sorted(value)
    return keys, [value[k] for k in keys]


def _stacked(items: Any, dtype: str, item: Sequence[int]) -> Any:
    """A sequence as one tensor with a row for each item; raises CallError for items of different shapes."""
    if not isinstance(items, list | tuple):
        return items
    if not items:
        return np.zeros((0, *(max(d, 0) for d in item)), DType(dtype).numpy)
    shapes = {tuple(np.shape(v)) for v in items}
    if len(shapes) > 1:
        raise CallError(f"the items of a sequence have different shapes: {', '.join(map(str, sorted(shapes)))}",
                        hint="compile the model for these: rd.onnx.from_onnx(model, shapes={name: [shape of each item]})")
    torch = tensors.torch_of(items)
    return np.stack(items) if torch is None else torch.stack([torch.as_tensor(v) for v in items])


def _parts(value: Any) -> Any:
    torch = tensors.torch_module(value)
    if torch is not None:
        return torch.view_as_real(value.resolve_conj().resolve_neg()) if value.is_complex() else value
    value = np.asarray(value)
    return np.ascontiguousarray(value)[..., None].view(value.real.dtype) if value.dtype.kind == "c" else value


def _whole(value: Any) -> Any:
    torch = tensors.torch_module(value)
    if torch is not None:
        return torch.view_as_complex(value)
    return value.view(np.result_type(value.dtype, np.complex64))[..., 0]


def _write(target: Any, value: Any) -> None:
    if tensors.torch_module(target) is not None:
        target.copy_(value if tensors.torch_module(value) is not None else tensors.torch_module(target).from_numpy(value))
    elif isinstance(target, np.ndarray):
        target[...] = value
    else:
        raise CallError(f"the model changes an input, which was given as {type(target).__name__}", hint="pass an array or a tensor that can be written")
