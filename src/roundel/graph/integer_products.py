# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers with constant ones, written with wide integers, become products of the 8-bit integers themselves, where
the target has an instruction for them.

    matmul(int32(A) - z, int32(W))   ->   matmul(A, W, out_dtype="int32") - z * sum(W over rows)

The instruction takes unsigned data: signed data gets 128 added, and 128 more is taken off z. All of it is exact. Convolutions are such
products, whose border is filled with z instead of nothing.

Before constants are folded, products of dequantised matrices become such products, scaled afterwards:

    matmul(float(int32(A) - z) * s, float(int32(W) - y) * t)   ->   float(matmul(int32(A) - z, int32(W) - y)) * (s * t)
"""

from __future__ import annotations

import numpy as np

from ..ir import graph, tir
from ..ir.dtype import DType
from ..ir.module import IRModule
from ..ops import make
from ..passes import pass_
from ..target import Target
from .pattern import Match
from .rewriter import GraphRewriter, is_call
from .whole_numbers import bounds, fits

_GROUP = 4  # products that the instruction sums


@pass_("integer_products")
def integer_products(mod: IRModule) -> IRModule:
    """Give matrix products of 8-bit integers operands of 8 bits."""
    target = mod.attrs.get("target") or Target.host()
    return _Products(mod).module() if target.has_dot_product(target.lanes("int32")) else mod


@pass_("quantised_products")
def quantised_products(mod: IRModule) -> IRModule:
    """Have products of dequantised matrices, the second constant, summed in integers. Runs before constants are folded."""
    target = mod.attrs.get("target") or Target.host()
    return _Quantised(mod).module() if target.has_dot_product(target.lanes("int32")) else mod


class _Quantised(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not _is_product(call) or call.sinfo.dtype != "float32" or call.sinfo.ndim < 2:
            return call
        data = self._dequantised(call.args[0])
        weight = self.weights(call.args[1])
        if data is None or weight is None:
            return call
        wide, scale = data
        ints, by = weight
        columns = 1 if is_call(call, "matmul") else 0
        fits = ints.ndim == call.args[1].sinfo.ndim and _is_weight(call, ints) and abs(ints).max(initial=0) <= 127
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
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not _is_product(call) or call.sinfo.dtype != "int32" or call.args[0].sinfo.dtype != "int32":
            return call
        weight = _narrow(call)
        data, zero = self._without_zero(call.args[0])
        if weight is None or data is None or data.sinfo.ndim < 1:
            return call
        if data.sinfo.dtype == "int8":
            wide = self.emit(make("add", self.emit(make("astype", data, dtype="int32")), graph.Constant.of(np.int32(128))))
            data = self.emit(make("astype", wide, dtype="uint8"))
            zero = graph.Constant.of(np.int32(128)) if zero is None else self.emit(make("add", zero, graph.Constant.of(np.int32(128))))
        if not is_call(call, "matmul"):
            return self._convolution(call, data, weight, zero)
        return self._moved(make("matmul", data, graph.Constant.of(weight), out_dtype="int32"), zero, weight.sum(0, dtype=np.int32))

    def _convolution(self, call: graph.Call, data: graph.GraphExpr, weight: np.ndarray, zero: graph.GraphExpr | None) -> graph.GraphExpr:
        """Of bytes; missing channels of a group of four are zeros of the weights."""
        if zero is not None and zero.sinfo.size is not tir.index_const(1):
            return call
        missing = -weight.shape[1] % _GROUP if call.attrs["groups"] == 1 else 0
        if missing:
            weight = np.pad(weight, [(0, 0), (0, missing), (0, 0), (0, 0)])
            data = self.emit(make("nn.pad", data, graph.ShapeExpr(tuple(map(tir.index_const, (0, 0, 0, missing, 0, 0, 0, 0))))))
        border = {} if zero is None else {"fill": self.emit(make("astype", self.emit(make("reshape", zero, graph.ShapeExpr(()))), dtype="uint8"))}
        made = make("nn.conv2d", data, graph.Constant.of(weight), **(dict(call.attrs) | {"out_dtype": "int32"} | border))
        return self._moved(made, zero, weight.sum((1, 2, 3), dtype=np.int32).reshape(-1, 1, 1))

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

    def _bytes(self, value: graph.GraphExpr) -> graph.GraphExpr | None:
        """A tensor as one of 8-bit integers: it is one, or holds whole numbers that fit."""
        if value.sinfo.dtype in ("uint8", "int8"):
            return value
        found = bounds(value, Match(self.producer, {})) if value.sinfo.dtype.is_float else None
        dtype = None if found is None else next((d for d in (DType("uint8"), DType("int8")) if fits(found, d)), None)
        return None if dtype is None else self.emit(make("astype", value, dtype=dtype))


def _is_product(call: graph.Call) -> bool:
    return is_call(call, "matmul") or _is_convolution(call)


def _is_convolution(call: graph.Call) -> bool:
    """Whether a call is a convolution of pictures, all channels with all others or each with itself."""
    if not is_call(call, "nn.conv2d") or len(call.args) > 2:
        return False
    a, weight = call.attrs, call.args[1].sinfo.shape
    if weight is None or (a["data_layout"], a["kernel_layout"]) != ("NCHW", "OIHW") or a.get("out_layout"):
        return False
    by_itself = [n.value for n in weight[:2] if isinstance(n, tir.IntImm)] == [a["groups"], 1]
    return a["groups"] == 1 or by_itself


def _is_weight(call: graph.Call, array: np.ndarray) -> bool:
    """Whether there are products that come in groups of four, or can be filled up to such."""
    return 0 not in array.shape and (array.ndim == 4 if not is_call(call, "matmul") else array.ndim == 2 and array.shape[0] % _GROUP == 0)


def _per_column(call: graph.Call, values: np.ndarray) -> graph.Constant:
    """Numbers for each column of the weights, shaped to broadcast against the result."""
    flat = values.reshape(-1)
    return graph.Constant.of(flat if is_call(call, "matmul") else flat.reshape(1, -1, 1, 1))


def _narrow(call: graph.Call) -> np.ndarray | None:
    """Constant wide integers as 8-bit ones."""
    value = call.args[1]
    if not isinstance(value, graph.Constant):
        return None
    array = value.data.numpy()
    return array.astype(np.int8) if _is_weight(call, array) and array.min() >= -128 and array.max() <= 127 else None
