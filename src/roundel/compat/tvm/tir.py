# SPDX-License-Identifier: Apache-2.0
"""``tvm.tir``."""

from typing import Any

from ... import tir as _tir
from ...intrinsics import TensorIntrin
from ...ir.errors import ScheduleError
from ...schedule import BlockRV, LoopRV, Schedule, Trace
from ...tir import *  # noqa: F403

SBlockRV = BlockRV

__all__ = ["BlockRV", "LoopRV", "SBlockRV", "Schedule", "ScheduleError", "TensorIntrin", "Trace"]


def __getattr__(name: str) -> Any:
    return getattr(_tir, name)
