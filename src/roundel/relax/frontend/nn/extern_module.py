# SPDX-License-Identifier: Apache-2.0
"""Functions of other code in a model: called by name, destination passing, known to the FFI when the model runs (`rd.register_func`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import op
from .core import Module, Tensor


class ExternModule(Module):
    """``symbols`` maps the name of a function to a function of its operands that tells its results, as ``Tensor.placeholder``."""

    def __init__(self, symbols: Mapping[str, Callable[..., Any]]) -> None:
        self.symbols = dict(symbols)

    def __getitem__(self, name: str) -> Callable[..., Tensor]:
        """The function of this name, of tensors. Raises KeyError."""
        told = self.symbols[name]
        return lambda *args: op.extern(name, args, told(*args))


__all__ = ["ExternModule"]
