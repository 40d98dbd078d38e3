# SPDX-License-Identifier: Apache-2.0
"""Reductions that may have no iterations get their initial value in front of the reducing loop: inside of it, the init would never run."""

from __future__ import annotations

from ...arith import Analyzer
from ...ir import tir
from ...ir.errors import ScheduleError
from ...ir.visit import free_vars, statements
from ...schedule import Schedule


def separate_inits(sch: Schedule) -> None:
    """Put the init of every reduction whose extent is not known to be positive in front of its first reducing loop."""
    an = Analyzer()
    for realize in [n for n in statements(sch.func.body) if type(n) is tir.BlockRealize and n.block.init is not None]:
        node = realize.block
        reduce = [i for i in node.iter_vars if i.kind is tir.IterKind.REDUCE]
        if all(an.prove(tir.gt(i.dom.extent, 0)) for i in reduce):
            continue
        reducing = {v for i, value in zip(node.iter_vars, realize.iter_values, strict=True) if i in reduce for v in free_vars(value)}
        block = sch.get_block(node.name)
        loop = next((x for x in sch.get_loops(block) if sch.get(x).loop_var in reducing), None)
        if loop is not None:
            try:
                sch.decompose_reduction(block, loop)
            except ScheduleError:
                continue  # the loop is not around the block alone: the rule that put it there has seen to its init
