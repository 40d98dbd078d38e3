# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers with constant ones, written with wide integers, become products of the 8-bit integers themselves, where
the target has an instruction for them, or else of whole numbers in float32, of which it has many registers and multiply-adds.

    matmul(int32(A) - z, int32(W))   ->   matmul(A, W, out_dtype="int32") - z * sum(W over rows)

Where the instruction takes unsigned data only, signed data gets 128 added, and 128 more is taken off z; where it takes signed data only, the other
way around. Weights that 8 bits hold once they are moved
by c are, and c * sum(int32(A) - z) is added. All of it is exact. Convolutions over one to three axes are such products, whose border is filled with z
instead of nothing. What is missing to whole groups of data and to vectors of results is zeros of the weights; so are groups of few channels made one.

    float(matmul(int32(A) - z, int32(W)))   ->   matmul(float(A) - z, float(W))       where no sum can leave what float32 holds exactly

Sums that might leave it are made of parts. So results are those of integers on every machine: scales stand behind the sum.

Before constants are folded, products of dequantised matrices become such products, scaled afterwards:

    matmul(float(int32(A) - z) * s, float(int32(W) - y) * t)   ->   float(matmul(int32(A) - z, int32(W) - y)) * (s * t)
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...intrinsics.chips import of_target
from ...ir import graph, tir
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ops import make
from ...passes import pass_
from ...strategy.match.accelerated import chip_instructions
from ...strategy.match.dot_product import fastest_group, gain
from ...target import Target
from ..pattern import Match
from ..rewriter import GraphRewriter, is_call
from ..tidy.whole_numbers import Bounds, bounds, bounds_of_product, fits
from .narrow_weights import SMALLEST
from .packed_weights import Affine, pack, packed_product

_GROUP = 4  # products that the instruction sums
_FEW = 8  # columns, for which nothing is filled up
_MANY = 4  # vectors, to which another part of one adds little
_WIDEST = 16  # elements of a vector
_PARTS = 16  # of a sum, at most
_MOST_SUMMED = 2**31 // 255**2  # products of numbers of eight bits and a sign, that 32 bits hold


@pass_("integer_products")
def integer_products(mod: IRModule) -> IRModule:
    """Give matrix products of 8-bit integers operands of 8 bits."""
    target = mod.attrs.get("target") or Target.host()
    return _Products(mod, target).module()


@pass_("quantised_products")
def quantised_products(mod: IRModule) -> IRModule:
    """Have products of dequantised matrices, the second constant, summed in integers. Runs before constants are folded."""
    target = mod.attrs.get("target") or Target.host()
    return _Quantised(mod, target).module()


def data_types(target: Target) -> tuple[str, ...]:
    """The 8-bit types of data that the machine, or the accelerator that the target names, has products for, with signed weights."""
    chip = of_target(target)
    of_chip = {i.types for i in chip_instructions(chip)} if chip is not None else set()
    own = tuple(t for t in ("uint8", "int8") if (t, "int8", "int32") in of_chip)
    return own or tuple(t for t in ("uint8", "int8") if fastest_group(target, (t, "int8", "int32")))


class _Quantised(GraphRewriter):
    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__(mod)
        self.target = target

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not _is_product(call) or call.sinfo.dtype != "float32" or call.sinfo.ndim < 2:
            return call
        data = self._dequantised(call.args[0])
        weight = self.weights(call.args[1])
        if data is None or weight is None:
            return call
        wide, scale = data
        ints, by = weight
        columns = 0 if _is_convolution(call) else 1
        fits = ints.ndim == call.args[1].sinfo.ndim and _is_weight(call, ints) and ints.size // ints.shape[columns] <= _MOST_SUMMED
        if not fits or any(n != 1 for k, n in enumerate(by.shape) if k != columns) or scale.sinfo.size is not tir.index_const(1):
            return call
        made = make(call.op.name, wide, graph.Constant.of(ints), **(dict(call.attrs) | {"out_dtype": None}))
        total = self.emit(make("astype", self.emit(made), dtype="float32"))
        one = scale if scale.sinfo.ndim == 0 else self.emit(make("reshape", scale, graph.ShapeExpr(())))
        return make("multiply", total, self.emit(make("multiply", one, _per_column(call, by.astype(np.float32)))))

    def _dequantised(self, value: graph.GraphExpr) -> tuple[graph.GraphExpr, graph.GraphExpr] | None:
        """The int32 tensor (8-bit numbers less their zero point) and the scale that ``value`` is the product of."""
        made = self._made(value)
        if not is_call(made, "multiply"):
            return None
        whole, scale = self._made(made.args[0]), made.args[1]
        if not is_call(whole, "astype") or whole.sinfo.dtype != "float32" or whole.args[0].sinfo.dtype != "int32" or whole.sinfo.shape != value.sinfo.shape:
            return None
        wide = self._made(whole.args[0])
        wide = self._made(wide.args[0]) if is_call(wide, "subtract") else wide
        return (whole.args[0], scale) if is_call(wide, "astype") and wide.args[0].sinfo.dtype in ("uint8", "int8") else None

    def _made(self, value: graph.GraphExpr) -> graph.GraphExpr | None:
        """What a variable is bound to, conversions to the type that a tensor has left aside."""
        made = self.producer(value)
        while is_call(made, "astype") and made.args[0].sinfo.dtype == made.sinfo.dtype:
            made = self.producer(made.args[0])
        return made

    def weights(self, value: graph.GraphExpr) -> tuple[np.ndarray, np.ndarray] | None:
        """A constant dequantised matrix: whole numbers, and scales with as many dimensions."""
        made = self._made(value)
        if is_call(made, "permute_dims"):
            inner = self.weights(made.args[0])
            axes = made.attrs.get("axes")
            return None if inner is None else (inner[0].transpose(axes), inner[1].transpose(axes))
        found = self._dequantised(value)
        if found is None or not isinstance(found[1], graph.Constant):
            return None
        ints = self.whole_numbers(found[0])
        scale = found[1].data.numpy()
        return None if ints is None else (ints, scale.reshape((1,) * (ints.ndim - scale.ndim) + scale.shape))

    def whole_numbers(self, value: graph.GraphExpr) -> np.ndarray | None:
        """Constant 8-bit numbers less their zero point."""
        made, zero = self._made(value), np.int32(0)
        if is_call(made, "subtract"):
            zero = self.whole_numbers(made.args[1]) if not isinstance(made.args[1], graph.Constant) else made.args[1].data.numpy()
            made = self._made(made.args[0])
        if zero is None or not is_call(made, "astype") or not isinstance(made.args[0], graph.Constant):
            return None
        return (made.args[0].data.numpy().astype(np.int32) - zero).astype(np.int32)


class _Products(GraphRewriter):
    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__(mod)
        self.target = target
        self.exact: dict[graph.Var, graph.GraphExpr] = {}  # sums of integers that float32 holds, as they are there
        self.floats: dict[graph.GraphExpr, graph.GraphExpr] = {}  # data, likewise

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        outside, self.exact, self.floats = (self.exact, self.floats), {}, {}  # what is made in a branch is not seen outside of it
        out = super().seq(expr)
        self.exact, self.floats = outside
        return out

    @cached_property
    def gains(self) -> dict[str, float]:
        """By the types of data, how many times as many products as of floats an instruction computes."""
        return {t: gain(self.target, (t, "int8", "int32")) for t in data_types(self.target)}

    @cached_property
    def types(self) -> frozenset[str]:
        """Of data, those that the fastest instructions take."""
        return frozenset(t for t, found in self.gains.items() if found == max(self.gains.values()))

    def _merged(self, call: graph.Call) -> int:
        """How many neighbouring groups of channels are computed as one, so that it has whole vectors of both channels; 0 where products with zeros would
        cost more than half of what the instruction gains. Boards have no vectors to fill."""
        groups, lanes = call.attrs["groups"], self.target.lanes("float32")
        outer, inner = (n.value for n in call.args[1].sinfo.shape[:2])
        most = max(1, int(max(self.gains.values()) / 2))
        whole = lambda m: groups % m == 0 == m * inner % lanes == m * (outer // groups) % lanes
        return next((m for m in range(1, most + 1) if self.target.is_bare or whole(m)), 0)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if is_call(call, "astype") and call.sinfo.dtype == "float32" and call.args[0] in self.exact:
            return self.exact[call.args[0]]
        if self._asks_for_others(call):
            wide = [self.emit(make("astype", call.args[0], dtype="int32")), graph.Constant.of(call.args[1].data.numpy().astype(np.int32))]
            call = make(call.op.name, *wide, **(dict(call.attrs) | {"out_dtype": None}))
        if not _is_product(call) or call.sinfo.dtype != "int32" or call.args[0].sinfo.dtype != "int32":
            return call
        found = None if _is_transposed(call) else _narrow(call)
        data, zero = self._without_zero(call.args[0])
        if data is None or data.sinfo.ndim < 1:
            return call
        if found is None or not self.types or (_is_grouped(call) and not self._merged(call)):
            return self._as_floats(call, data, zero)
        weight, moved = found
        if data.sinfo.dtype not in self.types:
            by = graph.Constant.of(np.int32(128 if data.sinfo.dtype == "int8" else -128))
            whole = self._floats(data) or self.emit(make("astype", data, dtype="int32"))
            wide = self.emit(make("add", whole, graph.Constant.of(whole.sinfo.dtype.numpy.type(by.data.numpy()))))
            data = self.emit(make("astype", wide, dtype=min(self.types)))
            zero = by if zero is None else self.emit(make("add", zero, by))
        if is_call(call, "matmul"):
            out = self._matmul(data, weight, zero)
        elif zero is None or zero.sinfo.size is tir.index_const(1):
            out = self._convolution(call, data, weight, zero)
        else:
            return call
        if not moved:
            return out
        sums = self.emit(make("multiply", self.emit(self._sums_of_data(call, binding)), graph.Constant.of(np.int32(moved))))
        return make("add", self.emit(out), sums)

    def _asks_for_others(self, call: graph.Call) -> bool:
        """Whether a product takes bytes as they are, and data of a type that the fastest instructions do not."""
        data, weight = call.args[:2] if _is_product(call) and not _is_transposed(call) else (None, None)
        if data is None or not isinstance(weight, graph.Constant) or call.sinfo.dtype != "int32":
            return False
        narrow = data.sinfo.dtype in ("uint8", "int8") and weight.sinfo.dtype in ("uint8", "int8")
        return narrow and bool(self.types) and data.sinfo.dtype not in self.types

    def _as_floats(self, call: graph.Call, data: graph.GraphExpr, zero: graph.GraphExpr | None) -> graph.GraphExpr:
        """The product of whole numbers in float32, in parts where it must be; the call itself for what gains nothing by that."""
        weight = call.args[1].data.numpy() if isinstance(call.args[1], graph.Constant) else None
        limits = self._limits(data, zero)
        if weight is None or limits is None or self.target.is_bare or weight.ndim < 2 or 0 in weight.shape:
            return call
        whole = self._whole(call.args[0])
        if is_exact(weight, _summed(call), limits):
            total = self._product_of_floats(call, whole, weight)
            out = self.emit(make("astype", total, dtype="int32"))
            self.exact[out] = total
            return out
        axis, along = (-1, 0) if is_call(call, "matmul") else (1, 0) if _is_transposed(call) else (1, 1)
        parts = _parts(weight, _summed(call), along, limits)
        if parts is None or (along == 1 and call.attrs["groups"] > 1):
            return call
        sums = [self.emit(make("astype", self._product_of_floats(call, self._slice(whole, axis, *part), weight.take(range(*part), along)), dtype="int32"))
                for part in parts]
        for other in sums[1:-1]:
            sums[0] = self.emit(make("add", sums[0], other))
        return make("add", sums[0], sums[-1])

    def _product_of_floats(self, call: graph.Call, data: graph.GraphExpr, weight: np.ndarray) -> graph.GraphExpr:
        """A product whose sums are exact. Large matrices stay in their bytes."""
        attrs = dict(call.attrs) | {"out_dtype": None}
        if is_call(call, "matmul") and weight.size >= SMALLEST:
            stored = pack(Affine(weight.astype(np.int32), np.float32(0), np.float32(1), np.float32(0)))  # type: ignore[arg-type]
            if stored is not None:
                return packed_product(self.emit, data, stored, weight.shape[1])
        return self.emit(make(call.op.name, data, graph.Constant.of(weight.astype(np.float32)), **attrs))

    def _slice(self, value: graph.GraphExpr, axis: int, first: int, end: int) -> graph.GraphExpr:
        begin, stop, step = ((tir.index_const(n),) for n in (first, end, 1))
        return self.emit(make("strided_slice", value, axes=(axis % value.sinfo.ndim,), begin=begin, end=stop, strides=step))

    def _whole(self, wide: graph.GraphExpr) -> graph.GraphExpr:
        """8-bit integers less their zero point, of int32, as float32."""
        if wide not in self.floats:
            made, zero = self.producer(wide), None
            if is_call(made, "subtract"):
                made, zero = self.producer(made.args[0]), self.emit(make("astype", made.args[1], dtype="float32"))
            source = made.args[0]
            if source.sinfo.dtype != "float32":
                source = self._floats(source) or self.emit(make("astype", source, dtype="float32"))
            self.floats[wide] = source if zero is None else self.emit(make("subtract", source, zero))
        return self.floats[wide]

    def _limits(self, data: graph.GraphExpr, zero: graph.GraphExpr | None) -> Bounds | None:
        """Between which numbers 8-bit data less its zero point are."""
        low, high = bounds(data, Match(self.producer, {})) or (0.0, 0.0)
        if zero is None:
            return low, high
        if isinstance(zero, graph.Constant):
            least, most = float(zero.data.numpy().min()), float(zero.data.numpy().max())
            return low - most, high - least
        made = self.producer(zero)
        inside = bounds(made.args[0], Match(self.producer, {})) if is_call(made, "astype") else None
        return None if inside is None or inside == (-np.inf, np.inf) else (low - inside[1], high - inside[0])

    def _sums_of_data(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """The sum of all data that each result is made of: over channels, by the same instruction, then over the window."""
        wide, weight = call.args[:2]
        if is_call(call, "matmul"):
            return make("sum", wide, axis=-1, keepdims=True)
        _, channels, *window = (n.value for n in weight.sinfo.shape)
        ones = [graph.Constant.of(np.ones(shape, np.int32)) for shape in ((1, channels, *(1 for _ in window)), (1, 1, *window))]
        return make(call.op.name, self.emit(self.call(make(call.op.name, wide, ones[0]), binding)), ones[1], **dict(call.attrs))

    def _matmul(self, data: graph.GraphExpr, weight: np.ndarray, zero: graph.GraphExpr | None) -> graph.GraphExpr:
        k, n = weight.shape
        weight = np.pad(weight, [(0, -k % _GROUP), (0, self._columns_missing(n, str(data.sinfo.dtype)))])
        if k % _GROUP:
            data = self._widened(data, data.sinfo.ndim - 1, -k % _GROUP)
        total = self._first(make("matmul", data, graph.Constant.of(weight), out_dtype="int32"), -1, n)
        return self._moved(total, zero, weight[:, :n].sum(0, dtype=np.int32))

    def _columns_missing(self, n: int, dtype: str) -> int:
        """To fill vectors: those of the widest instruction where columns are many and fill not even its halves (764 by 224 in vectors of 16 and not of 4:
        0.64 of the time on Zen 4)."""
        widest = max(fastest_group(self.target, (dtype, "int8", "int32")), default=1)
        return -n % widest if n > _MANY * widest and n % max(widest // 2, 1) else _missing(n)

    def _convolution(self, call: graph.Call, data: graph.GraphExpr, weight: np.ndarray, zero: graph.GraphExpr | None) -> graph.GraphExpr:
        groups = call.attrs["groups"]
        if _is_grouped(call):
            together = self._merged(call)
            weight, groups = _as_one(weight, groups, together), groups // together
        (outer, inner), axes = weight.shape[:2], tuple(range(1, weight.ndim))
        if groups == 1:
            more = 0 if self.target.is_bare else -inner % _GROUP
            weight = np.pad(weight, [(0, _missing(outer)), (0, more), *((0, 0) for _ in axes[1:])])
            data = self._widened(data, 1, more) if more else data
        border = {} if zero is None else {"fill": self.emit(make("astype", self.emit(make("reshape", zero, graph.ShapeExpr(()))), dtype=str(data.sinfo.dtype)))}
        made = make(call.op.name, data, graph.Constant.of(weight), **(dict(call.attrs) | {"out_dtype": "int32", "groups": groups} | border))
        return self._moved(self._first(made, 1, outer), zero, weight[:outer].sum(axes, dtype=np.int32).reshape(-1, *(1 for _ in axes[1:])))

    def _widened(self, data: graph.GraphExpr, axis: int, by: int) -> graph.GraphExpr:
        """Data with ``by`` more elements along an axis."""
        widths = [0] * (2 * data.sinfo.ndim)
        widths[2 * axis + 1] = by
        return self.emit(make("nn.pad", data, graph.ShapeExpr(tuple(map(tir.index_const, widths)))))

    def _first(self, total: graph.Call, axis: int, count: int) -> graph.Call:
        """The first of the columns, where the product has more."""
        axis %= total.sinfo.ndim
        if total.sinfo.shape[axis] is tir.index_const(count):
            return total
        begin, end, step = ((tir.index_const(n),) for n in (0, count, 1))
        return make("strided_slice", self.emit(total), axes=(axis,), begin=begin, end=end, strides=step)

    def _moved(self, total: graph.Call, zero: graph.GraphExpr | None, sums: np.ndarray) -> graph.GraphExpr:
        """A sum of products without what the data's zero point adds to it."""
        if zero is None:
            return total
        return make("subtract", self.emit(total), self.emit(make("multiply", zero, graph.Constant.of(sums))))

    def _without_zero(self, value: graph.GraphExpr) -> tuple[graph.GraphExpr | None, graph.GraphExpr | None]:
        """The 8-bit tensor that a wide one is made of, and its zero point (one for each row at most), None for none."""
        made, zero = self.producer(value), None
        if is_call(made, "subtract"):
            zero = made.args[1]
            shape = zero.sinfo.shape
            if shape is None or (shape and not (isinstance(shape[-1], tir.IntImm) and shape[-1].value == 1)) or len(shape) > value.sinfo.ndim:
                return None, None
            made = self.producer(made.args[0])
        if not is_call(made, "astype") or made.args[0].sinfo.shape != value.sinfo.shape:
            return None, None
        return self._bytes(made.args[0]), zero

    def _floats(self, data: graph.GraphExpr) -> graph.GraphExpr | None:
        """The whole numbers, in float32, that bytes were converted from."""
        made = self.producer(data)
        source = made.args[0] if is_call(made, "astype") else None
        return source if source is not None and source.sinfo.dtype == "float32" and bounds(source, Match(self.producer, {})) is not None else None

    def _bytes(self, value: graph.GraphExpr) -> graph.GraphExpr | None:
        """A tensor as one of 8-bit integers: it is one, or holds whole numbers that fit."""
        if value.sinfo.dtype in ("uint8", "int8"):
            return value
        found = bounds(value, Match(self.producer, {})) if value.sinfo.dtype.is_float else None
        dtype = None if found is None else next((d for d in (DType("uint8"), DType("int8")) if fits(found, d)), None)
        return None if dtype is None else self.emit(make("astype", value, dtype=dtype))


def is_exact(weight: np.ndarray, summed: tuple[int, ...], data: Bounds) -> bool:
    """Whether sums of products of whole weights with data between these numbers, in any order, are whole numbers that float32 holds."""
    return fits(bounds_of_product(weight, summed, data), DType("float32"))


def _summed(call: graph.Call) -> tuple[int, ...]:
    """The axes of the weights that are summed over."""
    window = tuple(range(2, call.args[1].sinfo.ndim))
    return (0, *window) if is_call(call, "matmul") or _is_transposed(call) else (1, *window)


def _parts(weight: np.ndarray, summed: tuple[int, ...], axis: int, data: Bounds) -> list[tuple[int, int]] | None:
    """The fewest equal parts, of whole vectors, along an axis of the sum that are exact each."""
    n = weight.shape[axis]
    for size in (n // count for count in range(2, _PARTS + 1) if n % (count * _WIDEST) == 0):
        found = [(k, k + size) for k in range(0, n, size)]
        if all(is_exact(weight.take(range(*part), axis), summed, data) for part in found):
            return found
    return None


_USUAL = {f"nn.conv{n}d{kind}": ("NC" + "DHW"[-n:], weights + "DHW"[-n:]) for n in (1, 2, 3) for kind, weights in (("", "OI"), ("_transpose", "IO"))}
"""Of convolutions, the layouts of data and weights in which models give them."""


def _is_product(call: graph.Call) -> bool:
    """Whether a call is a matrix product, or a convolution, transposed (without groups) or not, in the usual layouts."""
    name = getattr(call.op, "name", "")
    layouts, a = _USUAL.get(name), call.attrs
    if layouts is None:
        return is_call(call, "matmul")
    usual = layouts == (a["data_layout"], a["kernel_layout"]) and len(call.args) == 2 and call.args[1].sinfo.shape is not None and not a["out_layout"]
    return usual and not (a["groups"] > 1 and _is_transposed(call))


def _is_transposed(call: graph.Call) -> bool:
    """Whether a product is a transposed convolution."""
    return call.op.name.endswith("transpose")  # type: ignore[union-attr]


def _is_convolution(call: graph.Call) -> bool:
    """Whether a product is a convolution, and no transposed one."""
    return not is_call(call, "matmul") and not _is_transposed(call)


def _is_grouped(call: graph.Call) -> bool:
    """Whether a convolution has several groups of several channels."""
    return _is_convolution(call) and call.attrs["groups"] > 1 and not _is_by_itself(call)


def _is_by_itself(call: graph.Call) -> bool:
    """Whether each channel of a convolution is multiplied with itself alone."""
    return [n.value for n in call.args[1].sinfo.shape[:2] if isinstance(n, tir.IntImm)] == [call.attrs["groups"], 1]


def _as_one(weight: np.ndarray, groups: int, together: int) -> np.ndarray:
    """The weights of a convolution in groups, of which so many neighbours become one: zeros for data of the others."""
    outer, inner, *window = weight.shape
    parts = weight.reshape(groups // together, together, outer // groups, inner, *window)
    wide = np.zeros((*parts.shape[:3], together, inner, *window), weight.dtype)
    for k in range(together):
        wide[:, k, :, k] = parts[:, k]
    return wide.reshape(outer, together * inner, *window)


def _is_weight(call: graph.Call, array: np.ndarray) -> bool:
    """Whether there are products that come in groups of four and fill vectors, or are many enough to be filled up to such."""
    is_matrix = is_call(call, "matmul")
    if 0 in array.shape or array.ndim != (2 if is_matrix else call.args[1].sinfo.ndim):
        return False
    return not is_matrix or array.shape[0] % _GROUP == 0 == _missing(array.shape[1]) or array.shape[1] >= _FEW


def _missing(columns: int) -> int:
    """To fill vectors of some length: of four where there are few, of 16 where there are many."""
    return -columns % (16 if columns > 16 else _GROUP) if columns % _GROUP else 0


def _per_column(call: graph.Call, values: np.ndarray) -> graph.Constant:
    """Numbers for each column of the weights, shaped to broadcast against the result."""
    flat = values.reshape(-1)
    return graph.Constant.of(flat if is_call(call, "matmul") else flat.reshape(1, -1, *(1 for _ in call.args[1].sinfo.shape[2:])))


def _narrow(call: graph.Call) -> tuple[np.ndarray, int] | None:
    """Constant wide integers as 8-bit ones, and by how much they are more than these. Where channels are by themselves, no instruction asks
    for 8 bits: 16 do."""
    value = call.args[1]
    array = value.data.numpy() if isinstance(value, graph.Constant) else np.zeros(0)
    if not _is_weight(call, array):
        return None
    low, high = int(array.min()), int(array.max())
    if low >= -128 and high <= 127:
        return array.astype(np.int8), 0
    if not is_call(call, "matmul") and call.attrs["groups"] > 1:
        return (array.astype(np.int16), 0) if low >= -255 and high <= 255 and _is_by_itself(call) else None
    return ((array - (high - 127)).astype(np.int8), high - 127) if high - low <= 255 else None

