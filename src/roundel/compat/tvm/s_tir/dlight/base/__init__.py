# SPDX-License-Identifier: Apache-2.0
"""``tvm.dlight.base``: rules, and the pass that applies the first that fits."""

from ..analysis import BlockInfo, SBlockInfo, normalize_prim_func, try_inline
from .schedule_rule import ScheduleRule
from .transform import ApplyDefaultSchedule

__all__ = ["ApplyDefaultSchedule", "BlockInfo", "SBlockInfo", "ScheduleRule", "normalize_prim_func", "try_inline"]
