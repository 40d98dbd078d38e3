# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight``: schedules by rules. Those of ``gpu`` bind threads, for targets that are no processor; those of ``cpu`` are the compiler's own."""

from . import analysis, base, cpu, gpu
from .base import ApplyDefaultSchedule, ScheduleRule

__all__ = ["ApplyDefaultSchedule", "ScheduleRule", "analysis", "base", "cpu", "gpu"]
