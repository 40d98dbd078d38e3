# SPDX-License-Identifier: Apache-2.0
"""The roles of axes and operands in a sum of products that instructions for dot products compute, one of the operands constant.

    C[i] += sum over k < group of A[k] * B[i, k]        for the lanes i of a vector

Which axis may be the lanes and which the group is found by ``mappings``; of these, this module keeps what the sketch can arrange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from ...intrinsics import TensorIntrin
from ...intrinsics.registry import SCALAR
from ...ir import tir
from ...ir.dataclass import dataclass
from ...target import Target
from .accesses import Access, BlockInfo, extent_of
from .mappings import AxisMap, described, mappings

MOST_BITS = 16  # of factors: what is wider has no instruction of this form


@dataclass(frozen=True)
class Product:
    """The block, its operands, and its axes: ``column`` runs along vectors of weights, ``columns`` move the weights otherwise, ``rows``
    the data, ``batch`` both (groups of channels); ``axis`` is summed in groups of ``group``, ``reduce`` are the other axes of the sum.
    ``intrins`` are the instructions, by their lanes."""

    info: BlockInfo
    data: Access
    weight: Access
    column: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    axis: int
    reduce: tuple[int, ...]
    group: int
    intrins: dict[int, TensorIntrin]
    batch: tuple[int, ...] = ()

    def extent(self, axis: int) -> int | None:
        """Of an axis, where it is a number."""
        return extent_of(self.info.block.iter_vars[axis])

    def is_split(self, lanes: Any) -> Any:
        """Whether columns are cut into vectors of so many lanes (else one vector holds them all), for each of an array of numbers."""
        return self.extent(self.column) != lanes


@dataclass(frozen=True)
class Dot:
    """An instruction of this form: its lanes, the products that each of them sums, the types of A, B and C, and how many multiply-adds of vectors it takes
    the place of on a machine, for each product of a lane."""

    intrin: TensorIntrin
    lanes: int
    group: int
    types: tuple[str, str, str]
    slots: float


def dots(target: Target) -> tuple[Dot, ...]:
    """The instructions of this form that a machine has, by falling number of lanes, the faster first. Source text for another compiler has none, as they
    are LLVM's intrinsics, but what a machine without a system computes in registers of its integers."""
    if target.kind != "llvm" and not target.is_bare:
        return ()
    return _dots((SCALAR,) if target.is_bare else target.features, target.lanes("int32"), tuple(TensorIntrin.names()))


@lru_cache(maxsize=64)
def _dots(features: tuple[str, ...], most: int, names: tuple[str, ...]) -> tuple[Dot, ...]:
    found = [_as_dot(i, features) for i in TensorIntrin.all() if i.cost is not None and i.needs and set(i.needs) <= set(features)]
    return tuple(sorted((d for d in found if d is not None and d.lanes <= most), key=lambda d: (-d.lanes, d.slots)))


def _as_dot(intrin: TensorIntrin, features: tuple[str, ...]) -> Dot | None:
    what = described(intrin)
    if what is None or len(what.axes) != 2 or [a.kind for a in what.axes] != [tir.IterKind.SPATIAL, tir.IterKind.REDUCE] or intrin.storage:
        return None
    lane, step = (a.var for a in what.axes)
    by_indices = {indices: buffer for buffer, indices in what.indices.items()}
    if set(by_indices) != {(step,), (lane, step), (lane,)}:
        return None
    a, b, c = (by_indices[x] for x in ((step,), (lane, step), (lane,)))
    if [x.name for x in (a, b, c)] != ["A", "B", "C"]:
        return None
    group, cost = extent_of(what.axes[1]) or 1, intrin.cost
    assert cost is not None
    return Dot(intrin, extent_of(what.axes[0]) or 1, group, (str(a.dtype), str(b.dtype), str(c.dtype)), cost.slots_on(features) / group)


def fastest_group(target: Target, types: tuple[str, str, str]) -> dict[int, Dot]:
    """Of instructions for these types those that sum as many products at once as the fastest, by their lanes."""
    fitting = [d for d in dots(target) if d.types == types]
    best = min(fitting, key=lambda d: (d.slots / d.lanes), default=None)
    out: dict[int, Dot] = {}
    for d in fitting:
        if best is not None and d.group == best.group:
            out.setdefault(d.lanes, d)
    return out


def gain(target: Target, types: tuple[str, str, str]) -> float:
    """How many times as many products as multiply-adds of float32 a machine computes of these types."""
    full = fastest_group(target, types).get(target.lanes("float32"))
    return 1.0 if full is None else max(1.0, 1.0 / full.slots)


def matches(info: BlockInfo, is_constant: Callable[[tir.Buffer], bool], target: Target) -> Iterator[Product | tuple[str, str]]:
    """The products that a block is, or for an instruction that it is mapped onto its name and why that cannot be arranged. ``is_constant`` tells
    whether a buffer is known at compile time."""
    if any(a.buffer.dtype.bits > MOST_BITS for a in info.loads):
        return
    loads = {str(a.buffer.dtype) for a in info.loads}
    seen = {d.types for d in dots(target) if {*d.types[:2]} == loads and d.types[2] == str(info.stores[0].buffer.dtype)}
    for types in sorted(seen):
        by_lanes = fastest_group(target, types)
        first = next(iter(by_lanes.values()))
        for found in mappings(info, first.intrin):
            arranged = _arranged(info, found, is_constant, first.group)
            if isinstance(arranged, str):
                yield first.intrin.name, arranged
            else:
                column, columns, rows, axis, reduce, batch = arranged
                intrins = {n: d.intrin for n, d in by_lanes.items()}
                yield Product(info, found.operand("A"), found.operand("B"), column, columns, rows, axis, reduce, first.group, intrins, batch)


def _arranged(info: BlockInfo, found: AxisMap, is_constant: Callable[[tir.Buffer], bool], group: int) -> str | tuple[Any, ...]:
    """The axes of a product: column, columns, rows, that of the group, others of the sum, those that move both operands; or why there is none."""
    axes, data, weight = info.block.iter_vars, found.operand("A"), found.operand("B")
    if not is_constant(weight.buffer):
        return f"{weight.buffer.name} is no constant, so it cannot be laid out when the model is compiled"
    if any(len(a) != 1 for a in found.axes):
        return "several axes together would be one of the instruction's"
    ((column,), (axis,)) = found.axes
    place = {i.var: k for k, i in enumerate(axes)}
    at = [place.get(i) for i in weight.indices if isinstance(i, tir.Var)]
    plain = all(isinstance(i, tir.Var) or (isinstance(i, tir.IntImm) and i.value == 0) for i in weight.indices)
    if not plain or None in at or len(set(at)) < len(at):
        return f"{weight.buffer.name} is not indexed by axes alone"
    if weight.indices[-1] is not axes[column].var or not info.stores[0].steps(axes[column].var, 1):
        return f"neighbours along {axes[column].var.name} do not follow each other in {weight.buffer.name} and in the result"
    if not data.steps(axes[axis].var, 1):
        return f"neighbours along {axes[axis].var.name} do not follow each other in {data.buffer.name}"
    if (extent_of(axes[axis]) or 1) % group:
        return f"{axes[axis].var.name} is no whole number of groups of {group}"
    if extent_of(axes[column]) is None:
        return f"the length of {axes[column].var.name} is not known"
    spatial = [k for k, i in enumerate(axes) if i.kind is tir.IterKind.SPATIAL]
    moves = {k: (not data.steps(axes[k].var, 0), k in at) for k in spatial}
    if all(moves[column]):
        return "the columns move both operands"
    batch = tuple(k for k in spatial if all(moves[k]))
    columns = tuple(k for k in spatial if k not in (column, *batch) and moves[k][1])
    rows = tuple(k for k in spatial if not moves[k][1])
    return column, columns, rows, axis, tuple(k for k in range(len(axes)) if k not in (*spatial, axis)), batch
