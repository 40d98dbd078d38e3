# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend.torch``."""

from __future__ import annotations

from typing import Any

from .....ir.module import IRModule


def from_exported_program(program: Any, **options: Any) -> IRModule:
    """The module of a program that ``torch.export`` made"""
    from .....frontend.torch import from_exported_program

    return from_exported_program(program, **options)


__all__ = ["from_exported_program"]
