# SPDX-License-Identifier: Apache-2.0
"""The products of a graph that are quantised, and what they become: written out in operators that the compiler's passes know."""

from __future__ import annotations

import numpy as np

from ..graph.rewriter import GraphRewriter
from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ir.module import IRModule
from ..ir.op import OpDef
from ..ops import make
from .numbers import GROUP, MOST, Integers, Range, by_channel, in_groups
from .settings import KINDS, Settings


@dataclass(frozen=True)
class Layer:
    """A product with a constant weight: its place among those of the module, the name of the model's node, its operator and weight."""

    index: int
    name: str
    op: str
    weight: np.ndarray

    @property
    def channel(self) -> int:
        """The axis of the weight along which the columns of the result lie."""
        return self.weight.ndim - 1 if self.op == "matmul" else 0

    @property
    def depth(self) -> int:
        """The axis of a matrix that is summed over."""
        return self.weight.ndim - 2 if self.op == "matmul" else self.weight.ndim - 1

    def integers(self, settings: Settings) -> Integers:
        """The weight as these settings want it."""
        if settings.mode == "weights" and (settings.bits < 8 or settings.group is not None or not settings.symmetric):
            return in_groups(self.weight, self.depth, settings.bits, settings.group or GROUP, settings.symmetric)
        return by_channel(self.weight, self.channel if settings.per_channel else None)


class Products(GraphRewriter):
    """Finds the products of ``main``, outside of branches and loops, and lets a subclass say what becomes of each."""

    def __init__(self, mod: IRModule, settings: Settings) -> None:
        super().__init__(mod)
        self.settings, self.layers, self.depth = settings, [], 0  # type: tuple[Settings, list[Layer], int]  # type: ignore[misc]
        self.sites: set[str] = set()  # names of all nodes

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        op = call.op
        self.sites.add(self.site)
        if self.depth > 1 or not isinstance(op, OpDef) or op.name not in KINDS or len(call.args) < 2 or call.sinfo.dtype != "float32":
            return call
        weight, is_matrix = call.args[1], KINDS[op.name] == "matmul"
        is_weight = isinstance(weight, graph.Constant) and weight.data.dtype == "float32" and len(weight.data.shape) >= 2 and 0 not in weight.data.shape
        if not is_weight or call.args[0].sinfo.dtype != "float32" or self.settings.leaves_out(self.site, op):
            return call
        if is_matrix and len(weight.data.shape) != 2:
            return call
        if not is_matrix and (self.settings.mode == "weights" or (call.attrs["data_layout"][:2], call.attrs["kernel_layout"][:2]) != ("NC", "OI")):
            return call
        layer = Layer(len(self.layers), self.site, op.name, weight.data.numpy())
        self.layers.append(layer)
        return self.product(layer, call)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        self.depth += 1
        out = super().seq(expr)
        self.depth -= 1
        return out

    def product(self, layer: Layer, call: graph.Call) -> graph.GraphExpr:
        """What becomes of one (default: it stays)."""
        return call


class Rewritten(Products):
    """Products of quantised data and weights. ``ranges``: of the data of each layer, for static quantisation."""

    def __init__(self, mod: IRModule, settings: Settings, ranges: list[Range]) -> None:
        super().__init__(mod, settings)
        self.ranges, self.weights = ranges, []  # type: tuple[list[Range], list[Integers]]  # type: ignore[misc]

    def product(self, layer: Layer, call: graph.Call) -> graph.GraphExpr:
        weight = layer.integers(self.settings)
        self.weights.append(weight)
        data = call.args[0]
        if self.settings.mode != "weights":
            data = self.narrow(data, layer)
        return graph.infer_call(call.replace(args=(data, self.wide(weight), *call.args[2:])))

    def narrow(self, x: graph.GraphExpr, layer: Layer) -> graph.GraphExpr:
        """Data rounded to uint8, and as float32 again."""
        one = lambda name, *args, **attrs: self.emit(make(name, *args, **attrs))
        number = lambda v: graph.Constant.of(np.float32(v))
        if self.settings.mode == "static":
            found = self.ranges[layer.index]
            scale, zero, wide = number(found.scale), number(found.zero_point), graph.Constant.of(np.int32(found.zero_point))
        else:  # as DynamicQuantizeLinear
            low, high = one("minimum", one("min", x), number(0)), one("maximum", one("max", x), number(0))
            scale = one("divide", one("subtract", high, low), number(MOST))
            scale = one("where", one("equal", scale, number(0)), number(1), scale)
            zero = one("round", one("divide", one("subtract", number(0), low), scale))
            zero = one("minimum", one("maximum", zero, number(0)), number(MOST))
            wide = one("astype", one("astype", zero, dtype="uint8"), dtype="int32")
        moved = one("add", one("round", one("divide", x, scale)), zero)
        levels = one("astype", one("minimum", one("maximum", moved, number(0)), number(MOST)), dtype="uint8")
        whole = one("subtract", one("astype", levels, dtype="int32"), wide)
        return one("multiply", one("astype", whole, dtype="float32"), scale)

    def wide(self, w: Integers) -> graph.GraphExpr:
        """A weight as float32."""
        one = lambda name, *args, **attrs: self.emit(make(name, *args, **attrs))
        shaped = lambda v, sizes: one("reshape", v, graph.ShapeExpr(tuple(map(tir.index_const, sizes))))
        shape = w.levels.shape
        if w.group is None:
            whole = one("astype", one("astype", graph.Constant.of(w.levels), dtype="int32"), dtype="float32")
            by = w.scale.reshape([-1 if k == w.axis else 1 for k in range(len(shape))]) if w.scale.ndim else w.scale
            return one("multiply", whole, graph.Constant.of(by))
        groups = w.scale.shape[w.axis]
        missing = groups * w.group - shape[w.axis]
        filled = np.pad(w.levels, [(0, missing if k == w.axis else 0) for k in range(len(shape))])
        parts = (*shape[: w.axis], groups, w.group, *shape[w.axis + 1:])
        whole = one("astype", graph.Constant.of(filled.reshape(parts)), dtype="float32")
        beside = lambda v: graph.Constant.of(np.expand_dims(v.astype(np.float32), w.axis + 1))
        assert w.zero is not None
        out = shaped(one("multiply", one("subtract", whole, beside(w.zero)), beside(w.scale)), filled.shape)
        if not missing:
            return out
        begin, end, step = ((tir.index_const(n),) for n in (0, shape[w.axis], 1))
        return one("strided_slice", out, axes=(w.axis,), begin=begin, end=end, strides=step)
