# SPDX-License-Identifier: Apache-2.0
"""Canonicalisation of graph functions: a table of rules, pattern to replacement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import equal
from ...passes import pass_
from ..pattern import Match, OpPattern, Pattern, PatternRewriter, commutative, is_const, is_op, wildcard
from .early_takes import EARLY_TAKES
from .fold_padding import PADDING
from .grouped_heads import GROUPED
from .scales import SCALES
from .unread_taps import UNREAD_TAPS
from .whole_numbers import WHOLE

Rule = tuple[Pattern, Callable[[Match], Any]]

x, y, k, _zeros = wildcard(), wildcard(), is_const(), is_op("full")(wildcard(), is_const(0))
_SHAPE_ONLY = ("reshape", "squeeze", "expand_dims", "flatten")


def _f32(value: float) -> float:
    return float(np.float32(value))


def _same_info(out: Any, value: Any) -> bool:
    a, b = out.sinfo, value.sinfo
    return isinstance(a, graph.TensorInfo) and isinstance(b, graph.TensorInfo) and _same_shape(a.shape, b.shape) and a.dtype == b.dtype


def _same_shape(a: Any, b: Any) -> bool:
    """Whether shapes are known to be equal, however their sizes are written (``n + 1``, ``1 + n``)."""
    return a is not None and b is not None and len(a) == len(b) and all(map(equal, a, b))


def _drop_if_same(name: str) -> Rule:
    """op(x) -> x when shape and dtype do not change"""
    p = is_op(name)(x)
    return p, lambda m: m[x] if _same_info(m.call(p), m[x]) else None


def _unit(name: str, value: float, left_too: bool) -> list[Rule]:
    """x op value -> x (and value op x)"""
    c = is_const(value)
    rules: list[Rule] = []
    for args in ((x, c), (c, x)) if left_too else ((x, c),):
        p = is_op(name)(*args)
        rules.append((p, lambda m, p=p: m[x] if _same_info(m.call(p), m[x]) else None))
    return rules


def _without_zeros() -> list[Rule]:
    """x + zeros -> x (and zeros + x)"""
    return [(p, lambda m, p=p: m[x] if _same_info(m.call(p), m[x]) else None) for p in (is_op("add")(x, _zeros), is_op("add")(_zeros, x))]


def _power(value: float, build: Callable[[Any], Any]) -> Rule:
    p = is_op("power")(x, is_const(value))
    return p, lambda m: build(m[x]) if _same_info(m.call(p), m[x]) else None


def _reshape(m: Match, p: OpPattern) -> Any:
    """Every operator that only changes the shape is a reshape; reshapes of reshapes are one."""
    call = m.call(p)
    out = call.sinfo
    if not isinstance(out, graph.TensorInfo) or out.shape is None:
        return None
    source = m[x]
    while (made := m.lookup(source)) is not None and isinstance(made, graph.Call) and getattr(made.op, "name", "") == "reshape":
        source = made.args[0]
    if _same_shape(source.sinfo.shape, out.shape):
        return source
    if p.name == "reshape" and source is m[x]:
        return None
    return graph.Call(make("reshape", source, graph.ShapeExpr(out.shape)).op, (source, graph.ShapeExpr(out.shape)), sinfo=out)


def _shape_rules() -> list[Rule]:
    rules: list[Rule] = []
    for name in _SHAPE_ONLY:
        p = is_op(name)(x)
        rules.append((p, lambda m, p=p: _reshape(m, p)))
    return rules


_where = is_op("where")(k, x, y)


def _no_choice(m: Match) -> Any:
    """A condition that is the same everywhere."""
    call, condition = m.call(_where), m[k].data.numpy()
    if condition.size == 0 or not (condition == condition.flat[0]).all():
        return None
    taken = m[x] if condition.flat[0] else m[y]
    return taken if _same_info(call, taken) else None


_inner = is_op("permute_dims")(x)
_outer = is_op("permute_dims")(_inner)
_single = is_op("permute_dims")(x)


def _axes(call: graph.Call) -> list[int]:
    ndim = call.args[0].sinfo.ndim
    axes = call.attrs.get("axes")
    return [int(a) % ndim for a in axes] if axes is not None else list(range(ndim))[::-1]


def _transpose_twice(m: Match) -> Any:
    first, second = _axes(m.call(_inner)), _axes(m.call(_outer))
    axes = [first[a] for a in second]
    return m[x] if axes == sorted(axes) else make("permute_dims", m[x], axes=tuple(axes))


def _transpose_moves_nothing(m: Match) -> Any:
    """A transpose that only moves axes of extent 1 is a reshape."""
    call = m.call(_single)
    shape = m[x].sinfo.shape
    if shape is None:
        return None
    one = tir.index_const(1)
    moved = [a for a in _axes(call) if shape[a] is not one]
    if moved == sorted(moved):
        return make("reshape", m[x], graph.ShapeExpr(call.sinfo.shape))
    return None


_permuted = is_op("permute_dims")(x)
_widened = is_op("reshape")(_permuted)


def _units_first(m: Match) -> Any:
    """Leading dimensions of extent 1 come or go before a transpose, where other reshapes may undo it."""
    inner, out = m.call(_permuted), m.call(_widened).sinfo
    before, axes = m[x].sinfo.shape, _axes(inner)
    if before is None or inner.sinfo.shape is None or out.shape is None:
        return None
    more = len(out.shape) - len(before)
    one = tir.index_const(1)
    if more > 0 and out.shape == (one,) * more + inner.sinfo.shape:
        source = make("reshape", m[x], graph.ShapeExpr((one,) * more + before))
        return make("permute_dims", source, axes=(*range(more), *(k + more for k in axes)))
    if more < 0 and axes[:-more] == list(range(-more)) and inner.sinfo.shape == (one,) * -more + out.shape:
        source = make("reshape", m[x], graph.ShapeExpr(before[-more:]))
        return make("permute_dims", source, axes=tuple(k + more for k in axes[-more:]))
    return None


_product = is_op("matmul")(x, y)
_split = is_op("reshape")(_product)


def _batch_split(m: Match) -> Any:
    """Dimensions of a batch that are taken apart behind a product of tensors are so before it, where other reshapes may undo it."""
    call, out, a, b = m.call(_product), m.call(_split).sinfo.shape, m[x].sinfo.shape, m[y].sinfo.shape
    inner = call.sinfo.shape
    if None in (out, a, b, inner) or len(a) < 3 or a[:-2] != b[:-2] or len(out) <= len(inner) or out[-2:] != inner[-2:]:
        return None
    if isinstance(m[x], graph.Constant) or isinstance(m[y], graph.Constant) or m.use_count.get(m[_product], 0) > 1:
        return None
    left, right = (make("reshape", v, graph.ShapeExpr((*out[:-2], *v.sinfo.shape[-2:]))) for v in (m[x], m[y]))
    return make("matmul", left, right, **dict(call.attrs))


_turned = is_op("permute_dims")(x)
_turned_split = is_op("reshape")(_turned)


def _batch_split_first(m: Match) -> Any:
    """... and before matrices are turned."""
    inner, out = m.call(_turned), m.call(_turned_split).sinfo.shape
    shape, ndim = m[x].sinfo.shape, m[x].sinfo.ndim
    if shape is None or out is None or ndim < 3 or _axes(inner) != [*range(ndim - 2), ndim - 1, ndim - 2]:
        return None
    if len(out) <= ndim or out[-2:] != inner.sinfo.shape[-2:] or m.use_count.get(m[_turned], 0) > 1:
        return None
    source = make("reshape", m[x], graph.ShapeExpr((*out[:-2], *shape[-2:])))
    return make("permute_dims", source, axes=(*range(len(out) - 2), len(out) - 1, len(out) - 2))


_concat = is_op("concat")(x)


def _concat_of_one(m: Match) -> Any:
    fields = m[x].fields if isinstance(m[x], graph.Tuple) else ()
    return fields[0] if len(fields) == 1 else None


_take = is_op("take")(x, k)


def _take_one(m: Match) -> Any:
    """One index known at compile time is a slice, which may be a view."""
    call, index = m.call(_take), m[k].data
    shape, axis = m[x].sinfo.shape, call.attrs["axis"]
    if index.shape or shape is None or axis is None:
        return None
    extent, at = shape[axis % len(shape)], int(index.numpy())
    if not isinstance(extent, tir.IntImm) or not 0 <= at < extent.value:
        return None
    axis, begin, end, one = (graph.ShapeExpr((tir.index_const(n),)) for n in (axis % len(shape), at, at + 1, 1))
    return make("reshape", make("strided_slice", m[x], axis, begin, end, one, assume_inbound=True), graph.ShapeExpr(call.sinfo.shape))


_div = is_op("divide")(x, k)


def _divide_by_power_of_two(m: Match) -> Any:
    """x / c is x * (1 / c) where 1 / c is exact."""
    data = m[k].data
    if not data.dtype.is_float or data.nbytes > 4096:
        return None
    mantissa, exponent = np.frexp(data.numpy().astype("float64"))
    if not (np.all(np.abs(mantissa) == 0.5) and np.all(np.abs(exponent) < 100)):
        return None
    return make("multiply", m[x], graph.Constant.of((1 / data.numpy()).astype(data.dtype.numpy)))


_unscaled = is_op("divide")(x, is_const(_f32(math.sqrt(2)))) | commutative("multiply", x, is_const(_f32(math.sqrt(0.5))))
_erf_plus_1 = commutative("add", is_op("erf")(_unscaled), is_const(1))
_half = is_const(0.5)
_gelu = (
    commutative("multiply", commutative("multiply", x, _erf_plus_1), _half)
    | commutative("multiply", commutative("multiply", x, _half), _erf_plus_1)
    | commutative("multiply", x, commutative("multiply", _erf_plus_1, _half))
)


RULES: list[Rule] = [
    _drop_if_same("astype"), _drop_if_same("broadcast_to"), _drop_if_same("identity"),
    *_unit("add", 0, True), *_without_zeros(), *_unit("subtract", 0, False), *_unit("multiply", 1, True), *_unit("divide", 1, False), *_unit("power", 1, False),
    _power(2, lambda v: make("multiply", v, v)), _power(3, lambda v: make("multiply", make("multiply", v, v), v)),
    _power(0.5, lambda v: make("sqrt", v)), _power(-0.5, lambda v: make("rsqrt", v)),
    (_outer, _transpose_twice), (_single, _transpose_moves_nothing), *_shape_rules(),
    (_gelu.has_dtype("float32"), lambda m: make("nn.gelu", m[x])),
    (_widened, _units_first), (_split, _batch_split), (_turned_split, _batch_split_first),
    (_concat, _concat_of_one), (_take, _take_one), (_where, _no_choice), (_div, _divide_by_power_of_two),
    *EARLY_TAKES, *GROUPED, *PADDING, *SCALES, *UNREAD_TAPS, *WHOLE,
]


@pass_("simplify")
def simplify(mod: IRModule) -> IRModule:
    """Apply the table of rules to every graph function until nothing changes."""
    for _ in range(8):
        new = PatternRewriter(mod, RULES).module()
        if new is mod:
            return mod
        mod = new
    return mod


