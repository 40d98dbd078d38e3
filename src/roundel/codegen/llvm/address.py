# SPDX-License-Identifier: Apache-2.0
"""Where an element lies: indices as sums of terms, added to the pointer loop by loop, what changes least first.

So a kernel's inner loop adds what changes there and nothing else, and neighbours differ by a constant that fits the
instruction's addressing mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import tir
from ...ir.dtype import INT64, DType
from ..storage import element_bytes, strides
from .emitter import Emitter, Scope, hoistable
from .values import ANYWHERE, NOWHERE

_BELOW = 1 << 16  # bytes of memory from address 0 on, in which no buffer begins: so much less than an element's address is an address still
Linear = tuple[dict[tir.Expr, int], int]  # term -> coefficient, and the constant


def linear(em: Emitter, e: tir.Expr) -> Linear:
    """``e`` as a sum of terms with constant coefficients."""
    hit = em.linear_memo.get(e)
    if hit is None:
        rule = _LINEAR.get(type(e))
        hit = em.linear_memo[e] = (
            rule(em, e) if rule is not None and (e.is_index or type(e) is tir.IntImm) else ({e: 1}, 0)
        )
    return hit


def _sum(sign: int) -> Callable[[Emitter, Any], Linear]:
    def rule(em: Emitter, e: Any) -> Linear:
        (a, c), (b, d) = linear(em, e.a), linear(em, e.b)
        return add_scaled(a, b, sign), c + sign * d

    return rule


def add_scaled(a: dict[tir.Expr, int], b: dict[tir.Expr, int], scale: int) -> dict[tir.Expr, int]:
    """a + scale * b."""
    out = dict(a)
    for term, k in b.items():
        k = out.get(term, 0) + scale * k
        if k:
            out[term] = k
        else:
            out.pop(term, None)
    return out


def _product(em: Emitter, e: tir.Mul) -> Linear:
    return times(linear(em, e.a), linear(em, e.b), e)


def times(x: Linear, y: Linear, whole: tir.Expr | None = None) -> Linear:
    """The product of two sums, multiplied out where one is a constant or a single term."""
    (a, c), (b, d) = x, y
    if not b:
        return {t: k * d for t, k in a.items()} if d else {}, c * d
    if not a:
        return {t: k * c for t, k in b.items()} if c else {}, c * d
    if len(b) == 1 and not d:
        ((term, k),) = b.items()
        out = add_scaled({}, {tir.mul(t, term): n for t, n in a.items()}, k)
        return add_scaled(out, {term: c}, k), 0
    if len(a) == 1 and not c:
        return times(y, x, whole)
    return {whole if whole is not None else tir.mul(_rebuild(x), _rebuild(y)): 1}, 0


def _rebuild(x: Linear) -> tir.Expr:
    return tir.sum_of([*(tir.mul(t, tir.const(k, t.dtype)) for t, k in x[0].items()), x[1]])


_LINEAR: dict[type, Callable[[Emitter, Any], Linear]] = {
    tir.IntImm: lambda em, e: ({}, e.value),
    tir.Add: _sum(1),
    tir.Sub: _sum(-1),
    tir.Mul: _product,
    tir.Cast: lambda em, e: (
        linear(em, e.value) if e.value.is_index and e.dtype.bits >= e.value.dtype.bits else ({e: 1}, 0)
    ),
}


def linear_strides(em: Emitter, buffer: tir.Buffer) -> tuple[Linear, ...]:
    """``strides`` as sums; remembered."""
    hit = em.strides.get(buffer)
    if hit is None:
        hit = em.strides[buffer] = tuple(linear(em, s) for s in strides(buffer))
    return hit


def offset(em: Emitter, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> Linear:
    """The element offset from the buffer's data pointer."""
    terms: dict[tir.Expr, int] = {}
    constant = 0
    parts = [times(linear(em, i), s) for i, s in zip(indices, linear_strides(em, buffer), strict=True)]
    if buffer.elem_offset is not None:
        parts.append(linear(em, buffer.elem_offset))
    for t, c in parts:
        terms = add_scaled(terms, t, 1) if terms else dict(t)
        constant += c
    return terms, constant


def _group(em: Emitter, terms: dict[tir.Expr, int]) -> list[tuple[int, list[tuple[tir.Expr, int]]]]:
    groups: dict[int, list[tuple[tir.Expr, int]]] = {}
    for t, k in terms.items():
        groups.setdefault(em.home(t) if hoistable(t) else 1 << 30, []).append((t, k))
    return sorted(groups.items())


def _scaled_sum(em: Emitter, items: list[tuple[tir.Expr, int]]) -> str:
    """The sum of the terms as a 64-bit register."""
    total: tir.Expr | None = None
    for t, k in items:
        t = t if t.dtype is INT64 else tir.Cast(INT64, t)
        part = t if k == 1 else tir.Mul(t, tir.index_const(k))
        total = part if total is None else tir.Add(total, part)
    return em.value(total)  # type: ignore[arg-type]


def pointer(em: Emitter, buffer: tir.Buffer, where: Linear) -> str:
    """The address of the element (for packed types: of the byte unit) at this offset."""
    base = em.value(buffer.data)
    unit = "ptr" if buffer.dtype.is_handle else f"i{8 * element_bytes(buffer.dtype.element)}"
    terms, constant = where
    lanes = buffer.dtype.lanes
    if lanes > 1:
        terms, constant = {t: k * lanes for t, k in terms.items()}, constant * lanes
    if terms:
        key = (base, unit, *terms.items())
        known = em.scopes[-1].cache if all(map(hoistable, terms)) else em.values.group(ANYWHERE)
        hit = known.get(key)
        if hit is None:
            own = em.inner if buffer.data in em.readonly else None
            hit = known[key] = _add_terms(em, base, em.depth[buffer.data], unit, terms, own)
        base = hit
    if not constant:
        return base
    known = em.values.group(NOWHERE)
    hit = known.get((base, unit, constant))
    if hit is None:
        nbytes = constant * _unit_bytes(unit)
        flag = "nuw " if 0 < nbytes <= _BELOW else ""  # else WebAssembly adds it apart: offsets of its loads do not wrap
        hit = known[base, unit, constant] = em.op(f"getelementptr {flag}{unit}, ptr {base}, i64 {constant}")
    return hit


def _unit_bytes(unit: str) -> int:
    return 8 if unit == "ptr" else int(unit[1:]) // 8


def _add_terms(em: Emitter, base: str, depth: int, unit: str, terms: dict[tir.Expr, int], own: int | None) -> str:
    """The pointer with terms added, each group of them where its variables are bound. What is added outside of the scope ``own`` is hidden from inside."""
    groups = _group(em, terms)
    for position, (level, items) in enumerate(groups):
        comes_in, depth = depth < level, max(depth, level)
        if depth >= len(em.scopes):
            base = em.op(f"getelementptr {unit}, ptr {base}, i64 {_scaled_sum(em, items)}")
            continue
        scope, key = em.scopes[depth], (base, unit, *items, depth)
        hit = scope.cache.get(key)
        if hit is None and comes_in and (walk := scope.walk) is not None and len(items) == 1 and items[0][0] is walk.var:
            hit = scope.cache[key] = "%" + em.name("at")
            walk.pointers.append((hit, base, items[0][1] * walk.step * _unit_bytes(unit)))
        if hit is None:
            saved, em.out = em.out, scope.prelude
            hit = scope.cache[key] = em.op(f"getelementptr {unit}, ptr {base}, i64 {_scaled_sum(em, items)}")
            em.out = saved
        base = hit
        if own is not None and 0 < depth < own and (position + 1 == len(groups) or groups[position + 1][0] >= own):
            base = _hidden(em, base, scope)
    return base


def _hidden(em: Emitter, base: str, scope: Scope) -> str:
    """The same pointer, of which LLVM does not know how it was made. Its search for the best addresses in a loop (loop strength reduction) tries what it
    knows of all loops around: for the tile of a product that takes half of the time of code generation, and finds no better addresses."""
    hit = scope.cache.get((base, "freeze"))
    if hit is None:
        saved, em.out = em.out, scope.prelude
        hit = scope.cache[base, "freeze"] = em.op(f"freeze ptr {base}")
        em.out = saved
    return hit


def halves(em: Emitter, where: Linear, per_byte: int) -> tuple[Linear, tir.Expr] | None:
    """For packed types: the byte offset, when every part divides evenly, else None."""
    terms, constant = where
    if constant % per_byte or any(k % per_byte for k in terms.values()):
        return None
    return ({t: k // per_byte for t, k in terms.items()}, constant // per_byte), tir.index_const(0)


def packed_place(em: Emitter, buffer: tir.Buffer, where: Linear) -> tuple[str, tir.Expr]:
    """For packed types: the address of the byte that holds an element, and how far to shift it (an i8 expression)."""
    per = 8 // buffer.dtype.bits
    even = halves(em, where, per)
    if even is not None:
        return pointer(em, buffer, even[0]), tir.IntImm(0, DType("uint8"))
    terms = [tir.mul(t if t.dtype is INT64 else tir.Cast(INT64, t), tir.index_const(k)) for t, k in where[0].items()]
    index = tir.sum_of([*terms, where[1]])
    byte, part = tir.floordiv(index, per), tir.floormod(index, per)
    return pointer(em, buffer, linear(em, byte)), tir.cast(tir.mul(part, buffer.dtype.bits), "uint8")
