# SPDX-License-Identifier: Apache-2.0
"""Inverting affine iteration maps and index maps, and the shapes that index maps make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir import tir
from ..ir.dtype import INT64
from ..ir.errors import ArithError
from ..ir.tir import Expr, IndexMap, Range, Var
from .analyzer import Analyzer
from .int_set import interval
from .iter_map import ONE, ZERO, IterMap, IterMark, IterSplit, IterSum, _inside, detect_iter_map


def iter_map_simplify(
    indices: Sequence[Expr], dom: Mapping[Var, Range], predicate: Expr | bool = True, *, check_bijective: bool = False, an: Analyzer | None = None
) -> tuple[Expr, ...]:
    """Indices simplified by what they are as an affine iteration map: ``x // n * n + x % n`` is ``x``, whatever n is. Indices that are no such
    map (``detect_iter_map``) are simplified by themselves."""
    an = an or Analyzer()
    exprs = tuple(map(tir.as_index, indices))
    with an.scope():
        for v, r in dom.items():
            an.bind(v, r)
        try:
            found = detect_iter_map(exprs, dom, predicate, check_bijective=check_bijective, surjective=not check_bijective, an=an).exprs(an)
        except ArithError:
            found = exprs
        return tuple(an.simplify(e) for e in found)


def inverse_affine_iter_map(found: IterMap, outputs: Sequence[Expr], an: Analyzer | None = None) -> dict[Var, Expr]:
    """The variables as expressions of the indices' values ``outputs``. Variables that no index uses are left out."""
    an = an or Analyzer()
    values: dict[IterMark, Expr] = {}
    parts: dict[IterMark, list[tuple[IterSplit, Expr]]] = {}

    def give(p: IterSplit, value: Expr) -> None:
        parts.setdefault(p.mark, []).append((p, value))

    for s, out in zip(found.indices, outputs, strict=True):
        if s.splits:
            (p,) = s.splits
            give(p, an.simplify(tir.floordiv(tir.sub(out, s.base), p.scale)))
    result: dict[Var, Expr] = {}
    while parts:
        inner = {m for top in parts for m in _inside(top)}
        mark = next(m for m in parts if m not in inner)
        values[mark] = an.simplify(tir.sum_of([tir.mul(v, p.lower) for p, v in parts.pop(mark)]))
        if isinstance(mark.source, IterSum):
            for p, v in _unfuse(mark.source, values[mark]):
                give(p, an.simplify(v))
        else:
            result[mark.source] = an.simplify(tir.add(values[mark], found.starts.get(mark.source, ZERO)))
    return result


def _unfuse(s: IterSum, value: Expr) -> list[tuple[IterSplit, Expr]]:
    """The splits' values when the sum has ``value``; splits are outermost first."""
    value = tir.sub(value, s.base)
    out = []
    for k, p in enumerate(s.splits):
        part = tir.floordiv(value, p.scale)
        out.append((p, part if k == 0 else tir.floormod(part, p.extent)))
    return out


def domain(index_map: IndexMap, shape: Sequence[Expr]) -> dict[Var, Range]:
    """The initial indices over a shape."""
    if len(index_map.initial_indices) != len(shape):
        raise ArithError(f"an index map of {len(index_map.initial_indices)} indices over a shape of {len(shape)} dimensions", why=repr(index_map))
    return {v: Range.of(n) for v, n in zip(index_map.initial_indices, shape, strict=True)}


def map_shape(index_map: IndexMap, shape: Sequence[Expr], an: Analyzer | None = None) -> tuple[Expr, ...]:
    """Extents of the final indices over ``shape``; raises ArithError where one is not bounded.

    ``i % 16`` over a symbolic extent takes 16 (the last tile is padded).
    """
    an = an or Analyzer()
    dom = domain(index_map, tuple(map(tir.as_index, shape)))
    out = []
    for e in index_map.final_indices:
        if type(e) is tir.FloorMod and type(e.b) is tir.IntImm and e.b.value > 0:
            low, high = an.int_set(e.a, dom).min, an.int_set(e.a, dom).max
            if type(high) is not tir.IntImm or type(low) is not tir.IntImm:
                out.append(e.b)
                continue
        high = interval(an, e, dom).max
        if high is None:
            raise ArithError("the index map has no bounded shape", why=f"in {e!r}")
        out.append(an.simplify(high + 1))
    return tuple(out)


def inverse_index_map(index_map: IndexMap, shape: Sequence[Expr], an: Analyzer | None = None) -> tuple[IndexMap, Expr]:
    """``(inverse, padding)``: the map from final to initial indices, and the condition on its variables that a
    point is padding (false for a bijective map). Raises ArithError when the map loses indices.
    """
    an = an or Analyzer()
    shape = tuple(map(tir.as_index, shape))
    dom = domain(index_map, shape)
    try:
        found, padded = detect_iter_map(index_map.final_indices, dom, check_bijective=True, an=an), False
    except ArithError:
        found, padded = detect_iter_map(index_map.final_indices, dom, padding=True, an=an), True
    variables = tuple(Var(name, INT64) for name in _names(index_map))
    with an.scope():
        for v, n in zip(variables, map_shape(index_map, shape, an), strict=True):
            an.bind(v, Range.of(n))
        back = inverse_affine_iter_map(found, variables, an)
        for v, n in zip(index_map.initial_indices, shape, strict=True):
            if v not in back and not an.prove_equal(n, 1):
                raise ArithError("the index map loses an index", why=f"{v.name} of extent {n!r} does not appear in it")
        inverse = tuple(back.get(v, ZERO) for v in index_map.initial_indices)
        outside = (
            [c for e, n in zip(inverse, shape, strict=True) for c in (tir.lt(e, 0), tir.ge(e, n))] if padded else []
        )
        padding = an.simplify(tir.logical_or(*outside)) if outside else tir.logical_or()
    return IndexMap(variables, inverse), padding


def _names(index_map: IndexMap) -> list[str]:
    """Names for the final indices: that of an initial index where it is passed on, else a new one."""
    names: list[str] = []
    for k, e in enumerate(index_map.final_indices):
        name = e.name if type(e) is Var else f"i{k}"
        names.append(name if name not in names else f"i{k}_{len(names)}")
    return names


def is_identity(index_map: IndexMap) -> bool:
    """Whether the map leaves indices as they are."""
    return index_map.initial_indices == index_map.final_indices


def compose(outer: IndexMap, inner: IndexMap, an: Analyzer | None = None) -> IndexMap:
    """The map that applies ``inner``, then ``outer``."""
    an = an or Analyzer()
    return IndexMap(
        inner.initial_indices, tuple(map(an.simplify, outer.map_indices(inner.final_indices))), outer.separators
    )


def estimate_region_lower(
    region: Sequence[Range], dom: Mapping[Var, Range], predicate: Expr | bool = True, an: Analyzer | None = None
) -> tuple[Range, ...] | None:
    """The region that is covered without gaps when the variables of ``dom`` run; None where that is not known.

    Where ``estimate_region`` gives the same box, that box is exact.
    """
    an = an or Analyzer()
    try:
        found = detect_iter_map([r.min for r in region], dom, predicate, an=an)
    except ArithError:
        return None
    out = []
    for s, r in zip(found.indices, region, strict=True):
        if not s.splits:
            out.append(Range(s.base, r.extent))
            continue
        (p,) = s.splits
        step = p.scale if an.prove(tir.ge(p.scale, 0)) else an.simplify(tir.sub(0, p.scale))
        if not an.prove(tir.ge(r.extent, step)) or not an.prove(tir.ge(step, 0)):
            return None
        reach = tir.mul(step, tir.sub(p.extent, ONE))
        first = s.base if step is p.scale else an.simplify(tir.sub(s.base, reach))
        out.append(Range(first, an.simplify(tir.add(reach, r.extent))))
    return tuple(out)
