# SPDX-License-Identifier: Apache-2.0
"""What PyTorch knows of a graph's inputs and results beyond their elements: symbols, strides, offsets, shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch


class Symbols:
    """The symbols of a graph, found in what it is called with."""

    def __init__(self, values: Sequence[Any]) -> None:
        """``values``: what PyTorch knows of each input."""
        self.places: dict[Any, tuple[int, int | None]] = {}
        for k, value in enumerate(values):
            sizes = [*enumerate(value.shape)] if isinstance(value, torch.Tensor) else [(None, value)]
            for axis, s in sizes:
                if hasattr(s, "node") and s.node.expr.is_Symbol:
                    self.places.setdefault(s.node.expr, (k, axis))

    def told(self, value: Any) -> bool:
        """Whether the inputs tell a symbolic number."""
        return value.node.expr.free_symbols <= self.places.keys()

    def of(self, args: Sequence[Any]) -> dict[Any, Any]:
        """Each symbol's number in a call."""
        return {s: args[k] if axis is None else args[k].shape[axis] for s, (k, axis) in self.places.items()}


def number(value: Any, at: Mapping[Any, Any]) -> Any:
    """A (symbolic) number where symbols stand for these."""
    if not hasattr(value, "node"):
        return value
    kind = {torch.SymFloat: float, torch.SymBool: bool}.get(type(value), int)
    return kind(value.node.expr.xreplace(at))


class Layouts:
    """How the results of a graph lie in memory. Results come contiguous, each in its own memory."""

    def __init__(self, values: Sequence[Any], inputs: Sequence[Any]) -> None:
        """``values``: the tensors that PyTorch expects; ``inputs``: those of the graph, with which PyTorch itself lets results share memory."""
        self.values = values
        owners = Counter(_memory(v) for v in values)
        owners.subtract(2 * len(values) * [_memory(v) for v in inputs if isinstance(v, torch.Tensor)])
        self.shared = [_memory(v) if owners[_memory(v)] > 1 else None for v in values]
        self.plain = [s is None and _is_plain(v) for s, v in zip(self.shared, values)]
        self.all_plain = all(self.plain)

    def place(self, results: Sequence[Any], at: Mapping[Any, Any]) -> list[Any]:
        """The results where PyTorch expects them."""
        if self.all_plain:
            return list(results)
        memory: dict[Any, Any] = {}
        out = []
        for value, like, owner, plain in zip(results, self.values, self.shared, self.plain):
            stride, offset = [number(s, at) for s in like.stride()], number(like.storage_offset(), at)
            if plain or (owner is None and offset == 0 and list(value.stride()) == stride):
                out.append(value)
                continue
            if owner is not None and owner not in memory:
                memory[owner] = torch.UntypedStorage(number(like.untyped_storage().nbytes(), at))
            out.append(_placed(value, stride, offset, memory.get(owner)))
        return out


def _memory(value: Any) -> int:
    return value.untyped_storage()._cdata


def _is_plain(value: Any) -> bool:
    """Whether a tensor is known to be contiguous and to begin where its memory begins."""
    numbers = (*value.shape, *value.stride(), value.storage_offset())
    return all(isinstance(n, int) for n in numbers) and value.is_contiguous() and value.storage_offset() == 0


def _placed(value: Any, stride: Sequence[int], offset: int, memory: Any) -> Any:
    """A copy of ``value`` with these strides, at this offset of ``memory`` (or its own); elements at one place are the same."""
    shape = value.shape
    for k, s in enumerate(stride):
        value = value.narrow(k, 0, 1) if s == 0 and shape[k] > 1 else value
    if _overlaps(value.shape, stride):
        return value.expand(shape)
    if memory is None:
        end = offset + sum((n - 1) * s for n, s in zip(shape, stride)) + 1 if value.numel() else offset
        memory = torch.UntypedStorage(end * value.element_size())
    torch.empty(0, dtype=value.dtype).set_(memory, offset, value.shape, stride).copy_(value)
    return torch.empty(0, dtype=value.dtype).set_(memory, offset, shape, stride)  # no view of another tensor for PyTorch


def _overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements of a strided tensor may share memory."""
    end = 1
    for s, n in sorted((s, n) for s, n in zip(stride, shape) if n > 1):
        if s < end:
            return True
        end = s * n
    return False
