# SPDX-License-Identifier: Apache-2.0
"""Many tensors put together, or one tensor cut into many parts, by copying ranges of memory in the host function.

    y = concat((a, b, c, ...), axis=1)      ->      for each outer index: copy the rows of a, those of b, those of c, ...

As a tensor program, a concatenation asks for each element which operand has it, and each part that begins elsewhere is a program of its
own. For a few that is fast, and can be fused; for hundreds the time to compile it grows with their number squared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import graph, tir
from ..rewriter import is_call, operands

MANY = 64
"""Operands of a concatenation, or parts of one tensor, beyond which they are copied."""
MANY_SIZES = 16
"""Operands of a concatenation whose sizes along its axis only a run tells, beyond which all are copied: each position is a sum of them."""


def parts(func: graph.Function) -> Counter[Any]:
    """How many parts are cut out of each variable, in branches and loops too."""
    found: Counter[Any] = Counter()
    todo: list[Any] = [func.body]
    while todo:
        value = todo.pop()
        if is_call(value, "strided_slice"):
            found[value.args[0]] += 1
        todo += operands(value)
    return found


def is_copied(call: graph.Call, count: Mapping[Any, int]) -> bool:
    """Whether the host function copies ranges for this call; ``count`` is what ``parts`` found."""
    if is_call(call, "concat"):
        fields = call.args[0].fields if isinstance(call.args[0], graph.Tuple) else ()
        return len(fields) > MANY_SIZES and all(map(_whole_bytes, (call, *fields))) and (len(fields) > MANY or _sizes(fields, call.attrs["axis"]) > MANY_SIZES)
    return is_call(call, "strided_slice") and count.get(call.args[0], 0) > MANY and all(map(_whole_bytes, (call, call.args[0]))) and begins(call) is not None


def _sizes(fields: Sequence[graph.GraphExpr], axis: int) -> int:
    return sum(not isinstance(f.sinfo.shape[axis], tir.IntImm) for f in fields)


def _whole_bytes(value: graph.GraphExpr) -> bool:
    info = value.sinfo
    return isinstance(info, graph.TensorInfo) and info.shape is not None and info.dtype is not None and info.dtype.storage_bits >= 8


def begins(call: graph.Call) -> dict[int, int] | None:
    """Where a slice of unit stride begins, by axis: those that it cuts. None where the run decides that."""
    x, axes, begin, _, *strides = call.args
    shape, out = x.sinfo.shape, {}
    for k, (axis, first) in enumerate(zip(axes.values, begin.values, strict=True)):
        a = axis.value % len(shape)
        if shape[a] is call.sinfo.shape[a]:
            continue
        if not (isinstance(first, tir.IntImm) and isinstance(shape[a], tir.IntImm) and 0 <= first.value <= shape[a].value):
            return None
        if strides and strides[0].values and strides[0].values[k].value != 1:
            return None
        out[a] = first.value
    return out
