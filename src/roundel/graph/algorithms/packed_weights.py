# SPDX-License-Identifier: Apache-2.0
"""Constant matrices of few bits stay packed in memory: products read their words and make numbers of them in registers.

    matmul(x, scale[k // size, n] * (float(q[k, n]) - zero[k // size, n]))   ->   packed_matmul(groups of x, words of q, scale, sums of groups of x, zero)

What matters is the structure of the weight's expression: whole numbers that 2, 4 or 8 bits hold, however they were unpacked, less zero points, times
scales, plus shifts, moved by operators that only move. Whether scales and zero points are for groups of rows, for columns or for all, their values tell. So
MatMulNBits, DequantizeLinear with blocks, GPTQ, AWQ and the blocks of GGUF are one case. Where rows of a group lie apart (GPTQ's order by activations), the
columns of the data are put in the order of groups. Runs before constants are folded.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from ...ir import graph, options, tir
from ...ir.dataclass import dataclass
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...ops.dims import shape_text, static
from ...ops.packed_matmul import BYTE, WORD
from ...ops.sliced_matmul import BYTES
from ...passes import pass_
from ...strategy.match.dot_product import fastest_group
from ...target import Target
from ..rewriter import GraphRewriter, is_call
from ..tidy.fold_constants import folded
from .narrow_weights import SMALLEST

MOVES = frozenset(("permute_dims", "reshape", "strided_slice", "expand_dims", "squeeze", "flatten"))
LONGEST = 256  # group of a sum, so that what becomes of it at once fits a cache
SLICED, PACKED, WIDE = "sliced", "packed", "float32"
SIGNED_BY_UNSIGNED = ("int8", "uint8", "int32")


@pass_("packed_weights")
def packed_weights(mod: IRModule) -> IRModule:
    """Products with dequantised constant matrices read these as they are stored."""
    return _Packed(mod).module()


@dataclass(frozen=True)
class Affine:
    """Numbers ``scale * (levels - zero) + shift``, all arrays that broadcast to the shape of the levels; ``is_scaled``: whether a scale was met."""

    levels: np.ndarray
    zero: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    is_scaled: bool = False

    def plus(self, by: np.ndarray) -> Affine:
        """With numbers added."""
        return replace(self, shift=self.shift + by) if self.is_scaled else replace(self, zero=self.zero - by)

    def times(self, by: np.ndarray) -> Affine:
        """With numbers multiplied."""
        return replace(self, scale=self.scale * by, shift=self.shift * by, is_scaled=True)

    def over(self, move: Callable[[np.ndarray], np.ndarray]) -> Affine:
        """As a function that only moves leaves them."""
        one = lambda x: move(np.broadcast_to(x, self.levels.shape))
        return Affine(one(self.levels), one(self.zero), one(self.scale), one(self.shift), self.is_scaled)


class _Packed(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.choosing.kind = "weights"
        self.target = mod.attrs.get("target") or Target.host()

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not (is_call(call, "matmul") or is_call(call, "linear")) or not call.sinfo.dtype.is_float:
            return call
        data, weight, *bias = call.args
        shape = None if weight.sinfo.shape is None else [static(n) for n in weight.sinfo.shape]
        if shape is None or len(shape) != 2 or None in shape or data.sinfo.ndim < 1 or data.sinfo.shape is None or not data.sinfo.dtype.is_float:
            return call
        if math.prod(n for n in shape if n) < SMALLEST or self.producer(weight) is None:
            return call
        found = self.affine(weight)
        if found is None:
            return call
        matrix = found if is_call(call, "matmul") else found.over(np.transpose)
        stored, order = pack(matrix), None
        if stored is None:
            order = by_factors(matrix)
            stored = None if order is None else pack(matrix.over(lambda x: x[order]))
        subject = f"weights {shape_text(matrix.levels.shape)} of {call.op.name}"  # type: ignore[union-attr]
        if stored is None:
            return call
        sliced = self.why_not_sliced(matrix.levels.shape[1])
        preferred = SLICED if sliced is None and stored.bits < BYTE else PACKED  # bytes become floats at the pace of memory
        taken = self.choosing.decide(self.site, subject, {SLICED: sliced, PACKED: None, WIDE: None}, preferred)
        if taken == WIDE:
            return call
        if order is not None:
            data = self.emit(make("take", data, graph.Constant.of(order), axis=data.sinfo.ndim - 1))
        out = packed_product(self.emit, data, stored, matrix.levels.shape[1], taken == SLICED)
        out = out if out.sinfo.dtype == call.sinfo.dtype else self.emit(make("astype", out, dtype=str(call.sinfo.dtype)))
        return make("add", out, bias[0]) if bias else out

    def why_not_sliced(self, columns: int) -> str | None:
        """Why rows are not cut into slices of bytes; None where they can be."""
        if options.get("accuracy") == "strict":
            return "the option accuracy is strict"
        if not (found := fastest_group(self.target, SIGNED_BY_UNSIGNED)):
            return "the machine has no instruction that sums products of signed and unsigned bytes"
        return None if columns % max(found) == 0 else f"{columns} columns fill no vectors"

    def affine(self, value: Any) -> Affine | None:
        """What a weight is made of, where it is made of whole numbers."""
        made = self.producer(value)
        if not isinstance(made, graph.Call) or not isinstance(made.op, OpDef):
            return None
        name = made.op.name
        if name in MOVES and all(isinstance(a, graph.ShapeExpr) and all(isinstance(v, tir.IntImm) for v in a.values) for a in made.args[1:]):
            inner = self.affine(made.args[0])
            rest = tuple(tuple(v.value for v in a.values) for a in made.args[1:])
            return None if inner is None else inner.over(lambda x: made.op.numpy((x, *rest), made.attrs))
        if name == "astype":
            return self.affine(made.args[0]) or (self._levels(made.args[0]) if made.args[0].sinfo.dtype.is_int else None)
        if name not in ("add", "subtract", "multiply"):
            return None
        for one, other in (made.args, made.args[::-1]) if name != "subtract" else (made.args,):
            inner = self.affine(one) if one.sinfo.shape == made.sinfo.shape else None
            by = None if inner is None else self.constant(other)
            if inner is not None and by is not None:
                by = by.astype(np.float64 if by.dtype.kind in "iu" else np.float32)
                return inner.times(by) if name == "multiply" else inner.plus(by if name == "add" else -by)
        return None

    def _levels(self, value: Any) -> Affine | None:
        """Constant whole numbers that eight bits hold."""
        levels = self.constant(value)
        if levels is None or levels.size == 0:
            return None
        levels = levels.astype(np.int32) if levels.dtype.itemsize < 4 else levels
        if int(levels.max()) - int(levels.min()) > 255:
            return None
        return Affine(levels.astype(np.int32), np.float32(0), np.float32(1), np.float32(0))  # type: ignore[arg-type]

    def constant(self, value: Any) -> np.ndarray | None:
        """The value of an expression of constants; None where it is none."""
        found = self._folded(value)
        return found.data.numpy() if isinstance(found, graph.Constant) else None

    def _folded(self, value: Any) -> Any:
        if isinstance(value, graph.Tuple):
            fields = tuple(map(self._folded, value.fields))
            return None if any(f is None for f in fields) else graph.Tuple(fields)
        if isinstance(value, graph.Constant | graph.ShapeExpr | graph.PrimValue):
            return value
        made = self.producer(value)
        if not isinstance(made, graph.Call) or not isinstance(made.op, OpDef):
            return None
        args = tuple(map(self._folded, made.args))
        if any(a is None for a in args):
            return None
        out = folded(made.replace(args=args))
        return out if isinstance(out, graph.Constant | graph.Tuple) else None


@dataclass(frozen=True)
class Packed:
    """A matrix as ``packed_matmul`` reads it; ``group`` rows have a scale of their own."""

    words: np.ndarray
    scales: np.ndarray
    bits: int
    group: int
    zero: float = 0.0
    shift: np.ndarray | None = None
    shift_is_scaled: bool = True


    def by_bytes(self) -> np.ndarray:
        """The words as ``sliced_matmul`` reads them: elements of one part of four bytes follow each other."""
        at = np.arange(0, WORD, self.bits, dtype=np.uint32)[None, :, None]
        levels = ((self.words[:, None] >> at) & np.uint32((1 << self.bits) - 1)).astype(np.uint8)
        parts = levels.reshape(len(self.words), BYTE // self.bits, BYTES, -1)
        return np.bitwise_or.reduce(parts << (np.arange(parts.shape[1]) * self.bits).astype(np.uint8)[:, None, None], axis=1).reshape(-1, parts.shape[-1])


def packed_product(emit: Callable[[graph.Call], graph.GraphExpr], data: graph.GraphExpr, stored: Packed, columns: int, sliced: bool = False) -> graph.GraphExpr:
    """The product of data of any rank with a packed matrix, in float32; ``sliced``: by instructions for bytes."""
    *lead, depth = data.sinfo.shape
    per = WORD // stored.bits
    groups, rows = stored.scales.shape[0], tir.product_of(lead) if lead else tir.index_const(1)
    shaped = lambda x, *sizes: emit(make("reshape", x, graph.ShapeExpr(tuple(tir.as_index(n) for n in sizes))))
    x = data if data.sinfo.dtype == "float32" else emit(make("astype", data, dtype="float32"))
    x = shaped(x, rows, depth)
    missing = groups * stored.group - static(depth)
    if missing:
        x = emit(make("nn.pad", x, graph.ShapeExpr(tuple(map(tir.index_const, (0, 0, 0, missing))))))
    of_groups = lambda name, x: emit(make(name, shaped(x, rows, groups, stored.group), axis=(2,)))
    shift = () if stored.shift is None else (graph.Constant.of(stored.shift),)
    attrs = {"bits": stored.bits, "zero": stored.zero, "shift_is_scaled": stored.shift_is_scaled}
    rest = (graph.Constant.of(stored.scales), of_groups("sum", x), *shift)
    if sliced:
        most = of_groups("max", emit(make("abs", x)))
        slices = emit(make("byte_slices", shaped(x, rows, groups, stored.group // per, per // BYTES, BYTES), most))
        out = make("sliced_matmul", slices, most, graph.Constant.of(stored.by_bytes()), *rest, **attrs)
    else:
        out = make("packed_matmul", shaped(x, rows, groups, stored.group // per, per), graph.Constant.of(stored.words), *rest, **attrs)
    return shaped(emit(out), *lead, columns)


def pack(a: Affine) -> Packed | None:
    """A matrix of few bits in words, the last group filled up; None where scales or zero points are not those of groups that fill words."""
    depth, columns = a.levels.shape
    low, high = int(a.levels.min()), int(a.levels.max())
    fits = [(bits, base) for bits in (2, 4, 8) for base in (0, -(1 << (bits - 1)), low) if base <= low and high < base + (1 << bits)]
    if not fits:
        return None
    bits, base = fits[0]
    per = WORD // bits
    factors = {n: np.broadcast_to(getattr(a, n), a.levels.shape) for n in ("scale", "zero", "shift")}
    group = _group(list(factors.values()), depth, per)
    if group is None:
        return None
    groups = -(-depth // group)
    scale, zero, shift = (factors[n][::group] for n in ("scale", "zero", "shift"))
    zero = (zero - base).astype(np.float32)
    levels = np.zeros((groups * group, columns), np.uint32)
    levels[:depth] = a.levels - base
    positions = np.arange(per, dtype=np.uint32) * np.uint32(bits)
    words = np.bitwise_or.reduce(levels.reshape(-1, per, columns) << positions[None, :, None], axis=1)
    found = Packed(words, narrowest(scale.astype(np.float32)), bits, group)
    if np.any(shift):
        return replace(found, shift=narrowest((shift - zero * scale).astype(np.float32)), shift_is_scaled=False)
    return replace(found, zero=float(zero.flat[0])) if np.all(zero == zero.flat[0]) else replace(found, shift=narrowest(zero))


def by_factors(a: Affine) -> np.ndarray | None:
    """An order of rows in which those with equal factors follow each other; None where they do already, or all rows have factors of their own."""
    depth = a.levels.shape[0]
    factors = [f for f in (np.broadcast_to(getattr(a, n), a.levels.shape) for n in ("scale", "zero", "shift")) if f.strides[0]]
    if not factors:
        return None
    kinds: dict[bytes, int] = {}
    group = np.array([kinds.setdefault(hashlib.sha256(b"".join(f[k].tobytes() for f in factors)).digest(), len(kinds)) for k in range(depth)])
    order = np.argsort(group, kind="stable")
    return None if len(kinds) == depth or np.array_equal(order, np.arange(depth)) else order


def _group(factors: list[np.ndarray], depth: int, per: int) -> int | None:
    """Rows that have the same factors in every column, as many as words and a cache allow."""
    size = 0
    for f in factors:
        if f.strides[0]:
            size = math.gcd(size, *(int(k) + 1 for k in np.flatnonzero((f[1:] != f[:-1]).any(axis=1))))
    if size % per:
        return None
    most = -(-(size or depth) // per) * per
    if most <= LONGEST:
        return most
    return max((n for n in range(per, LONGEST + 1, per) if most % n == 0 and (size == 0 or size % n == 0)), key=lambda n: (n >= LONGEST // 4, n), default=per)


def narrowest(array: np.ndarray) -> np.ndarray:
    """Numbers in the type of the fewest bits that holds them all."""
    for dtype in (np.uint8, np.float16, ml_dtypes.bfloat16):
        with np.errstate(all="ignore"):
            small = array.astype(dtype)
        if np.array_equal(small.astype(np.float32), array):
            return np.ascontiguousarray(small)
    return np.ascontiguousarray(array)
