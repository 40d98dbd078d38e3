# SPDX-License-Identifier: Apache-2.0
"""Updates that may come in any order: ``B[i] = B[i] + x``, minima, products, the choice of the greatest with its place."""

from __future__ import annotations

from roundel.arith.effects import buffers_of
from roundel.ir import tir, walk
from roundel.ir.tir import Block, BufferLoad, BufferStore, Expr

_SAME = {tir.Mul: "Mul", tir.Min: "Min", tir.Max: "Max", tir.And: "And", tir.Or: "Or"}
_CALLS = ("bitwise_or", "bitwise_and", "bitwise_xor")
_COMPARISONS = (tir.LT, tir.LE, tir.GT, tir.GE)


def family(store: BufferStore, block: Block | None = None) -> str | None:
    """The operation with which a store combines the old value and another one; None where it does not, or the order matters.

    ``block`` is where the store stands: a choice between old and new values may be made by another store's (argmax).
    """
    if store.buffer not in buffers_of(store.value):
        return None
    acc = BufferLoad(store.buffer, store.indices)
    if any(type(n) is BufferLoad and n.buffer is store.buffer and n is not acc for n in walk(store.value)):
        return None
    return _family(store.value, acc, block) or None


def _has(e: Expr, acc: Expr) -> bool:
    return any(n is acc for n in walk(e))


def _family(e: Expr, acc: Expr, block: Block | None) -> str | None:
    """"" for the old value itself, the operation on the way to it otherwise; None where there is none."""
    if e is acc:
        return ""
    if type(e) is tir.Cast:
        return _family(e.value, acc, block)
    if type(e) in (tir.Select, tir.IfThenElse):
        return _choice(e, acc, block)
    found = _operands(e)
    if found is None:
        return None
    name, operands = found
    holding = [x for x in operands if _has(x, acc)]
    if len(holding) != 1:
        return None
    return name if _family(holding[0], acc, block) in ("", name) else None


def _operands(e: Expr) -> tuple[str, tuple[Expr, ...]] | None:
    """An operation that may be done in any order, and the operands in which the old value may be."""
    if type(e) is tir.Add:
        return "Add", (e.a, e.b)
    if type(e) is tir.Sub:
        return "Add", (e.a,)
    if type(e) in _SAME:
        return _SAME[type(e)], (e.a, e.b)  # type: ignore[attr-defined]
    if type(e) is tir.Call and e.op in _CALLS:
        return str(e.op), e.args
    return ("Add", e.args[2:]) if type(e) is tir.Call and e.op == "fma" else None


def _choice(e: Expr, acc: Expr, block: Block | None) -> str | None:
    """``select(B[i] < x, x, B[i])``, ``select(c, B[i] + x, B[i])``, and the choices of several stores by one comparison."""
    condition, yes, no = e.condition, e.true_value, e.false_value  # type: ignore[attr-defined]
    parts = [_family(x, acc, block) if _has(x, acc) else None for x in (yes, no)]
    if not _reads_back(condition, acc, block):
        return next((f for f in parts if f), "") if None not in parts and len({f for f in parts if f}) < 2 else None
    if parts.count("") != 1 or parts.count(None) != 1:
        return None
    return "choice" if (block is not None and block.init is not None) or _compares(condition, acc, no if yes is acc else yes) else None


def _reads_back(condition: Expr, acc: Expr, block: Block | None) -> bool:
    written = {acc.buffer} | ({w.buffer for w in block.writes} if block is not None else set())  # type: ignore[attr-defined]
    return any(type(n) is BufferLoad and n.buffer in written for n in walk(condition))


def _compares(condition: Expr, acc: Expr, other: Expr) -> bool:
    return type(condition) in _COMPARISONS and {condition.a, condition.b} == {acc, other}  # type: ignore[attr-defined]
