# SPDX-License-Identifier: Apache-2.0
"""Modules of TVM that are modules of Roundel, so that ``from roundel.compat.tvm.relax.dpl import ...`` finds them; names that are missing."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

MODULES = {
    "tirx": "roundel.compat.tvm.tir", "s_tir.meta_schedule": "roundel.compat.tvm.meta_schedule",
    **{f"s_tir.meta_schedule.{name}": f"roundel.compat.tvm.meta_schedule.{name}" for name in ("relax_integration", "space_generator", "tir_integration")},
    **{f"script.{parser}{name}": f"roundel.script.{home}" for parser in ("", "parser.") for name, home in
       {"tir": "tir", "tirx": "tir", "relax": "relax", "ir": "ir"}.items()},
    **{f"dlight{name}": f"roundel.compat.tvm.s_tir.dlight{name}" for name in ("", ".base", ".analysis", ".gpu", ".cpu", ".base.schedule_rule",
                                                                              ".base.transform")},
    "relax.dpl": "roundel.relax.dpl", "relax.dpl.pattern": "roundel.relax.dpl",
    "relax.expr_functor": "roundel.relax.expr_functor", "relax.frontend.nn": "roundel.relax.frontend.nn",
    **{f"relax.frontend.nn.{name}": f"roundel.relax.frontend.nn.{name}" for name in ("core", "op", "spec", "llm", "llm.kv_cache")},
    "relax.training.loss": "roundel.training.loss", "relax.training.optimizer": "roundel.training.optimizer",
    "relax.expr": "roundel.relax", "relax.struct_info": "roundel.relax",
    "tir.transform": "roundel.compat.tvm.tir_transform", "s_tir.transform": "roundel.compat.tvm.tir_transform",
    "tirx.transform": "roundel.compat.tvm.tir_transform",
    "tir.analysis": "roundel.tir.analysis", "tir.stmt_functor": "roundel.tir.stmt_functor", "tir.schedule": "roundel.schedule",
    "tirx.analysis": "roundel.tir.analysis", "tirx.stmt_functor": "roundel.tir.stmt_functor", "s_tir.schedule": "roundel.schedule",
}
"""Each is one module under both names."""
OPERATORS = {"dense": "linear", "nn.dense": "linear", "relu": "nn.relu", "softmax": "nn.softmax", "transpose": "permute_dims"}
"""What operators were called in 2022, and what they are called now."""


def install(package: str) -> None:
    """Let the import system find them under ``package``."""
    for name, home in MODULES.items():
        if find_spec(home) is not None:
            sys.modules[f"{package}.{name}"] = import_module(home)


def missing(full: str, name: str) -> AttributeError:
    """What is raised for a name of TVM's that has no counterpart here."""
    if name.startswith("__"):
        return AttributeError(name)
    return AttributeError(f"Roundel has nothing under the name {full}; docs/from-tvm.md lists TVM's names with what to use here")
