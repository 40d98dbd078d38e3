# SPDX-License-Identifier: Apache-2.0
"""oneDNN 3: convolutions and products of float32, bfloat16 and 8-bit numbers, with what follows them (``pip install onednn-cpu-gomp``)."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ops.dims import paddings, per_axis
from ..relax.patterns import is_const, is_op, wildcard
from ..target import Target
from .backend import Backend, Composite, Form, Kernel, native, shared
from .library import Library
from .onednn_calls import DECLARATIONS, SOURCE, STATUSES

_SHARE = 0.85  # of the processor's peak that its products reach
_START = 3000.0  # cycles of a call
_TYPES = {"": 0, "float32": 3, "bfloat16": 2, "int32": 4, "int8": 5, "uint8": 6}  # dnnl_data_type_t
_FUNCTIONS = {"nn.relu": 2, "nn.gelu": 3, "nn.gelu_tanh": 4, "nn.silu": 5, "sigmoid": 6, "tanh": 7, "nn.hardswish": 9}
_ADD, _CLIP = 1, 8
_BYTES = {"uint8": (0, 255), "int8": (-128, 127)}
_GAINS = {"bfloat16": 1.8, "uint8": 3.5, "int8": 3.0}  # over float32


def _files() -> Sequence[str]:
    """The file of the package on this machine, then the names under which systems know it."""
    return [str(Path(sys.prefix) / "lib" / "libdnnl.so.3"), "libdnnl.so.3"]


LIBRARY = Library("onednn", DECLARATIONS, SOURCE, _files)


class _Refused(Exception):
    """Why oneDNN cannot compute a part of a graph."""


class _After:
    """What follows the product: a scale and a number to be added for each channel, then tensors to be added and functions, in order."""

    def __init__(self, c: Composite, product: graph.Call, channel: int) -> None:
        self.c, self.channel = c, channel  # the channels' axis, counted from the last
        self.bias: int | None = None
        self.scale: int | None = None
        self.other: int | None = None
        self.integers = str(product.sinfo.dtype) == "int32"
        self.ops: list[int] = []
        self.limits = [-math.inf, math.inf]
        value: Any = product
        for b in c.function.body.bindings:
            if b.value is product:
                value = b.var
            elif isinstance(b.value, graph.Call) and value in b.value.args:
                self._add(b.value, value)
                value = b.var

    def _add(self, call: graph.Call, value: Any) -> None:
        name = call.op.name  # type: ignore[union-attr]
        beside = next((self.c.position(a) for a in call.args if a is not value), None)
        if name in _FUNCTIONS:
            self.ops.append(_FUNCTIONS[name])
        elif name in ("maximum", "minimum") and beside in self.c.constants and self.c.constants[beside].size == 1:
            low = name == "maximum"
            if low or self.ops[-1:] != [_CLIP] or self.limits[1] != math.inf:  # the least first, then the greatest
                self._once(_CLIP)
            self.limits[0 if low else 1] = float(self.c.constants[beside].reshape(()))
            if self.limits[0] > self.limits[1]:
                raise _Refused("the least is greater than the greatest value")
        elif name == "astype" and str(value.sinfo.dtype) == "int32":
            pass
        elif name == "multiply" and beside in self.c.constants and self.scale is None and self.bias is None and not self.ops and self.integers:
            if self.c.constants[beside].size > 1 and not self._per_channel(beside):
                raise _Refused("scales are for channels, or one for all")
            self.scale = beside
        elif name == "add" and beside is not None and beside in self.c.constants and not self.ops and self.bias is None and self._per_channel(beside):
            self.bias = beside
        elif name == "add" and beside is not None and _equal(self.c.operands[beside].shape, self.c.result.shape):
            self._once(_ADD)
            self.other = beside
        else:
            raise _Refused(f"it has no {name} of such operands after a product")

    def _once(self, op: int) -> None:
        if op in self.ops:
            raise _Refused("two such operators follow one product")
        self.ops.append(op)

    def _per_channel(self, k: int) -> bool:
        shape = self.c.constants[k].shape
        axis = len(shape) - self.channel
        channels = Analyzer().value(self.c.result.shape[-self.channel])
        return axis >= 0 and shape[axis] == channels and math.prod(shape) == channels

    @property
    def numbers(self) -> list[int]:
        """The operators and the limits of one of them, as numbers."""
        bits = [int.from_bytes(struct.pack("<f", x), "little") for x in self.limits]
        return [sum(op << 4 * k for k, op in enumerate(self.ops)), *bits]


def _implement(c: Composite) -> Kernel | str:
    if LIBRARY.missing:
        return LIBRARY.missing
    try:
        return _convolution(c, c.calls["nn.conv2d"]) if "nn.conv2d" in c.calls else _product(c, c.calls["matmul"])
    except _Refused as refused:
        return str(refused)


@dataclass(frozen=True)
class _Data:
    """What is multiplied: operands ``x`` and ``w``, the zero point of x, and the type in which x is held."""

    x: int
    w: int
    dtype: str
    zero: int = 0

    @classmethod
    def of(cls, c: Composite, call: graph.Call) -> _Data:
        x, w = (c.position(v) for v in call.args[:2])
        zero = 0
        made = c.calls.get("subtract")
        if x is None and made is not None and c.position(made.args[0]) is not None and c.constants[c.position(made.args[1])].size == 1:
            x, zero = c.position(made.args[0]), int(c.constants[c.position(made.args[1])].reshape(()))
        if x is None or w is None:
            raise _Refused("an operand is computed in the pattern")
        dtype, other, result = (str(i.dtype) for i in (c.operands[x], c.operands[w], c.result))
        if (dtype, other, result) in (("float32",) * 3, ("bfloat16",) * 3):
            if dtype == "bfloat16" and not c.target.has("avx512bw"):
                raise _Refused("bfloat16 needs AVX-512")
            return cls(x, w, dtype)
        if (dtype, other, result) != ("int32", "int32", "float32") or w not in c.constants or not _within(_bounds(c.constants[w]), _BYTES["int8"]):
            raise _Refused(f"it does not multiply {dtype} by {other} into {result}")
        if not (c.target.has("avx512vnni") or c.target.has("avxvnni")):
            raise _Refused("8-bit products are exact with VNNI instructions only")
        narrow = next((t for t, limits in _BYTES.items() if _within(c.bounds(x), limits)), None)
        if narrow is None:
            raise _Refused("the numbers may not fit 8 bits")
        return cls(x, w, narrow, zero)

    def call(self, c: Composite, after: _After, symbol: str, *numbers: Any, layout: str = "", **how: Any) -> Kernel:
        """The call of a function of `onednn_calls` for these operands."""
        integers = self.dtype in _BYTES
        operands = [self.x, self.w, *(self.x if k is None else k for k in (after.bias, after.scale, after.other))]
        bias = "" if after.bias is None else str(c.operands[after.bias].dtype)
        types = (self.dtype, "int8" if integers else self.dtype, bias, str(c.result.dtype))
        channels = c.result.shape[-after.channel]
        pack = {self.w: lambda w: w.astype(np.int8), after.scale: lambda s: np.ascontiguousarray(np.broadcast_to(s.reshape(-1), int(channels)))}
        forms = {self.x: Form(layout, self.dtype if integers else ""), **({after.other: Form(layout)} if after.other is not None else {}), -1: Form(layout)}
        head = (sum(_TYPES[t] << 4 * k for k, t in enumerate(types)), *after.numbers, int(integers) + 2 * (self.zero != 0), self.zero)
        return native(c, symbol, *head, *numbers, operands=operands, library=LIBRARY, ranges=True, pack=pack if integers else {},
                      forms={k: f for k, f in forms.items() if f != Form()}, statuses=STATUSES,
                      guard=() if self.dtype == "float32" else ("onednn_can", _TYPES[self.dtype]), **how)


def _bounds(array: np.ndarray) -> tuple[float, float]:
    return float(array.min()), float(array.max())


def _within(found: tuple[float, float] | None, limits: tuple[int, int]) -> bool:
    return found is not None and limits[0] <= found[0] and found[1] <= limits[1]


def _convolution(c: Composite, call: graph.Call) -> Kernel:
    data, after = _Data.of(c, call), _After(c, call, 3)
    if data.w not in c.constants or len(call.args) != 2 or (call.attrs["data_layout"], call.attrs["kernel_layout"]) != ("NCHW", "OIHW"):
        raise _Refused("its weights are not known, or its layouts are not the usual ones")
    (n, channels, height, width), (outputs, inputs, kh, kw), (_, _, rows, columns) = (i.shape for i in (c.operands[data.x], c.operands[data.w], call.sinfo))
    (sh, sw), (dh, dw) = (per_axis(call.attrs[name], 2) for name in ("strides", "dilation"))
    (above, below), (left, right) = paddings(call.attrs["padding"], 2)
    spans = [(int(Analyzer().value(k)) - 1) * int(d) + 1 for k, d in ((kh, dh), (kw, dw))]
    if max(above, below) >= spans[0] or max(left, right) >= spans[1]:
        raise _Refused("its padding is wider than its kernel")
    return data.call(c, after, "onednn_convolution", channels, height, width, outputs, call.attrs["groups"], kh, kw, rows, columns, sh, sw, dh, dw, above, left,
                     layout="NCHW->NHWC", **_takes(c, data, n * rows, outputs, columns, inputs, kh, kw))


def _product(c: Composite, call: graph.Call) -> Kernel:
    data, after = _Data.of(c, call), _After(c, call, 1)
    left, right = c.operands[data.x].shape, c.operands[data.w].shape
    if len(left) < 2 or len(right) < 2 or (len(right) > 2 and not _equal(left[:-2], right[:-2])):
        raise _Refused("an operand is a vector, or matrices of one operand are repeated for some of the other's")
    (m, k), n, one = left[-2:], right[-1], tir.index_const(1)
    matrices = math.prod(left[:-2], start=one) if len(right) > 2 else one
    if len(right) == 2:  # all rows are one matrix
        m = math.prod(left[:-1], start=one)
    return data.call(c, after, "onednn_product", m, n, k, m * k, k, 1, k * n if len(right) > 2 else 0, n, 1, int(data.w in c.constants and len(right) == 2),
                     **_takes(c, data, matrices * m, n, k))


def _equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(Analyzer().prove_equal(x, y) for x, y in zip(a, b, strict=True))


def _takes(c: Composite, data: _Data, parts: Any, *each: Any) -> dict[str, Any]:
    """The parts that threads share, how many at least, and the cycles of all on one core of this machine, which the library knows itself, whatever the
    target says of it. ``each``: sizes whose product is that of multiply-adds in a part."""
    rate = Target.host().flops_per_cycle("float32") * _SHARE * _GAINS.get(data.dtype, 1)
    return shared(c, parts, 2 / rate, each, _START)


def _patterns() -> list[tuple[str, Any]]:
    """A convolution or product, with up to four operators after it, the longest first; of 8-bit numbers with their zero point and scales."""
    def followed(value: Any) -> Any:
        either = is_op("relax.add")(value, wildcard()) | is_op("relax.add")(wildcard(), value)
        for name in _FUNCTIONS:
            either = either | is_op(f"relax.{name}")(value)
        for name in ("maximum", "minimum"):
            either = either | is_op(f"relax.{name}")(value, is_const())
        return either

    def scaled(name: str, data: Any) -> Any:
        return is_op("relax.multiply")(is_op("relax.astype")(is_op(f"relax.{name}")(data, is_const())), is_const())

    found = []
    for name in ("nn.conv2d", "matmul"):
        moved = is_op("relax.subtract")(wildcard(), is_const())
        for first in (scaled(name, moved), scaled(name, wildcard()), is_op(f"relax.{name}")(wildcard(), wildcard())):
            chain = [first]
            for _ in range(4):
                chain.append(followed(chain[-1]))
            found += [(-k, f"onednn.{name.removeprefix('nn.')}", p) for k, p in enumerate(chain)]
    return [(name, p) for _, name, p in sorted(found, key=lambda item: item[0])]


def _version() -> str:
    found = LIBRARY.result("dnnl_version", ctypes.POINTER(ctypes.c_int * 3))  # major, minor, patch come first
    return ".".join(map(str, found.contents)) if found else ""


BACKEND = Backend("onednn", _patterns(), _implement, _version)
"""The backend ``onednn``."""
