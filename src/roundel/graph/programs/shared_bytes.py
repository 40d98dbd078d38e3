# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that 8 bits hold are kept in 8 bits between kernels.

    q = minimum(..., 127.0)                          q = minimum(..., 127.0)
    a = conv2d(astype(q, "int8"), w)         ->      b = astype(q, "int8")
    c = multiply(q, 0.01)                            a = conv2d(b, w)
                                                     c = multiply(astype(b, "float32"), 0.01)

In quantised models with residual connections what is added later is such a tensor: a quarter of the bytes is written and read. Where products take
the numbers moved by a constant (unsigned instead of signed ones), they are stored so, and everybody else takes the constant off. Fusion ends kernels
where their results are narrowest.

On machines that have little memory every such tensor is stored so. On others those are, in functions that compute products of 8-bit numbers, that
are read as bytes and as floats, those that meet another tensor, one of the two being stored, and those of which windows' maxima are taken: the greatest
number is that of the greatest byte.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...ir import graph
from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ir.op import FuseKind
from ...ops import make
from ...passes import pass_
from ...target import Target
from ..pattern import Match
from ..rewriter import GraphRewriter, is_call, operands, uses
from ..tidy.dead_code import eliminate_dead_code
from ..tidy.whole_numbers import bounds, fits

_LIMITS = ("minimum", "maximum", "clip")
INT8, UINT8 = DType("int8"), DType("uint8")
_PRODUCTS = ("matmul", "nn.conv2d")
_MAXIMA = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")


@dataclass(frozen=True)
class Stored:
    """The bytes of a tensor of floats: these are ``moved`` more than its elements, None for unsigned bytes from 0. ``dtype``: None for whichever holds
    them."""

    dtype: DType | None = None
    moved: float | None = 0.0


@pass_("shared_bytes")
def shared_bytes(mod: IRModule) -> IRModule:
    """Floats that were cut off to what 8 bits hold are made of 8-bit integers where they are used."""
    target = mod.attrs.get("target") or Target.host()
    made = _Shared(mod, every=target.is_bare).module()
    return mod if made is mod else eliminate_dead_code(made)  # an operator that nobody reads would keep what it reads out of others' kernels


class _Shared(GraphRewriter):
    def __init__(self, mod: IRModule, every: bool) -> None:
        super().__init__(mod)
        self.every = every
        self.wanted: Mapping[graph.Var, Stored] = {}
        self.bytes: dict[graph.Var, tuple[graph.GraphExpr, float]] = {}  # of floats: their bytes, and by how much these are more
        self.kept: set[graph.GraphExpr] = set()  # the bytes

    def function(self, func: graph.Function) -> graph.Function:
        self.wanted, self.bytes, self.kept = _wanted(func, self.every), {}, set()
        return super().function(func) if self.wanted else func

    def binding(self, binding: graph.Binding) -> None:
        """What 8 bits hold is stored in them, as soon as it is there."""
        super().binding(binding)
        how, made = self.wanted.get(binding.var), self.env.get(binding.var, binding.var)
        found = None if how is None else bounds(made, Match(self.producer, {}))
        if how is None or found is None:
            return
        by = -found[0] if how.moved is None else how.moved
        dtype = next((d for d in ([how.dtype] if how.dtype else [INT8, UINT8]) if fits((found[0] + by, found[1] + by), d)), None)
        if dtype is not None:
            value = self.emit(make("add", made, graph.Constant.of(made.sinfo.dtype.numpy.type(by)))) if by else made
            kept = self.emit(make("astype", value, dtype=str(dtype)))
            self.bytes[made] = kept, by
            self.kept.add(kept)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """Operands from the 8-bit tensors."""
        if is_call(call, "astype") and call.sinfo.dtype in (INT8, UINT8):
            source = self.producer(call.args[0])  # of floats that are the bytes themselves
            if is_call(source, "astype") and source.args[0] in self.kept and source.args[0].sinfo.dtype is call.sinfo.dtype:
                return source.args[0]
            made, moved = self.bytes.get(call.args[0], (None, 0.0))
            if made is not None and not moved and made.sinfo.dtype is call.sinfo.dtype:
                return made
        if _is_maximum(call):
            return self._maximum(call, call.args[0]) or call
        if not any(a in self.bytes for a in operands(call) if isinstance(a, graph.Var)):
            return call
        less = _moves(call)
        if less is not None and call.args[0] in self.bytes:
            made, moved = self.bytes[call.args[0]]
            return self._floats(made, moved + less, call.sinfo.dtype)
        return call.replace(args=tuple(self._again(a) for a in call.args))

    def _maximum(self, call: graph.Call, value: graph.GraphExpr) -> graph.GraphExpr | None:
        """The maxima of a tensor that only grows with bytes: what becomes of the bytes' maxima. None for another tensor."""
        made = self.producer(value)
        if _grows(made):
            inner = self._maximum(call, made.args[0])
            return None if inner is None else self.emit(make(made.op.name, inner, made.args[1]))
        kept, moved = self.bytes.get(value, (made.args[0], 0.0) if is_call(made, "astype") and made.args[0] in self.kept else (None, 0.0))
        return None if kept is None else self._floats(self.emit(make(call.op.name, kept, **dict(call.attrs))), moved, value.sinfo.dtype)

    def _again(self, value: graph.GraphExpr) -> graph.GraphExpr:
        made = self.bytes.get(value) if isinstance(value, graph.Var) else None
        return value if made is None else self._floats(*made, value.sinfo.dtype)

    def _floats(self, made: graph.GraphExpr, moved: float, dtype: DType) -> graph.GraphExpr:
        """Bytes as floats, by so much less."""
        wide = self.emit(make("astype", made, dtype=str(dtype)))
        return self.emit(make("subtract", wide, graph.Constant.of(dtype.numpy.type(moved)))) if moved else wide


def _moves(call: graph.GraphExpr | None) -> float | None:
    """The whole number that a call takes off each element of its operand; None where it does something else."""
    if not (is_call(call, "add") or is_call(call, "subtract")) or not isinstance(call.args[1], graph.Constant) or call.args[1].sinfo.ndim:
        return None
    found = bounds(call.args[1], Match(lambda _: None, {}))
    return None if found is None else found[0] if is_call(call, "subtract") else -found[0]


def _bindings(seq: graph.SeqExpr) -> Iterator[graph.Binding]:
    """Of a body, and of the branches and loops in it."""
    for binding in seq.bindings:
        yield binding
        for part in operands(binding.value) if isinstance(binding.value, graph.If | graph.While) else ():
            yield from _bindings(part) if isinstance(part, graph.SeqExpr) else ()


def _wanted(func: graph.Function, every: bool) -> dict[graph.Var, Stored]:
    """The tensors of a function that may be stored as bytes."""
    calls = {b.var: b.value for b in _bindings(func.body) if isinstance(b.value, graph.Call)}
    cut = [v for v, call in calls.items() if any(is_call(call, name) for name in _LIMITS) and v.sinfo.dtype.is_float]
    if every:
        return dict.fromkeys(cut, Stored())
    if not cut or not any(map(_of_bytes, calls.values())):
        return {}
    readers, count = defaultdict(list), uses(func)
    for var, call in calls.items():
        for a in call.args:
            if isinstance(a, graph.Var):
                readers[a].append(var)
    inside = {v: readers[v] for v, n in count.items() if n == len(readers[v])}  # which nothing but calls reads
    found = {v: _stored(v, inside, calls) for v in cut if v in inside}
    return {v: how for v, how in found.items() if how is not None}


def _is_maximum(call: graph.GraphExpr | None) -> bool:
    return any(is_call(call, name) for name in _MAXIMA)


def _grows(call: graph.GraphExpr | None) -> bool:
    """Whether a call adds one number to all elements of its operand, or multiplies them by one that is above zero."""
    if not any(is_call(call, name) for name in ("add", "subtract", "multiply")) or not isinstance(call.args[1], graph.Constant) or call.args[1].sinfo.ndim:
        return False
    by = float(call.args[1].data.numpy())
    return math.isfinite(by) and (by > 0 or not is_call(call, "multiply"))


def _of_bytes(call: graph.Call) -> bool:
    return any(is_call(call, name) for name in _PRODUCTS) and call.args[0].sinfo.dtype in (INT8, UINT8)


def _stored(var: graph.Var, readers: Mapping[graph.Var, Sequence[graph.Var]], calls: Mapping[graph.Var, graph.Call]) -> Stored | None:
    """How a tensor is to be stored: as most of its readers convert it to bytes, where others read it too; or where it meets another one."""
    kinds = [_as_bytes(var, reader, readers, calls) for reader in readers[var]]
    known = Counter(k for k in kinds if k is not None)
    if known:
        return known.most_common(1)[0][0] if len(known) > 1 or None in kinds else None
    return Stored(UINT8, None) if _meets(var, readers, calls) else None  # of NaN the instructions that limit it from below make 0


def _as_bytes(var: graph.Var, reader: graph.Var, readers: Mapping[graph.Var, Sequence[graph.Var]], calls: Mapping[graph.Var, graph.Call]) -> Stored | None:
    """The bytes that a reader converts a tensor to, or moves it for another one to."""
    call = calls[reader]
    if is_call(call, "astype") and call.sinfo.dtype in (INT8, UINT8):
        return Stored(call.sinfo.dtype)
    less, then = _moves(call), readers.get(reader, ())
    if less is None or call.args[0] is not var or len(then) != 1:
        return None
    made = _as_bytes(reader, then[0], readers, calls)
    return None if made is None or made.moved is None else Stored(made.dtype, made.moved - less)


def _meets(var: graph.Var, readers: Mapping[graph.Var, Sequence[graph.Var]], calls: Mapping[graph.Var, graph.Call]) -> bool:
    """Whether a tensor goes, through elementwise operators with constants, into one with another tensor, or growing into maxima."""
    shape, grows = var.sinfo.shape, True
    while len(readers.get(var, ())) == 1:
        var = readers[var][0]
        call = calls[var]
        if _is_maximum(call):
            return grows
        grows &= _grows(call)
        if call.op.kind > FuseKind.BROADCAST or var.sinfo.shape != shape:
            return False
        if sum(not isinstance(a, graph.Constant) for a in call.args) > 1:
            return True
    return False
