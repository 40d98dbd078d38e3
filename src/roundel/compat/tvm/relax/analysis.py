# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.analysis``."""

from __future__ import annotations

from typing import Any

from ....ir.module import IRModule
from ....passes.well_formed import well_formed as _problems
from ....relax.analysis import *  # noqa: F403
from ..rooms import missing


def well_formed(obj: Any, check_struct_info: bool = True) -> bool:
    """Whether a module or function keeps the rules of graphs; `rd.passes.well_formed` says what is wrong"""
    return not _problems(obj if isinstance(obj, IRModule) else IRModule({"main": obj}))


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.relax.analysis.{name}", name)
