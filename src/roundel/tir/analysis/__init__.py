# SPDX-License-Identifier: Apache-2.0
"""Questions about tensor programs: effects, operations, memory, accesses, variables."""

from __future__ import annotations

from ...ir import tir
from ...ir.errors import BuildError
from ...ir.module import IRModule
from ...passes.well_formed import well_formed
from .access import OOBChecker, get_block_access_region, get_block_read_write_region, out_of_bounds
from .flops import estimate_tir_flops
from .memory import allocated_buffers, calculate_allocated_bytes, calculate_workspace_bytes
from .purity import assert_pure_function, effects, is_pure_function
from .scopes import detect_buffer_access_lca, find_anchor_block
from .variables import defined_vars, expr_deep_equal, undefined_vars, verify_ssa


class IllFormed(BuildError, ValueError):
    """A program breaks the rules of the IR."""


def verify_well_formed(program: tir.PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether a program follows the rules of the IR; raises IllFormed, which names what does not, unless ``assert_mode`` is False."""
    problems = well_formed(program if isinstance(program, IRModule) else IRModule({program.__name__: program}))
    if problems and assert_mode:
        raise IllFormed("the program is not well formed", why="; ".join(problems))
    return not problems


__all__ = [
    "IllFormed",
    "OOBChecker",
    "allocated_buffers",
    "assert_pure_function",
    "calculate_allocated_bytes",
    "calculate_workspace_bytes",
    "defined_vars",
    "detect_buffer_access_lca",
    "effects",
    "estimate_tir_flops",
    "expr_deep_equal",
    "find_anchor_block",
    "get_block_access_region",
    "get_block_read_write_region",
    "is_pure_function",
    "out_of_bounds",
    "undefined_vars",
    "verify_ssa",
    "verify_well_formed",
]
