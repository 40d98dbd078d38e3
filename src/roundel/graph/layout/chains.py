# SPDX-License-Identifier: Apache-2.0
"""What layouts of chains of convolutions are expected to take with all that they lead to, conversions at the chain's ends included.

A chain is convolutions and what between them works in any layout. In blocks of channels convolutions are faster, and what enters or leaves the
chain has to be converted. Where converting is next to nothing beside the chain's arithmetic, nothing is asked, for asking takes time too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from ...ir import graph
from ...ir.dataclass import dataclass
from ...ops import make
from ...ops.dims import static
from ..algorithms.winograd import convolution_algorithms
from ..expectations import Expectations, stand_in
from .wanted import variables

PLAIN = 0  # instead of the size of a block
LITTLE = 0.0075  # of a chain's arithmetic, below which what is converted counts for nothing: it is moved at a fraction of the rate of its level
ORDERS = {4: "NCHW", 5: "NDCHW"}
"""By the number of dimensions of a value, in which order its axes lie where it is held in blocks of channels."""


@dataclass(frozen=True)
class Convolution:
    """A convolution of the chain, with what it computes."""

    call: graph.Call
    result: graph.TensorInfo

    @property
    def sizes(self) -> tuple[list[int], list[int], list[int]]:
        """Those of its data, kernel and result; 1 where a size is not known."""
        infos = self.call.args[0].sinfo, self.call.args[1].sinfo, self.result
        data, kernel, result = ([static(n) or 1 for n in info.shape] for info in infos)
        return data, kernel, result

    @property
    def is_known(self) -> bool:
        """Whether all sizes but the number of pictures are known."""
        infos = self.call.args[0].sinfo, self.call.args[1].sinfo, self.result
        return all(static(n) for info in infos for n in info.shape[1:])


@dataclass
class Chain:
    """``ends``: shapes of what enters and leaves it. ``neighbours``: how many of the ends are not the function's own, so that kernels beside the chain
    may take conversions in."""

    convolutions: list[Convolution] = field(default_factory=list)
    ends: list[list[int]] = field(default_factory=list)
    neighbours: int = 0
    known: dict[int, float] = field(default_factory=dict)
    part_of: Chain | None = None
    worth: bool | None = None  # asking, once that is known

    @property
    def whole(self) -> Chain:
        """The chain that it was joined with."""
        return self if self.part_of is None else self.part_of.whole

    @property
    def is_alone(self) -> bool:
        """Whether it is one convolution of the function's parameters whose result is the function's: then conversions are kernels of their own."""
        return len(self.convolutions) == 1 and not self.neighbours

    def is_worth_asking(self, target: Any) -> bool:
        """Whether its sizes are known, and conversions at its ends may decide. For a whole chain; it is found out once."""
        if self.worth is None:
            self.worth = self._conversions_may_decide(target)
        return self.worth

    def _conversions_may_decide(self, target: Any) -> bool:
        if not all(one.is_known for one in self.convolutions):
            return False
        arithmetic = 0.0
        for one in self.convolutions:
            _, kernel, result = one.sizes
            arithmetic += math.prod(result) * math.prod(kernel[1:]) / (target.lanes("float32") * target.fma_ports)
        moved = [8.0 * math.prod(shape) for shape in self.ends]
        return sum(n / target.bytes_per_cycle(target.level_of(n)) for n in moved) > LITTLE * arithmetic

    def cycles(self, block: int, expectations: Expectations, block_for: Callable[[int], int]) -> float:
        """Of one core, of all convolutions with results in blocks of this size (`PLAIN`: as they are), and of the conversions."""
        if block not in self.known:
            lanes = expectations.setting.target.lanes("float32")
            spent = 0.0
            fitting = lambda channels: block if block == PLAIN or channels % block == 0 else block_for(channels)
            for one in self.convolutions:
                data, _, result = one.sizes
                direct = expectations.cycles(_call(one, fitting(data[1]), fitting(result[1])), [1])
                others = convolution_algorithms(one.call.args[0].sinfo, one.call.args[1].sinfo, one.call.attrs, expectations) if block == lanes else {}
                spent += min([direct, *(c for c in others.values() if isinstance(c, float))])
            if block != PLAIN:
                spent += sum(expectations.cycles(_converted(shape, block)) for shape in self.ends if shape[1] % block == 0)
            self.known[block] = spent
        return self.known[block]


def chains(func: graph.Function, is_convolution: Callable[[graph.Call], bool], keeps: Callable[[graph.Call], bool]) -> dict[graph.Var, Chain]:
    """The chain of each convolution of a function, by the variable of its result. ``keeps`` tells what works in any layout."""
    found: dict[graph.Var, Chain] = {}
    for binding in (b for block in func.body.blocks for b in block.bindings):
        value, info = binding.value, binding.var.sinfo
        before = [v for v in variables(value) if v in found]
        inside = isinstance(value, graph.Call) and isinstance(info, graph.TensorInfo) and info.shape is not None and info.ndim in ORDERS
        if inside and is_convolution(value):
            chain = _joined([found[v] for v in before[:1]])
            chain.convolutions.append(Convolution(value, info))
            if not before:
                chain.ends.append(_sizes(value.args[0].sinfo))
                chain.neighbours += value.args[0] not in func.params
            found[binding.var] = chain
        elif inside and before and keeps(value):
            found[binding.var] = _joined([found[v] for v in before])
        else:
            for v in before:
                found[v].whole.ends.append(_sizes(v.sinfo))
                found[v].whole.neighbours += not isinstance(value, graph.Var)  # which is another name
    for v in variables(func.body.body):
        if v in found:
            found[v].whole.ends.append(_sizes(v.sinfo))
    return {v: chain.whole for v, chain in found.items()}


def _joined(parts: Sequence[Chain]) -> Chain:
    """One chain of several."""
    first, *others = {id(p.whole): p.whole for p in parts}.values() or [Chain()]
    for other in others:
        first.convolutions += other.convolutions
        first.ends += other.ends
        first.neighbours += other.neighbours
        other.part_of = first
    return first


def _sizes(info: graph.TensorInfo) -> list[int]:
    return [static(n) or 1 for n in info.shape or ()]


def _call(one: Convolution, inner: int, outer: int) -> graph.Call:
    """A convolution with data and results in blocks of these sizes."""
    data, kernel, _ = one.sizes
    rank = len(data)
    letters, order, groups = "NC" + "DHW"[5 - rank :], ORDERS[rank], int(one.call.attrs["groups"])
    attrs = {k: v for k, v in one.call.attrs.items() if k not in ("data_layout", "kernel_layout", "out_layout")}
    if outer == PLAIN:
        return make(one.call.op.name, stand_in("data", data), stand_in("kernel", kernel), **attrs)
    weight = [kernel[0] // outer, kernel[1], *kernel[2:], outer]
    layout, kernel_layout = letters, f"OI{letters[2:]}{outer}o"
    if inner:
        by_letter = dict(zip(letters, (data[0], data[1] // inner, *data[2:]), strict=True))
        data, layout = [*(by_letter[x] for x in order), inner], f"{order}{inner}c"
        if groups == 1:
            weight, kernel_layout = [kernel[0] // outer, kernel[1] // inner, *kernel[2:], inner, outer], f"OI{letters[2:]}{inner}i{outer}o"
    return make(one.call.op.name, stand_in("data", data), stand_in("kernel", weight), data_layout=layout, kernel_layout=kernel_layout,
                out_layout=f"{order}{outer}c", **attrs)


def _converted(shape: Sequence[int], block: int) -> graph.Call:
    """The conversion of a tensor into blocks; back it takes as long."""
    n, c, *space = shape
    return make("permute_dims", stand_in("data", (n, c // block, block, *space)), axes=(0, 1, *range(3, 3 + len(space)), 2))
