# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of modules that are being exported: each is one operator, whose result has as many steps as its input, whatever their number.

PyTorch has no such form of its recurrent operators. It computes the shapes of their results by taking the layers apart into steps, which fixes the
number of steps. Here ``torch.nn.LSTM``, ``GRU`` and ``RNN`` call operators ``roundel::lstm.input`` etc. meanwhile, with the names and parameters of
PyTorch's own.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

_REST = "Tensor[] params, bool has_biases, int layers, float dropout, bool train, bool bidirectional, bool batch_first"
_SCHEMAS = {"lstm": f"(Tensor x, Tensor[] hx, {_REST}) -> (Tensor, Tensor, Tensor)",
            **{name: f"(Tensor x, Tensor hx, {_REST}) -> (Tensor, Tensor)" for name in ("gru", "rnn_tanh", "rnn_relu")}}
_library = torch.library.Library("roundel", "FRAGMENT")
_exporting: ContextVar[bool] = ContextVar("exporting", default=False)
_lock = threading.Lock()
_within = 0  # exports at this moment, of all threads


@contextmanager
def open_steps() -> Iterator[None]:
    """Within, modules that this thread exports may leave the number of steps of their recurrent layers open."""
    _installed(1)
    token = _exporting.set(True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"The tensor attributes?.*\b_flat_weights\b")  # that layers assign to themselves what they have
            yield
    finally:
        _exporting.reset(token)
        _installed(-1)


def _installed(more: int) -> None:
    """The functions that ``torch.nn`` calls are exchanged as long as any thread exports."""
    global _within
    with _lock:
        before, _within = _within, _within + more
        for name in _SCHEMAS:
            if not before:
                setattr(torch._VF, name, _chosen(name))
            elif not _within:
                delattr(torch._VF, name)


def _chosen(name: str) -> Callable[..., Any]:
    """PyTorch's function, or the operator where this thread exports; sequences of different lengths (packed ones) go to PyTorch's."""

    def call(x: Any, hx: Any, params: Any, *rest: Any) -> Any:
        is_packed = isinstance(params, torch.Tensor) or isinstance(rest[0], list | tuple)
        return getattr(torch.ops.roundel if _exporting.get() and not is_packed else torch, name)(x, hx, params, *rest)

    return call


def _shapes(x: Any, hx: Any, params: Sequence[Any], has_biases: bool, layers: int, dropout: float, train: bool, bidirectional: bool,
            batch_first: bool) -> tuple[Any, ...]:
    """Results without content: the outputs of the last layer at all steps, the last states of all layers."""
    states = hx if isinstance(hx, list | tuple) else [hx]
    return (x.new_empty((*x.shape[:-1], states[0].shape[-1] * (2 if bidirectional else 1))), *(s.new_empty(s.shape) for s in states))


for _name, _schema in _SCHEMAS.items():
    _library.define(f"{_name}.input{_schema}")
    _library.impl(f"{_name}.input", getattr(torch, _name), "CompositeExplicitAutograd")
    torch.library.register_fake(f"roundel::{_name}.input", _shapes, lib=_library)
