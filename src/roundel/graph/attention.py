# SPDX-License-Identifier: Apache-2.0
"""Attention without its matrix of scores, where that takes less time by the model of the machine.

    matmul(softmax(x), v)                              ->   softmax_matmul(transposed x, v)   x from a product of two tensors by elementwise operators
    matmul(where(isnan(s), 0, s), v), s = softmax(x)   ->   likewise, with zero_nan

The operators that make ``x`` are built again on transposed operands (the transpose of a mask is made once for all layers, or when
the model is compiled). ``fuse`` makes one program of the product, what follows and the new operator: a block of rows of scores is
made, used and forgotten (``schedule/rules/attention.py``).
"""

from __future__ import annotations

from typing import Any

from ..ir import graph, options
from ..ir.module import IRModule
from ..ir.op import FuseKind, OpDef
from ..ops import make
from ..ops.dims import static
from ..passes import pass_
from ..target import Target
from .pattern import Match, PatternRewriter, is_const, is_op, wildcard

x, v = wildcard(), wildcard()
_softmax = is_op("nn.softmax")(x)
_numbers = is_op("where")(is_op("isnan")(_softmax), is_const(0), _softmax)
_plain = is_op("matmul")(_softmax, v)
_zeroed = is_op("matmul")(_numbers, v)


@pass_("attention")
def attention(mod: IRModule) -> IRModule:
    """Products of a softmax of scores with values become one operator, unless the option ``accuracy`` is strict."""
    if options.get("accuracy") == "strict":
        return mod
    target = mod.attrs.get("target") or Target.host()
    return PatternRewriter(mod, [(p, lambda m, p=p: _together(m, p, target)) for p in (_plain, _zeroed)]).module()


def _together(m: Match, pattern: Any, target: Target) -> Any:
    """The operator for both, where it pays."""
    call, softmax, value = m.call(pattern), m.call(_softmax), m[v].sinfo
    scores = m[x].sinfo
    if call.attrs["out_dtype"] or isinstance(m[v], graph.Constant) or scores.shape is None or value.shape is None or len(scores.shape) < 2:
        return None
    if softmax.attrs["axis"] % scores.ndim != scores.ndim - 1 or scores.dtype != value.dtype or len(scores.shape) != len(value.shape):
        return None
    uses = 2 if pattern is _zeroed else 1
    if m.use_count.get(m[_softmax], 0) > uses or scores.shape[:-2] != value.shape[:-2]:
        return None
    if not pays(scores.shape, target):
        return None
    turned = _turned(m, m[x], scores.shape)
    return None if turned is None else make("nn.softmax_matmul", turned, m[v], zero_nan=pattern is _zeroed)


def _turned(m: Match, value: Any, shape: Any) -> graph.GraphExpr | None:
    """Scores of this shape with rows and columns exchanged, if elementwise operators, of which nothing else reads a result, make them
    from a product of two tensors."""
    made = m.lookup(value) if isinstance(value, graph.Var) and m.use_count.get(value, 0) == 1 else None
    if not isinstance(made, graph.Call) or not isinstance(made.op, OpDef) or made.sinfo.shape != shape:
        return None
    if made.op.name == "matmul":
        a, b = made.args
        if {a.sinfo.ndim, b.sinfo.ndim} != {len(shape)} or isinstance(a, graph.Constant) or isinstance(b, graph.Constant):
            return None
        return make("matmul", _swapped(b), _swapped(a), **dict(made.attrs))
    if made.op.kind > FuseKind.BROADCAST or "axis" in made.attrs:
        return None
    parts = [_turned(m, a, shape) for a in made.args]
    if sum(p is not None for p in parts) != 1:
        return None
    return make(made.op.name, *(_swapped(a) if p is None else p for a, p in zip(made.args, parts, strict=True)), **dict(made.attrs))


def _swapped(value: Any) -> Any:
    """The last two dimensions exchanged; of a value of fewer dimensions so that it still broadcasts."""
    info = getattr(value, "sinfo", None)
    if not isinstance(info, graph.TensorInfo) or info.ndim == 0 or (info.ndim == 1 and static(info.shape[0]) == 1):
        return value
    if info.ndim == 1:
        return make("expand_dims", value, axis=(1,))
    return make("permute_dims", value, axes=(*range(info.ndim - 2), info.ndim - 1, info.ndim - 2))


def pays(shape: Any, target: Target) -> bool:
    """Whether scores of this shape are better used block by block: many rows, or so many that a cache does not hold them."""
    rows = static(shape[-2])
    return rows is None or rows >= target.lanes("float32") // 2
