# SPDX-License-Identifier: Apache-2.0
"""Decisions that a sketch leaves open: named integer variables over a finite domain, with what arithmetic may know of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from roundel.arith import numpy_function
from roundel.ir import Var, free_vars, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Expr

OPEN = "open"  # in place of a decision: sampled values stay variables of the program
MAX_ROWS = 1_000_000  # of a joint domain that is looked through


@dataclass(frozen=True, eq=False)
class Decision:
    """``variables`` take the values of one row of ``domain`` together; a trace records ``choices[row]`` for it."""

    name: str
    variables: tuple[Var, ...]
    domain: np.ndarray  # int64, rows by variables
    choices: Sequence[Any]
    facts: tuple[Expr, ...]

    def __len__(self) -> int:
        return len(self.domain)


def tile_decision(name: str, extent: int, rows: Sequence[Sequence[int]]) -> Decision:
    """Factors of a loop's extent."""
    domain = np.array(rows, dtype=np.int64)
    variables = _variables(name, domain)
    product = tir.eq(tir.product_of(list(variables)), extent)
    return Decision(name, variables, domain, [list(r) for r in rows], (product, *_ranges(variables, domain)))


def categorical_decision(name: str, candidates: Sequence[int]) -> Decision:
    """One number out of several; the trace records its position."""
    domain = np.array(candidates, dtype=np.int64).reshape(-1, 1)
    variables = _variables(name, domain)
    step = reduce(math.gcd, (int(c) for c in candidates))
    divides = (tir.eq(variables[0] % step, 0),) if step > 1 else ()
    return Decision(name, variables, domain, range(len(candidates)), (*_ranges(variables, domain), *divides))


def _variables(name: str, domain: np.ndarray) -> tuple[Var, ...]:
    count = domain.shape[1]
    return tuple(Var(name if count == 1 else f"{name}_{k}", tir.index_const(0).dtype, True) for k in range(count))


def _ranges(variables: Sequence[Var], domain: np.ndarray) -> tuple[Expr, ...]:
    return tuple(c for v, column in zip(variables, domain.T) for c in (v >= int(column.min()), v <= int(column.max())))


def joint(decisions: Sequence[Decision]) -> dict[Var, np.ndarray]:
    """Columns with every combination of the decisions' rows."""
    places = np.unravel_index(np.arange(math.prod(map(len, decisions))), [len(d) for d in decisions])
    return {v: d.domain[at, k] for d, at in zip(decisions, places) for k, v in enumerate(d.variables)}


def holds_always(decisions: Sequence[Decision], condition: Expr) -> bool:
    """Whether a condition on open decisions alone holds for every choice, by trying all (False where there are too many)."""
    mentioned = free_vars(condition)
    mine = [d for d in decisions if mentioned & set(d.variables)]
    if not mine or mentioned - {v for d in mine for v in d.variables} or math.prod(map(len, mine)) > MAX_ROWS:
        return False
    columns = joint(mine)
    return bool(np.all(numpy_function([condition], list(columns))(*columns.values())[0]))
