# SPDX-License-Identifier: Apache-2.0
"""Blocked layouts for convolution networks: channels in blocks of a vector's length, innermost (NCHW16c); channels that these do
not divide are one block (NCHW24c).

A convolution with constant weights wants its data as ``[N, C/b, H, W, b]`` (films as ``[N, D, C/b, H, W, b]``, a picture after another, so that
what does not mix pictures is a convolution of N * D of them); what lies between convolutions (elementwise
operators, pooling, concatenation along channels, spatial reductions) works in blocks too, so conversions remain only
where something needs the plain tensor. Weights are laid out at compile time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.choice import Later
from ...ir.constants import ConstData
from ...ir.dataclass import dataclass
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...ops import make
from ...ops.dims import paddings, per_axis, shape_text, simplify, static
from ...passes import pass_
from ...strategy.match.tile_product import tile_instructions
from ...target import Target
from ..algorithms.precision import NAMES as PRODUCTS
from ..algorithms.precision import PLAIN as FLOAT32
from ..algorithms.precision import factors, narrow_constant, preferred, unit_of
from ..algorithms.winograd import NAMES, convolution_algorithms, direct_cycles, fastest, is_transformable, winograd_weight
from ..expectations import Expectations, is_less, stand_in
from ..rewriter import GraphRewriter
from .chains import ORDERS, PLAIN, Chain, chains
from .films import Pictures, as_pictures
from .phases import Phases, as_phases
from .wanted import wanted_in_blocks


@pass_("block_channels")
def block_channels(mod: IRModule) -> IRModule:
    """Give convolutions over two and three axes, and what lies between them, blocked layouts, where the channels divide into blocks."""
    target = mod.attrs.get("target") or Target.host()
    return _Block(mod, target).module()


@dataclass(frozen=True)
class _Blocked:
    """A blocked version of a value: ``expr`` has shape [N, C/block, H, W, block] or, of a film, [N, D, C/block, H, W, block] or
    [N * D, C/block, H, W, block], as what made it works on it; one is a view of the other."""

    expr: graph.GraphExpr
    block: int


class _Block(GraphRewriter):
    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__(mod)
        self.target = target
        self.lanes = target.lanes("float32")
        self.row = 0
        self.expectations = Expectations.of(mod)
        self.factors = factors(target)
        self.narrowed: dict[graph.GraphExpr, graph.GraphExpr] = {}
        self.blocked: dict[graph.Var, _Blocked] = {}
        self.chains: dict[graph.Var, Chain] = {}
        self.wanted: frozenset[graph.Var] = frozenset()
        self.var: graph.Var | None = None  # that is being computed

    def function(self, func: graph.Function) -> graph.Function:
        keeps = lambda call: isinstance(call.op, OpDef) and (call.op.name in _OPS or is_pointwise(call))
        takes_blocks = lambda call: self.may_be_blocked(call) and _divides(call.args[0].sinfo.shape[1], self.lanes)
        self.chains, self.wanted = chains(func, self.may_be_blocked, keeps), wanted_in_blocks(func, takes_blocks, keeps)
        return super().function(func)

    def may_be_blocked(self, call: graph.Call) -> bool:
        """Whether a call is a convolution of floats that may work in blocks of channels."""
        if not isinstance(call.op, OpDef) or _OPS.get(call.op.name) is not _convolution or len(call.args) != 2 or not _is_usual(call):
            return False
        (channels, *_), groups = call.args[1].sinfo.shape, int(call.attrs["groups"])
        data = call.args[0].sinfo
        one_each = _divides(data.shape[1], groups) and data.shape[1].value == groups == channels.value
        return str(data.dtype) == "float32" and self.block_for(channels) > 0 and (groups == 1 or one_each)

    def binding(self, binding: graph.Binding) -> None:
        value, self.var = binding.value, binding.var
        self.row = self.row_of_tiles(value)
        self.at(binding)
        handler = _OPS.get(getattr(value.op, "name", "")) if isinstance(value, graph.Call) and isinstance(value.op, OpDef) else None
        if handler is None and isinstance(value, graph.Call) and is_pointwise(value):
            handler = _pointwise
        if handler is not None and isinstance(binding.var.sinfo, graph.TensorInfo) and binding.var.sinfo.ndim in ORDERS and self._dataflow:
            made = handler(self, value)
            if made is not None:
                var = self.emit(made[0], binding.var.name)
                self.blocked[binding.var] = _Blocked(var, made[1])
                if not isinstance(binding.var, graph.DataflowVar):
                    super().binding(graph.VarBinding(binding.var, binding.var))
                    self.env[binding.var] = binding.var  # the plain tensor, which is seen outside of this block
                return
        super().binding(binding)

    def _operand(self, value: Any) -> Any:
        """Plain operands; a value that exists only in blocks is converted back, once."""
        if isinstance(value, graph.Var) and value in self.blocked and value not in self.env:
            self.env[value] = self._plain(self.blocked[value], value)
        return super()._operand(value)

    def _plain(self, b: _Blocked, var: graph.Var) -> graph.GraphExpr:
        rank = var.sinfo.ndim
        axes = (0, _axis(rank, 1), rank, *(_axis(rank, k) for k in range(2, rank)))
        flat = self.emit(make("permute_dims", self._whole(b, var.sinfo), axes=axes), var.name)
        return self.emit(make("reshape", flat, graph.ShapeExpr(var.sinfo.shape)), var.name)

    def _whole(self, b: _Blocked, info: graph.TensorInfo) -> graph.GraphExpr:
        """A value in blocks with all axes of its own, also where it is held as pictures of a film."""
        if b.expr.sinfo.ndim > info.ndim:
            return b.expr
        return self.emit(make("reshape", b.expr, graph.ShapeExpr((info.shape[0], info.shape[2], *b.expr.sinfo.shape[1:]))))

    def in_blocks(self, value: graph.GraphExpr, block: int) -> graph.GraphExpr | None:
        """The value in blocks of this size, converted if need be; None where its channels do not divide."""
        have = self.blocked.get(value) if isinstance(value, graph.Var) else None
        if have is not None and have.block == block:
            return self._whole(have, value.sinfo)
        shape = value.sinfo.shape
        if value.sinfo.ndim not in ORDERS or not _divides(shape[1], block):
            return None
        plain = self._operand(value)
        n, c, *space = shape
        cut = self.emit(make("reshape", plain, graph.ShapeExpr((n, tir.index_const(c.value // block), tir.index_const(block), *space))))
        return self.emit(make("permute_dims", cut, axes=(*_ordered((0, 1, *range(3, 3 + len(space)))), 2)))

    def block_of(self, value: Any) -> int:
        """The block of a value that is held in blocks, else 0."""
        found = self.blocked.get(value) if isinstance(value, graph.Var) else None
        return found.block if found else 0

    def row_of_tiles(self, call: graph.GraphExpr) -> int:
        """How many channels a row of a tile holds, where a convolution of factors of at most 16 bits may be computed in tile registers; else 0. Rows
        are loaded straight from blocks of so many channels."""
        if not isinstance(call, graph.Call) or not isinstance(call.op, OpDef) or _OPS.get(call.op.name) is not _convolution or call.attrs["groups"] != 1:
            return 0
        types = [str(x.sinfo.dtype) for x in call.args[:2]]
        rounded = [self.factors, self.factors] if types == [FLOAT32, FLOAT32] else types
        if FLOAT32 in rounded:  # not worth making the table of instructions for
            return 0
        return next((t.products for t in tile_instructions(self.target) if list(t.types[:2]) == rounded), 0)

    def block_for(self, channels: tir.Expr) -> int:
        """The block that a tensor of so many channels gets: a row of tiles or a vector where these divide the channels, else all channels (whose last
        vector is cut off); 0 for none."""
        if self.row and _divides(channels, self.row):
            return self.row
        if _divides(channels, self.lanes):
            return self.lanes
        return channels.value if isinstance(channels, tir.IntImm) and channels.value >= self.lanes // 4 else 0


def _space(rank: int) -> str:
    """The letters of the axes of space of a value of so many dimensions."""
    return "DHW"[5 - rank :]


def _axis(rank: int, k: int) -> int:
    """Where axis ``k`` of a value of so many dimensions lies in blocks."""
    return ORDERS[rank].index(("NC" + _space(rank))[k])


def _ordered(values: Sequence[Any]) -> tuple[Any, ...]:
    """What belongs to the axes N, C and those of space, in the order in which these lie in blocks."""
    return tuple(values[("NC" + _space(len(values))).index(letter)] for letter in ORDERS[len(values)])


def _divides(extent: tir.Expr, block: int) -> bool:
    return isinstance(extent, tir.IntImm) and extent.value % block == 0 and extent.value > 0


Made = tuple[graph.GraphExpr, int] | None


def _convolution(self: _Block, call: graph.Call, block: int = 0) -> Made:
    data, weight = call.args[0], call.args[1]
    a, space, order = call.attrs, _space(data.sinfo.ndim), ORDERS[data.sinfo.ndim]
    if not _is_usual(call):
        return None
    border = {"fill": self._operand(call.args[2])} if len(call.args) > 2 else {}
    if (data.sinfo.dtype, weight.sinfo.dtype) not in (("float32", "float32"), ("uint8", "int8"), ("uint8", "int16"), ("int8", "int8"), ("int8", "int16")):
        return None
    out_channels, in_channels = weight.sinfo.shape[0], data.sinfo.shape[1]
    groups = int(a["groups"])
    block = block or _block_of_result(self, call)
    if not block:
        return None
    pictures = as_pictures(call) if order == "NDCHW" else as_phases(call) if order == "NCHW" else None
    tile = _tile(self, call, (self.block_of(data) or block, block), pictures) if order == "NCHW" or pictures is not None else 0
    if tile:
        return _winograd(self, call, (tile, self.block_of(data) or block, block), pictures), block
    if groups == 1:
        inner = self.block_of(data) or self.block_for(in_channels)
        x = self.in_blocks(data, inner) if inner else self._operand(data)
        layout = f"{order}{inner}c" if inner else f"NC{space}"
        kernel = _blocked_weight(weight, inner or 1, block) if inner else _blocked_weight(weight, 0, block)
        kernel_layout = f"OI{space}{inner}i{block}o" if inner else f"OI{space}{block}o"
        if x is not None and _takes_narrow_factors(self, call, (x, kernel), (layout, kernel_layout), (inner, block)):
            x, kernel, border = _rounded(self, x), narrow_constant(kernel, self.factors), border | {"out_dtype": FLOAT32}
    elif weight.sinfo.dtype != "int16" and _divides(in_channels, groups * block) and _divides(out_channels, groups * block):  # whole blocks in a group
        x, layout = self.in_blocks(data, block), f"{order}{block}c"
        kernel, kernel_layout = _blocked_weight(weight, block, block), f"OI{space}{block}i{block}o"
    elif _divides(in_channels, groups) and in_channels.value == groups == out_channels.value:
        block = self.block_of(data) or block
        x, layout = self.in_blocks(data, block), f"{order}{block}c"
        kernel, kernel_layout = _blocked_weight(weight, 0, block), f"OI{space}{block}o"
    else:
        return None
    if x is None:
        return None
    return _laid_out(call, x, kernel, (layout, kernel_layout), block, border), block


def _laid_out(call: graph.Call, x: Any, kernel: Any, layouts: tuple[str, str], block: int, others: Mapping[str, Any]) -> graph.Call:
    """A convolution in blocks: its data and weights in these layouts, with ``others`` of its attributes and operands."""
    data_layout, kernel_layout = layouts
    out_layout = f"{ORDERS[call.args[0].sinfo.ndim]}{block}c"
    return make(call.op.name, x, kernel, **{**call.attrs, "data_layout": data_layout, "kernel_layout": kernel_layout, "out_layout": out_layout, **others})


def _takes_narrow_factors(self: _Block, call: graph.Call, operands: tuple[Any, Any], layouts: tuple[str, str], blocks: tuple[int, int]) -> bool:
    """Whether a convolution that is computed directly, of these operands in blocks, multiplies numbers rounded to 16 bits; recorded, where that is asked
    for. (What rounds its data is mostly part of the kernel that makes them, and not in the expected times.)"""
    data, weight, (inner, outer) = call.args[0].sinfo, call.args[1].sinfo, blocks
    if self.factors == FLOAT32 or data.dtype != FLOAT32 or len(call.args) > 2:
        return False

    def cycles(kind: str) -> float:
        x, kernel = (stand_in(name, v.sinfo.shape, kind) for name, v in zip(("x", "kernel"), operands, strict=True))
        return self.expectations.cycles(_laid_out(call, x, kernel, layouts, outer, {"out_dtype": FLOAT32}), (1,))

    kinds: dict[str, Any] = {PRODUCTS[kind]: Later(partial(cycles, kind)) for kind in (FLOAT32, self.factors)}
    group, lanes = unit_of(self.factors, self.target)
    if not inner or inner % group or outer % lanes:
        kinds[PRODUCTS[self.factors]] = f"its channels are not in blocks of groups of {group} and of vectors of {lanes}"
    subject = f"factors of {call.op.name.removeprefix('nn.')} {shape_text(data.shape)} by {shape_text(weight.shape)}"
    return self.choosing.decide(self.site, subject, kinds, preferred(kinds, self.factors, margin=1.0), "precision", call) != PRODUCTS[FLOAT32]


def _rounded(self: _Block, x: graph.GraphExpr) -> graph.GraphExpr:
    """Data rounded to the type of the factors, once for all convolutions that read it."""
    if x not in self.narrowed:
        self.narrowed[x] = self.emit(make("astype", x, dtype=self.factors))
    return self.narrowed[x]


def _is_usual(call: graph.Call) -> bool:
    """Whether a convolution has constant weights and the layouts that models give it."""
    space, a = _space(call.args[0].sinfo.ndim), call.attrs
    return isinstance(call.args[1], graph.Constant) and (a["data_layout"], a["kernel_layout"]) == (f"NC{space}", f"OI{space}") and not a.get("out_layout")


def _block_of_result(self: _Block, call: graph.Call) -> int:
    """The block of channels that the result of a convolution gets, 0 for the layout of the model: a vector, where nothing else is asked for.
    Recorded with what is expected of all of its chain, where conversions are much of that. It decides for a convolution that is alone. (Elsewhere
    conversions mostly become part of the kernels around them, which the sum does not know yet.)"""
    data, weight = call.args[0].sinfo, call.args[1].sinfo
    order, plain = ORDERS[data.ndim], "NC" + _space(data.ndim)
    usual = self.block_for(weight.shape[0])
    chain = None if self.var is None else self.chains.get(self.var)
    if not usual or chain is None:
        return usual
    double = 2 * self.lanes
    wide = [double] if usual == self.lanes and _divides(weight.shape[0], double) and int(call.attrs["groups"]) == 1 else []
    sizes = {f"{order}{usual}c": usual, **{f"{order}{n}c": n for n in wide}, plain: PLAIN}
    expected: dict[str, float | str | None] = dict.fromkeys(sizes)
    if chain.is_worth_asking(self.target):
        expected |= {name: chain.cycles(n, self.expectations, lambda channels: self.block_for(tir.index_const(channels))) for name, n in sizes.items()}
    subject = f"layout of {call.op.name.removeprefix('nn.')} {shape_text(data.shape)} by {shape_text(weight.shape)}"
    taken, *_ = sizes
    if chain.is_alone and self.factors == FLOAT32 and is_less(expected[plain], expected[taken]):
        taken = plain
    return sizes[self.choosing.decide(self.site, subject, expected, taken, "layout", call)]


def _tile(self: _Block, call: graph.Call, blocks: tuple[int, int], pictures: Pictures | Phases | None) -> int:
    """The tile with which a convolution of data and results in ``blocks`` of these sizes runs by Winograd's algorithm, 0 for the direct way;
    recorded. That of a film, or with dilation, runs as one of ``pictures``."""
    data, weight = call.args[0].sinfo, call.args[1]
    subject = f"{call.op.name.removeprefix('nn.')} {shape_text(data.shape)} by {shape_text(weight.data.shape)}"
    winograd = [name for m, name in NAMES.items() if m]
    if pictures is None:
        algorithms = convolution_algorithms(data, weight.sinfo, call.attrs, self.expectations, self.factors)
    else:
        copying = lambda: sum(map(self.expectations.cycles, pictures.copying(self.lanes)))
        algorithms = convolution_algorithms(pictures.data, pictures.kernel, pictures.attrs, self.expectations, self.factors, copying)
        if isinstance(pictures, Phases) and algorithms[NAMES[0]] is not None:  # the direct way takes no phases, and leaves out what reads padding
            algorithms[NAMES[0]] = direct_cycles(data, weight.sinfo, call.attrs, self.expectations) * pictures.inside
    why_not = "what is around its data is not zero" if len(call.args) > 2 else ""
    why_not = why_not or ("" if _divides(data.shape[1], blocks[0]) else f"its channels do not divide into blocks of {blocks[0]}")
    why_not = why_not or ("" if blocks[1] == self.lanes else f"its results are in blocks of {blocks[1]} channels, a vector holds {self.lanes}")
    if why_not:
        algorithms = {name: why_not if not isinstance(found, str) and name in winograd else found for name, found in algorithms.items()}
    wanted = self.choosing.wanted(self.site, algorithms, call) or fastest(algorithms)
    if wanted in winograd and not is_transformable(weight):  # asked last, since it reads the weights
        algorithms |= dict.fromkeys(winograd, "its weights are whole numbers, or so large, or not finite, that sums might overflow")
    taken = self.choosing.decide(self.site, subject, algorithms, fastest(algorithms), of=call)
    return next(m for m, name in NAMES.items() if name == taken)


def _winograd(self: _Block, call: graph.Call, sizes: tuple[int, int, int], pictures: Pictures | Phases | None) -> graph.GraphExpr:
    """A convolution by Winograd's algorithm; ``sizes``: its tile and the blocks of data and result."""
    tile, inner, outer = sizes
    x, weight, attrs = self.in_blocks(call.args[0], inner), call.args[1], call.attrs
    if pictures is not None:
        x, weight, attrs = pictures.stacked(self.emit, x), pictures.weights(weight), pictures.attrs
    kernels = winograd_weight(weight, tile, inner, outer), _blocked_weight(weight, inner, outer)
    made = make("nn.winograd_conv2d", x, *kernels, tile=tile, padding=attrs["padding"], data_layout=f"NCHW{inner}c")
    return made if pictures is None else pictures.restored(self.emit, made)


def _transposed_convolution(self: _Block, call: graph.Call) -> Made:
    """A transposed convolution of stride s is one of stride 1 that computes all phases of a place (for two axes s * s) as channels of one
    pixel, with as many taps as each phase has: result[s * q + r] = sum over j of data[q - j] * weight[r + s * j]. Then pixels are put in place."""
    data, weight, a = call.args[0], call.args[1], call.attrs
    axes = data.sinfo.ndim - 2
    if len(call.args) > 2 or not isinstance(weight, graph.Constant) or data.sinfo.dtype != "float32" or a["groups"] != 1 or a.get("out_layout"):
        return None
    space = _space(data.sinfo.ndim)
    if (a["data_layout"], a["kernel_layout"]) != (f"NC{space}", f"IO{space}") or set(per_axis(a["dilation"], axes)) != {1}:
        return None
    strides, outer = per_axis(a["strides"], axes), weight.data.shape[1]
    if set(strides) == {1}:
        return None
    before, taps = _taps(a, weight.data.shape[2:], strides)
    pieces = _phases(weight.data.numpy(), strides, taps)
    around = tuple(t - 1 for t in taps)
    made = _convolution(self, make(f"nn.conv{axes}d", data, graph.Constant.of(pieces), padding=(*around, *around)), len(pieces))
    if made is None:
        return None
    n, places = made[0].sinfo.shape[0], [made[0].sinfo.shape[_axis(2 + axes, 2 + k)] for k in range(axes)]
    sizes = call.sinfo.shape[2:]
    cut = self.emit(make("reshape", self.emit(made[0]), graph.ShapeExpr((n, *places, *map(tir.index_const, (*strides, outer))))))
    pairs = (k for axis in range(axes) for k in (1 + axis, 1 + axes + axis))
    placed = self.emit(make("permute_dims", cut, axes=(0, *pairs, 1 + 2 * axes)))
    whole = (n, tir.index_const(1), *(p * s for p, s in zip(places, strides, strict=True)))
    result = make("reshape", placed, graph.ShapeExpr((*_ordered(whole), tir.index_const(outer))))
    if any(before) or any(have is not want for have, want in zip(whole[2:], sizes, strict=True)):
        begin, end = [tir.index_const(p) for p in before], [p + size for p, size in zip(before, sizes, strict=True)]
        bounds = (graph.ShapeExpr(tuple(x)) for x in ([tir.index_const(_axis(2 + axes, 2 + k)) for k in range(axes)], begin, end))
        result = make("strided_slice", self.emit(result), *bounds, assume_inbound=True)
    return result, outer


def _taps(a: Any, kernel: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each axis what the padding cuts off before, and the taps of a phase (those that only add zeros included, where the padding
    after the result is less than what the result goes beyond)."""
    pads, more = paddings(a["padding"], len(kernel)), per_axis(a["output_padding"], len(kernel))
    taps = tuple(max(-(-k // s), -(-(k + e - after) // s), 1) for k, s, e, (_, after) in zip(kernel, strides, more, pads, strict=True))
    return tuple(lo for lo, _ in pads), taps


def _phases(weight: np.ndarray, strides: tuple[int, ...], taps: tuple[int, ...]) -> np.ndarray:
    """The weights [I, O, *kernel] of a transposed convolution as those of a plain one, [phases * O, I, *taps]."""
    inner, outer, *kernel = weight.shape
    padded = np.zeros((inner, outer, *(s * t for s, t in zip(strides, taps, strict=True))), weight.dtype)
    padded[(slice(None), slice(None), *(slice(k) for k in kernel))] = weight
    axes = range(len(taps))
    parts = np.flip(padded.reshape(inner, outer, *(n for pair in zip(taps, strides, strict=True) for n in pair)), [2 + 2 * k for k in axes])
    order = (*(3 + 2 * k for k in axes), 1, 0, *(2 + 2 * k for k in axes))
    return np.ascontiguousarray(parts.transpose(order)).reshape(-1, inner, *taps)


def _blocked_weight(weight: graph.Constant, inner: int, outer: int) -> graph.Constant:
    """OIHW to OIHW{inner}i{outer}o (inner 0: OIHW{outer}o), for two axes of space or three."""
    o, i, *window = weight.data.shape
    blocks = (o // outer, outer, i // inner, inner, *window) if inner else (o // outer, outer, i, *window)
    first = 4 if inner else 3
    order = (0, 2, *range(first, first + len(window)), *((3, 1) if inner else (1,)))
    shape = tuple(blocks[axis] for axis in order)
    data = ConstData.derived(lambda a: a.reshape(blocks).transpose(order), (weight.data,), f"blocks {blocks} {order}", shape=shape, dtype=weight.data.dtype)
    return graph.Constant(data, graph.TensorInfo(data.shape, data.dtype))


def is_pointwise(call: graph.Call) -> bool:
    """Whether a call computes each element from the elements at its place, broadcast."""
    return isinstance(call.op, OpDef) and call.op.kind <= FuseKind.BROADCAST and "axis" not in call.op.attributes and "shape" not in call.op.operands \
        and all(isinstance(a, graph.Var | graph.Constant) for a in call.args)


def _pointwise(self: _Block, call: graph.Call) -> Made:
    rank = call.sinfo.ndim
    held = [self.blocked[a] for a in call.args if self.block_of(a) and a.sinfo.ndim == rank]
    if not held:
        return None
    block = max(b.block for b in held)
    args = []
    for a in call.args:
        converted = _broadcast(self, a, block, rank)
        if converted is None:
            return None
        args.append(converted)
    if held[0].expr.sinfo.ndim == rank:  # pictures of a film: so are the results, in the kernel that makes the operand
        args = [_as_pictures(self, x, call.sinfo) for x in args]
        if None in args:
            return None
    return make(call.op.name, *args, **dict(call.attrs)), block


def _as_pictures(self: _Block, value: graph.GraphExpr, info: graph.TensorInfo) -> graph.GraphExpr | None:
    """An operand [N, D, C/b, H, W, b] of a pointwise operator on films as [N * D, C/b, H, W, b]; None where it is repeated for only one of N and D."""
    shape = value.sinfo.shape
    if len(shape) <= info.ndim:
        return value
    if not _is_one(info.shape[0]) and _is_one(shape[0]) != _is_one(shape[1]):
        return None
    return self.emit(make("reshape", value, graph.ShapeExpr((simplify(shape[0] * shape[1]), *shape[2:]))))


def _broadcast(self: _Block, value: graph.GraphExpr, block: int, rank: int) -> graph.GraphExpr | None:
    """An operand in blocks of a pointwise operator with a result of so many dimensions; scalars and tensors of one channel get a trailing axis."""
    shape = value.sinfo.shape
    if shape is None:
        return None
    if self.block_of(value) == block and len(shape) == rank:
        return self.in_blocks(value, block)
    if all(_is_one(n) for n in shape):
        return self.emit(make("reshape", self._operand(value), graph.ShapeExpr(()))) if shape else value
    full = (tir.index_const(1),) * (rank - len(shape)) + tuple(shape)
    if _is_one(full[1]):
        return self.emit(make("reshape", self._operand(value), graph.ShapeExpr((*_ordered(full), tir.index_const(1)))))
    if not _divides(full[1], block):
        return None
    n, c, *space = full
    if all(map(_is_one, space)):
        cut = _ordered((n, tir.index_const(c.value // block), *space))
        return self.emit(make("reshape", self._operand(value), graph.ShapeExpr((*cut, tir.index_const(block)))))
    return self.in_blocks(value, block) if len(shape) == rank else None


def _is_one(n: tir.Expr) -> bool:
    return isinstance(n, tir.IntImm) and n.value == 1


def _pool(self: _Block, call: graph.Call) -> Made:
    block, space = self.block_of(call.args[0]), _space(call.sinfo.ndim)
    if not block or call.attrs["layout"] != f"NC{space}" or call.attrs.get("out_layout"):
        return None
    attrs = {k: v for k, v in call.attrs.items() if k not in ("layout", "out_layout")}
    return make(call.op.name, self.in_blocks(call.args[0], block), layout=f"{ORDERS[call.sinfo.ndim]}{block}c", **attrs), block


def _reduce(self: _Block, call: graph.Call) -> Made:
    block, rank = self.block_of(call.args[0]), call.sinfo.ndim
    axes = call.attrs.get("axis")
    axes = (axes,) if isinstance(axes, int) else axes
    if not block or axes is None or not call.attrs.get("keepdims") or {a % rank for a in axes} & {0, 1}:
        return None
    return make(call.op.name, self.in_blocks(call.args[0], block), axis=tuple(_axis(rank, a % rank) for a in axes), keepdims=True), block


def _resize(self: _Block, call: graph.Call) -> Made:
    """The axes of space resampled; blocks and channels stay. What is wanted in blocks and grows comes into blocks before."""
    data, size, *factors = call.args
    enters = self.var in self.wanted and _fills_blocks(data, self.lanes) and _elements(data) <= _elements(call)
    block, a = self.block_of(data) or (self.lanes if enters else 0), call.attrs
    scales = a["scales"] or (1.0, 1.0)
    if not block or factors or not isinstance(size, graph.ShapeExpr) or a["roi"] or tuple(scales[:2]) != (1.0, 1.0):
        return None
    x = self.in_blocks(data, block)
    if any(have is not want for have, want in zip(data.sinfo.shape[:2], size.values[:2], strict=True)):
        return None
    blocks = x.sinfo.shape[_axis(data.sinfo.ndim, 1)]
    sizes = graph.ShapeExpr((*_ordered((data.sinfo.shape[0], blocks, *size.values[2:])), x.sinfo.shape[-1]))
    return make("image.resize", x, sizes, **{**a, "scales": (*_ordered(scales), 1.0) if a["scales"] else None}), block


def _fills_blocks(value: graph.GraphExpr, block: int) -> bool:
    """Whether the shape of a value is known and its channels divide into blocks."""
    return value.sinfo.shape is not None and _divides(value.sinfo.shape[1], block)


def _elements(value: graph.GraphExpr) -> int:
    """Of a value; each size that is not known counts as 1."""
    return math.prod(static(n) or 1 for n in value.sinfo.shape or ())


def _concat(self: _Block, call: graph.Call) -> Made:
    fields = call.args[0].fields if isinstance(call.args[0], graph.Tuple) else ()
    held, rank = [self.block_of(f) for f in fields], call.sinfo.ndim
    if self.var in self.wanted and set(held) == {0, self.lanes} and all(_fills_blocks(f, self.lanes) for f in fields):
        held = [self.lanes] * len(fields)  # the others come into blocks here instead of the result
    if not fields or call.attrs["axis"] % rank != 1 or 0 in held:
        return None
    parts = lambda: graph.Tuple(tuple(self.in_blocks(f, block) for f, block in zip(fields, held, strict=True)))
    if all(_divides(f.sinfo.shape[1], block) and f.sinfo.shape[1].value == block for f, block in zip(fields, held, strict=True)):  # one block each
        return make("concat", parts(), axis=rank), sum(held)
    return (make("concat", parts(), axis=_axis(rank, 1)), held[0]) if len(set(held)) == 1 else None


_OPS: dict[str, Callable[[_Block, graph.Call], Made]] = {
    **{f"nn.conv{n}d": _convolution for n in (2, 3)}, **{f"nn.conv{n}d_transpose": _transposed_convolution for n in (2, 3)},
    **{f"nn.{kind}_pool{n}d": _pool for kind in ("max", "avg") for n in (2, 3)},
    "mean": _reduce, "sum": _reduce, "max": _reduce, "min": _reduce,
    "concat": _concat, "image.resize": _resize,
}
