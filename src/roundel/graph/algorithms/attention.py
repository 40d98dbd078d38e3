# SPDX-License-Identifier: Apache-2.0
"""Attention without its matrix of scores, where that takes less time by the model of the machine.

    matmul(softmax(x), v)                ->   softmax_matmul(transposed x, v)   x from a product of two tensors by elementwise operators
    matmul(where(c, 0, softmax(x)), v)   ->   likewise, zeros for rows of which c (isnan(softmax(x)), max(x) == -inf) holds
    x + mask, where(mask, x, -inf)       ->   x, and how far a row sees, where the mask says just that (``causal``)

The operators that make ``x`` are built again on transposed operands (the transpose of a mask is made once for all layers, or when
the model is compiled). ``fuse`` makes one program of the product, what follows and the new operator: a block of rows of scores is
made, used and forgotten (``strategy/attention/attention.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ...ir import graph, options
from ...ir.dataclass import dataclass
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...ops import make
from ...ops.dims import shape_text, static
from ...passes import pass_
from ..pattern import Match, PatternRewriter, is_const, is_op, wildcard
from ..tidy.grouped_heads import repeated
from . import causal
from .attention_times import BY_BLOCKS, AttentionTimes
from .causal import Sight

x, v, c, mask = wildcard(), wildcard(), wildcard(), wildcard()
_softmax = is_op("nn.softmax")(x)
_plain = is_op("matmul")(_softmax, v)
_where = is_op("matmul")(is_op("where")(c, is_const(0), _softmax), v)
_isnan = is_op("isnan")(_softmax)
_empty = is_op("equal")(is_op("max")(x), is_const(-math.inf))
_hidden = is_op("equal")(is_op("max")(mask), is_const(-math.inf))


@pass_("attention")
def attention(mod: IRModule) -> IRModule:
    """Products of a softmax of scores with values become one operator, unless the option ``accuracy`` is strict."""
    if options.get("accuracy") == "strict":
        return mod
    return _Attention(mod).module()


class _Attention(PatternRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod, [(_plain, lambda m: _together(m, _plain, self)), (_where, lambda m: _zeroed(m, self))])
        self.times = AttentionTimes(mod)

    def is_taken(self, call: graph.Call, shape: Any) -> bool:
        """Whether scores (..., rows, keys) for values of (keys, columns), given as (..., rows, keys, columns), are used block by block; recorded."""
        alternatives = self.times.alternatives(shape)
        subject = f"attention of {shape_text(shape[:-1])} with values of {shape_text(shape[-1:])}"
        return self.choosing.decide(self.site, subject, alternatives, self.times.preferred(shape), of=call) == BY_BLOCKS


def _zeroed(m: Match, rewriter: _Attention) -> Any:
    """With rows of zeros where a condition holds."""
    if _isnan.match(m[c], m):
        return _together(m, _where, rewriter, zero="nan", weights=2)
    if _empty.match(m[c], m):
        return _together(m, _where, rewriter, zero="empty", scores=2)
    info = m[c].sinfo
    if info.ndim == 0 or info.shape is None or static(info.shape[-1]) != 1:
        return None
    made = _together(m, _where, rewriter)
    if made is None or _never(m):
        return made
    zeros = make("sum", make("multiply", m[v], graph.Constant.of(0.0, made.sinfo.dtype)), axis=(-2,), keepdims=True)  # but for infinite values
    return make("where", m[c], zeros, made)


def _never(m: Match) -> bool:
    """Whether the condition asks for rows that see nothing in a mask in which all see something."""
    if not _hidden.match(m[c], m):
        return False
    shape = m[mask].sinfo.shape
    sight = None if shape is None or len(shape) < 2 else causal.added(m.lookup, m[mask], shape)
    return sight is not None and sight.always_sees()


def _together(m: Match, pattern: Any, rewriter: _Attention, zero: str = "", weights: int = 1, scores: int = 1) -> Any:
    """The operator for softmax and product, where it pays and nothing else uses weights and scores."""
    call, softmax, value, x_info = m.call(pattern), m.call(_softmax), m[v].sinfo, m[x].sinfo
    if call.attrs["out_dtype"] or isinstance(m[v], graph.Constant) or x_info.shape is None or value.shape is None or len(x_info.shape) < 2:
        return None
    if softmax.attrs["axis"] % x_info.ndim != x_info.ndim - 1 or x_info.dtype != value.dtype or x_info.shape[:-2] != value.shape[:-2]:
        return None
    if m.use_count.get(m[_softmax], 0) > weights or static(x_info.shape[-1]) == 1 or static(value.shape[-1]) == 1:
        return None
    made = next((t for look in (True, False) if (t := _turned(m, m[x], x_info.shape, scores, look)) is None or _replaces(t, zero)), None)
    if made is None or not rewriter.is_taken(call, (*x_info.shape, value.shape[-1])):
        return None
    reach = () if made.sight is None else (graph.PrimValue(made.sight.reach),)
    return make("nn.softmax_matmul", made.turned, repeated(m, m[v]), *reach, zero=zero)


@dataclass(frozen=True)
class _Scores:
    """Scores with rows and columns exchanged, without the mask that ``sight`` stands for; ``others``: operators that make them from the
    product, those apart that multiply by a constant."""

    turned: graph.GraphExpr
    sight: Sight | None = None
    others: int = 0


def _replaces(scores: _Scores, zero: str) -> bool:
    """Whether what a mask hides may just not be seen: where each row sees a key (or is zero), and for a mask of a number instead of
    -infinity where no other mask can make what it hides as likely as the rest."""
    sight = scores.sight
    if sight is None or (sight.infinite and zero):
        return True
    return sight.always_sees() and (sight.infinite or scores.others == 0)


def _turned(m: Match, value: Any, shape: Any, uses: int, look: bool) -> _Scores | None:
    """Scores of this shape with rows and columns exchanged, if elementwise operators, of which nothing else reads a result, make them
    from a product of two tensors. ``look``: for masks that say how far rows see."""
    made = m.lookup(value) if isinstance(value, graph.Var) and m.use_count.get(value, 0) <= uses else None
    if not isinstance(made, graph.Call) or not isinstance(made.op, OpDef) or made.sinfo.shape != shape:
        return None
    if made.op.name == "matmul":
        a, b = made.args
        if {a.sinfo.ndim, b.sinfo.ndim} != {len(shape)} or static(a.sinfo.shape[-1]) == 1 or _source(m, a) is _source(m, b):
            return None
        if isinstance(a, graph.Constant) or isinstance(b, graph.Constant):
            return None
        return _Scores(make("matmul", _swapped(repeated(m, b)), _swapped(repeated(m, a)), **dict(made.attrs)))
    if made.op.kind > FuseKind.BROADCAST or "axis" in made.attrs:
        return None
    for scores, sight in causal.masked(m.lookup, made, shape) if look else ():
        if (inner := _turned(m, scores, shape, 1, False)) is not None:
            return replace(inner, sight=sight)
    parts = [_turned(m, a, shape, 1, look and causal.keeps_lowest(made)) for a in made.args]
    found = [p for p in parts if p is not None]
    if len(found) != 1:
        return None
    turned = make(made.op.name, *(_swapped(a) if p is None else p.turned for a, p in zip(made.args, parts, strict=True)), **dict(made.attrs))
    scaled = _is(made, "multiply") and any(isinstance(a, graph.Constant) for a in made.args)
    return replace(found[0], turned=turned, others=found[0].others + (not scaled))


def _source(m: Match, value: Any) -> Any:
    """What a value is before its axes were rearranged."""
    made = m.lookup(value) if isinstance(value, graph.Var) else None
    return _source(m, made.args[0]) if _is(made, "permute_dims") or _is(made, "reshape") else value


def _is(made: Any, name: str) -> bool:
    return isinstance(made, graph.Call) and getattr(made.op, "name", "") == name


def _swapped(value: Any) -> Any:
    """The last two dimensions exchanged; of a value of fewer dimensions so that it still broadcasts."""
    info = getattr(value, "sinfo", None)
    if not isinstance(info, graph.TensorInfo) or info.ndim == 0 or (info.ndim == 1 and static(info.shape[0]) == 1):
        return value
    if info.ndim == 1:
        return make("expand_dims", value, axis=(1,))
    return make("permute_dims", value, axes=(*range(info.ndim - 2), info.ndim - 1, info.ndim - 2))
