# SPDX-License-Identifier: Apache-2.0
"""``tvm.s_tir``: schedules of tensor programs, as TVM 0.23 and later name their room."""

from typing import Any

from .. import meta_schedule, tir
from .. import tir_transform as transform
from ..tir import BlockRV, LoopRV, SBlockRV, Schedule, ScheduleError, TensorIntrin, Trace
from . import dlight


def __getattr__(name: str) -> Any:
    return getattr(tir, name)


__all__ = ["BlockRV", "LoopRV", "SBlockRV", "Schedule", "ScheduleError", "TensorIntrin", "Trace", "dlight", "meta_schedule", "transform"]
