# SPDX-License-Identifier: Apache-2.0
"""Any PyTorch module as a function of arrays: exported and compiled at its first call. What suites of real models call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...driver import compile_module
from ...frontend.torch.export import from_torch
from ...ir.errors import CallError


def load(module: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """``run(inputs) -> outputs`` of a module in eval mode: one artifact with every dimension that torch.export can leave open,
    made at the first call; shapes outside its range make another."""
    artifacts: list[Any] = []

    def run(inputs: Sequence[Any]) -> list[Any]:
        for main in artifacts:
            try:
                return _results(main(*inputs))
            except CallError:
                continue
        arguments = tuple(torch.from_numpy(x) for x in inputs)
        artifacts.append(compile_module(from_torch(module, arguments, dynamic_shapes=True)).load()["main"])
        return _results(artifacts[-1](*inputs))

    return run


def _results(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple | list) else [out]
