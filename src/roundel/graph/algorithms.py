# SPDX-License-Identifier: Apache-2.0
"""Algorithms that the graph passes choose between, with the times that the model of the machine expects: what ``roundel explain`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..ir import graph, options, tir
from ..ir.module import IRModule
from ..ir.visit import free_vars, substitute
from ..ops.dims import static
from ..ops.outside_scaling import column_scale
from ..target import Target
from .constant_bytes import constant_bytes
from .rewriter import is_call
from .strassen import GAIN, TILE, product_of, strassen_cycles
from .winograd import is_transformable, winograd_cycles

CONVOLUTIONS = {0: "direct", 2: "Winograd F(2x2,3x3)", 4: "Winograd F(4x4,3x3)"}
PRODUCTS = ("plain", "Strassen")


@dataclass(frozen=True)
class Choice:
    """Of ``calls`` equal operators: the algorithm ``chosen``, and the cycles of one core that each is expected to take in one call."""

    operator: str
    calls: int
    chosen: str
    cycles: Mapping[str, float]


def algorithms(mod: IRModule, target: Target, sizes: Mapping[str, int] | None = None) -> list[Choice]:
    """The choices for a module as it is before the pass ``strassen``, of operators with constant weights; ``sizes`` gives symbolic
    dimensions values (those without one are left out)."""
    calls: dict[tuple[str, str, tuple[tuple[str, float], ...]], int] = {}
    constants = constant_bytes(mod)
    for _, func in mod.items():
        if isinstance(func, graph.Function) and isinstance(func.body, graph.SeqExpr):
            for binding in func.body.bindings:
                found = _convolution(binding.value, target, constants) or _product(binding.value, target, sizes or {})
                if found is not None:
                    calls[found] = calls.get(found, 0) + 1
    return [Choice(operator, n, chosen, dict(cycles)) for (operator, chosen, cycles), n in calls.items()]


def _convolution(call: graph.GraphExpr, target: Target, constants: int) -> tuple[str, str, tuple[tuple[str, float], ...]] | None:
    if not is_call(call, "nn.conv2d") or len(call.args) > 2 or not isinstance(call.args[1], graph.Constant):
        return None
    data, weight = call.args[0].sinfo, call.args[1].sinfo
    if data.shape is None or call.attrs["data_layout"] != "NCHW" or call.attrs["kernel_layout"] != "OIHW":
        return None
    times = winograd_cycles(data, weight, call.attrs, target, constants)
    if not times or not is_transformable(call.args[1]):
        return None
    cycles = {CONVOLUTIONS[m]: t for m, t in times.items()}
    return f"conv2d {_shape(data)} by {_shape(weight)}", min(cycles, key=cycles.__getitem__), tuple(cycles.items())


def _product(call: graph.GraphExpr, target: Target, sizes: Mapping[str, int]) -> tuple[str, str, tuple[tuple[str, float], ...]] | None:
    found = product_of(call)
    if found is None or options.get("accuracy") == "strict":
        return None
    batch, rows = [_number(n, sizes) for n in found.batch], _number(found.rows, sizes)
    if rows is None or None in batch:
        return None
    tiles = (0, TILE) if static(found.rows) is not None else (TILE,)  # as the pass tries them
    times = next((t for tile in tiles if (t := strassen_cycles(prod(batch), rows, found.inner, found.columns, target, tile, found.stored))), None)
    if times is None:
        return None
    chosen = PRODUCTS[times[1] < GAIN * times[0] and column_scale(found.weight.data.numpy()) is not None]
    return f"matmul {prod(batch) * rows}x{found.inner}x{found.columns}", chosen, tuple(zip(PRODUCTS, times, strict=True))


def _number(size: tir.Expr, sizes: Mapping[str, int]) -> int | None:
    known = {v: tir.index_const(sizes[v.name]) for v in free_vars(size) if v.name in sizes}
    return static(substitute(size, known) if known else size)


def _shape(info: graph.TensorInfo) -> str:
    return "x".join(str(static(n) or n) for n in info.shape)
