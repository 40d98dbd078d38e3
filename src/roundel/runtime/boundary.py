# SPDX-License-Identifier: Apache-2.0
"""What a model's signature means beyond tensors of real numbers: complex tensors, which compiled code takes as pairs along a last
axis, strings, which it takes as numbers, and inputs that the model changes (compiled code returns their new content, written back here).

A function's ``extra`` says where: ``complex_inputs``, ``complex_outputs``, ``text_inputs``, ``text_outputs`` (positions; ``texts`` are the
strings that the model may give by itself), ``maps`` ((output, keys): its rows become dictionaries) and ``updates`` ((output,
input) pairs; these outputs come last).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.errors import CallError
from . import tensors, text


def take(flat: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The arguments as compiled code takes them."""
    out = list(flat)
    for k in extra.get("complex_inputs", ()):
        out[k] = _parts(out[k])
    for k in extra.get("text_inputs", ()):
        out[k] = text.numbers_of(out[k])
    return out


def give(results: list[Any], flat: Sequence[Any], extra: Mapping[str, Any]) -> list[Any]:
    """The results that the caller gets; changed inputs are written."""
    for k in extra.get("complex_outputs", ()):
        results[k] = _whole(results[k])
    for k in extra.get("text_outputs", ()):
        results[k] = text.strings_of(results[k])
    for k, keys in extra.get("maps", ()):
        results[k] = [dict(zip(keys, row, strict=True)) for row in np.atleast_2d(np.asarray(results[k])).tolist()]
    updates = extra.get("updates", ())
    for k, i in updates:
        _write(flat[i], results[k])
    return results[: len(results) - len(updates)]


def _parts(value: Any) -> Any:
    torch = tensors.torch_module(value)
    if torch is not None:
        return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
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
