# SPDX-License-Identifier: Apache-2.0
"""The decisions of a reduction over windows, and the cycles that the model of the target expects of each combination of them.

``neighbours`` is the number of results along the last axis but one that are accumulated together, ``vectors`` the number of vectors of each.
``straight`` is the number of reduction axes, counted from the innermost, that are unrolled completely; the others stay loops. In unrolled code
neighbours share the loads of overlapping windows; a loop over the rows of a window makes less code, and can leave out rows of padding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import tir
from ...schedule.operations import data_nodes, operations
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import Access, BlockInfo, conditional, extent_of, product
from ..nest import Nest, Operand, operand
from ..times import SHARPNESS, capacities, together, traffic_cycles

MOST_NEIGHBOURS, MOST_VECTORS = 16, 8
MOST_STEPS = 64        # that are written out
MOST_CODE = 512        # operations of straight code
ASSUMED = 64           # of symbolic axes
STEP_CYCLES = 0.5      # of a loop's iteration that are not hidden
ENTRY_CYCLES = 4.0     # to start and end an inner loop
GROUP_CYCLES = 4.0     # to start and end a group of results
STORED_CYCLES = 1.0    # for each vector of results
SPILLED = 1.3          # what it costs that registers do not hold what neighbours share
EDGE = 1.02            # groups of another size are code of their own: not for less than this
BORDER = 1.05          # rows at a border are code of their own, which asks at every step, or rows that a loop leaves out
MAX_OPERATIONS = 3     # of a maximum that propagates NaN


def candidates(info: BlockInfo, lanes: int, target: Target) -> Candidates:
    """Every choice whose accumulators fit the registers."""
    last, before = extent_of(info.spatial[-1]), extent_of(info.spatial[-2]) if len(info.spatial) > 1 else 1
    narrow = last is not None and last <= lanes
    vectors = (1,) if narrow else (1, 2, 4) if last is None else range(1, min(MOST_VECTORS, -(-last // lanes)) + 1)
    neighbours = (1, 2, 4, 8) if before is None else range(1, min(MOST_NEIGHBOURS, before) + 1)

    written = _written(info)
    known = next((k for k, i in enumerate(reversed(info.reduce)) if extent_of(i) is None), len(info.reduce))
    straight = [k for k in range(known, -1, -1) if not k or written[k] > written[k - 1]]

    def legal(t: Columns) -> np.ndarray:
        chains, steps = t["neighbours"] * t["vectors"], written[t["straight"]]
        return (chains + 3 <= target.vector_registers) & ((t["straight"] == 0) | ((steps <= MOST_STEPS) & (steps * chains <= MOST_CODE)))

    table = combinations({"neighbours": neighbours, "vectors": vectors, "straight": straight}, legal)
    cycles = together(_arithmetic(info, lanes, target, table), *_traffic(info, lanes, target, table))
    return Candidates(table, cycles * _border(info, table["straight"]))


def _arithmetic(info: BlockInfo, lanes: int, target: Target, t: Columns) -> np.ndarray:
    last = extent_of(info.spatial[-1]) or ASSUMED
    before = (extent_of(info.spatial[-2]) or ASSUMED) if len(info.spatial) > 1 else 1
    others = product([extent_of(i) for i in info.spatial[:-2]], ASSUMED)
    across = -(-last // (t["vectors"] * lanes))
    full, rest = before // t["neighbours"], before % t["neighbours"]
    group = lambda n: _group(info, target, n, t["vectors"], t["straight"])
    return others * across * (full * group(t["neighbours"]) + np.where(rest > 0, group(np.maximum(rest, 1)), 0.0)) * np.where(rest > 0, EDGE, 1.0)


def _border(info: BlockInfo, straight: np.ndarray) -> np.ndarray:
    """What it costs to write out an axis of the window, other than the innermost, that meets a border."""
    asked = conditional(info)
    met = [k for k, axis in enumerate(reversed(info.reduce), 1) if axis.var in asked and k > 1]
    return np.where(straight >= met[0], BORDER, 1.0) if met else np.ones(len(straight))


def _group(info: BlockInfo, target: Target, count: Any, vectors: Any, straight: Any) -> Any:
    """Cycles of one group of results."""
    written = _written(info)
    steps, outside = written[-1], written[-1] // written[straight]
    entries = written[-1] // written[np.minimum(straight + 1, len(info.reduce))]
    work = _operations(info) * steps * count * vectors
    loads = sum(_loads(info, a, target, count, vectors, straight) for a in info.loads)
    limits = (work / target.fma_ports, target.fma_latency * steps, loads / target.loads, (work + loads) / target.issue)
    looping = np.where(outside > 1, STEP_CYCLES * outside + ENTRY_CYCLES * entries, 0.0)
    return sum(x**SHARPNESS for x in limits) ** (1 / SHARPNESS) + looping + GROUP_CYCLES + STORED_CYCLES * count * vectors


def _written(info: BlockInfo) -> np.ndarray:
    """Steps of so many axes of the reduction, from the innermost."""
    return np.cumprod([1.0, *(extent_of(i) or ASSUMED for i in reversed(info.reduce))])


def _loads(info: BlockInfo, access: Access, target: Target, count: Any, vectors: Any, straight: Any) -> Any:
    """Vectors that a group loads of one operand: of straight code each once, where registers hold them."""
    written = _written(info)
    steps = written[-1]
    wide = vectors if not access.steps(info.spatial[-1].var, 0) else 1
    beside = info.spatial[-2] if len(info.spatial) > 1 else None
    if beside is None or access.steps(beside.var, 0):
        return steps * wide
    each = steps * count * wide
    place = _place(info, access, target)
    box = lambda k: {_axis(info, beside): count, **{_axis(info, i): extent_of(i) or ASSUMED for i in info.reduce[len(info.reduce) - k :]}}
    distinct = sum(np.where(straight == k, steps // written[k] * place.elements(box(k)), 0) for k in range(1, len(written))) * wide
    of_a_row = place.elements(box(1)) * wide
    held = np.where(count * vectors + of_a_row + 2 <= target.vector_registers, distinct, each * SPILLED)
    return np.where(straight > 0, np.minimum(held, each * SPILLED), each)


def _axis(info: BlockInfo, axis: tir.IterVar) -> int:
    return info.block.iter_vars.index(axis)


def _place(info: BlockInfo, access: Access, target: Target) -> Operand:
    return operand(access, {it.var: k for k, it in enumerate(info.block.iter_vars)}, ASSUMED, target)


def _operations(info: BlockInfo) -> int:
    """Instructions of one step of a reduction: a product that is added is one."""
    nodes = list(data_nodes(info.block.body.value))
    count = sum(MAX_OPERATIONS if type(e) in (tir.Max, tir.Min) else operations(e) for e in nodes)
    fused = any(type(e) is tir.Add and tir.Mul in (type(e.a), type(e.b)) for e in nodes)
    return max(count - fused, 1)


def _traffic(info: BlockInfo, lanes: int, target: Target, t: Columns) -> list[Any]:
    operands = [_place(info, a, target) for a in info.accesses]
    inside: dict[Any, Any] = {_axis(info, info.spatial[-1]): t["vectors"] * lanes}
    loops: list[tuple[Any, Any]] = [(_axis(info, i), extent_of(i) or ASSUMED) for i in info.spatial[:-2]]
    if len(info.spatial) > 1:
        beside = info.spatial[-2]
        loops.append((_axis(info, beside), -(-(extent_of(beside) or ASSUMED) // t["neighbours"])))
        inside[_axis(info, beside)] = t["neighbours"]
    loops.append((_axis(info, info.spatial[-1]), -(-(extent_of(info.spatial[-1]) or ASSUMED) // (t["vectors"] * lanes))))
    loops += [(_axis(info, i), extent_of(i) or ASSUMED) for i in info.reduce]
    return traffic_cycles(target, Nest([x for x in loops if np.any(x[1] != 1)], operands, inside).traffic(capacities(target)))
