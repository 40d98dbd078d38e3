# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend.torch.fx_translator``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ......ir.module import IRModule
from .exported_program_translator import from_exported_program


def from_fx(model: Any, input_info: Sequence[tuple[Sequence[int], str]], *, keep_params_as_input: bool = False, **_: Any) -> IRModule:
    """The module of what `torch.fx.symbolic_trace` gives, for inputs of these shapes and types: it is exported by `torch.export`"""
    import torch

    inputs = tuple(torch.zeros(tuple(shape), dtype=getattr(torch, str(dtype))) for shape, dtype in input_info)
    return from_exported_program(torch.export.export(model, inputs), keep_params_as_input=keep_params_as_input)


__all__ = ["from_fx"]
