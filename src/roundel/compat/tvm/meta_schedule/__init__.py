# SPDX-License-Identifier: Apache-2.0
"""``tvm.meta_schedule``: tuning, which is `rd.tune` here.

    database = ms.tune_tir(mod, target="llvm", max_trials_global=64, work_dir="tuned")
    sch = ms.tir_integration.compile_tir(database, mod, target="llvm")
"""

from typing import Any

from ..rooms import missing
from . import relax_integration, space_generator, tir_integration
from .database import Database
from .relax_integration import tune_relax
from .tir_integration import tune_tir


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.meta_schedule.{name}", name)


__all__ = ["Database", "relax_integration", "space_generator", "tir_integration", "tune_relax", "tune_tir"]
