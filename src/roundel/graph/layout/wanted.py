# SPDX-License-Identifier: Apache-2.0
"""Which values go to convolutions in blocks of channels alone, by way of operators that work in blocks too.

Such a value may as well come into blocks before these operators as after them: a picture that is enlarged is smaller before, what joins tensors
then reads and writes whole vectors, and a resampled pixel is a few vectors instead of a place to be looked up for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...ir import graph
from ..rewriter import operands


def wanted_in_blocks(func: graph.Function, takes_blocks: Callable[[graph.Call], bool], keeps: Callable[[graph.Call], bool]) -> frozenset[graph.Var]:
    """The variables of a function all of whose uses are the data of calls for which ``takes_blocks`` holds, or operands of calls that ``keeps``
    the layout and whose results are wanted in blocks themselves."""
    bindings = [b for block in func.body.blocks for b in block.bindings]
    used: set[graph.Var] = set()
    otherwise: set[graph.Var] = set(variables(func.body.body))
    for binding in reversed(bindings):
        value, inside = binding.value, isinstance(binding.var, graph.DataflowVar)
        read = set(variables(value))
        if isinstance(value, graph.Call) and takes_blocks(value):
            otherwise |= read - {value.args[0]}
        elif not (inside and isinstance(value, graph.Call) and keeps(value) and binding.var in used - otherwise):
            otherwise |= read
        used |= read
    return frozenset(used - otherwise)


def variables(value: Any) -> Iterator[graph.Var]:
    """Those that a value is made of."""
    for part in operands(value) if not isinstance(value, graph.Var) else [value]:
        if isinstance(part, graph.Var):
            yield part
        elif isinstance(part, graph.Tuple | graph.SeqExpr):
            yield from variables(part)
