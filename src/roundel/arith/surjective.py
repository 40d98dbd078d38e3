# SPDX-License-Identifier: Apache-2.0
"""Iteration maps onto boxes: whether every combination of values of the indices is taken, by however many iterations.

Iterators that do not divide evenly, or begin at an offset, are padded on either side to be divided; then only a *window* of the padded
iterator's values is really taken. Its remainders are all taken where the window is as long as the divisor; its quotients are those of the whole
blocks within the window, fewer by the cut blocks at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..ir import tir
from ..ir.tir import Expr, index_const
from .analyzer import Analyzer

if TYPE_CHECKING:
    from .iter_map import IterMark, IterSplit, IterSum

Fail = Callable[[str, object], Exception]


def contiguous(an: Analyzer, splits: Sequence[IterSplit]) -> tuple[list[IterSplit], Expr] | None:
    """Splits with constant scales, outermost first, and how many values their sum takes, where it takes each value between: each scale (in units
    of the smallest) is at most what the inner ones cover, as in ``x * 7 + y`` over y < 8. None where it does not."""
    if not all(type(p.scale) is tir.IntImm and p.scale.value > 0 for p in splits):
        return None
    order = sorted(splits, key=lambda p: p.scale.value)
    unit, covered = order[0].scale.value, order[0].extent
    for p in order[1:]:
        step, left = divmod(p.scale.value, unit)
        if left or not an.prove(tir.le(index_const(step), covered)):
            return None
        covered = an.simplify(covered + (p.extent - 1) * step)
    return order[::-1], covered


class Windows:
    """What is taken of each mark; ``padded`` marks are windows of what they extend."""

    def __init__(self, an: Analyzer, padded: Iterable[IterMark], fail: Fail) -> None:
        self.an, self.padded, self.fail = an, set(padded), fail
        self.parts: dict[IterMark, list[IterSplit]] = {}
        self.users: dict[tuple[IterMark, IterSplit], list[IterMark | None]] = {}  # None: an index

    def check(self, sums: Sequence[IterSum]) -> None:
        """Raises ArithError where the indices do not take every combination of their values."""
        for s in sums:
            for p in s.splits:
                self.use(p, None)
        for mark, parts in self.parts.items():
            for p in parts:
                users = self.users[mark, p]
                if len(users) > 1:
                    raise self.fail("part of an iterator is used twice", mark)
                if users[0] not in self.padded and not self.taken(p)[1]:
                    raise self.fail("not every value of a padded iterator is taken", mark)

    def use(self, p: IterSplit, user: IterMark | None) -> None:
        """Notes a split and those that its mark is made of."""
        plain = type(p)(p.mark, p.lower, p.extent, index_const(1))
        if plain not in self.parts.setdefault(p.mark, []):
            self.parts[p.mark].append(plain)
        users = self.users.setdefault((p.mark, plain), [])
        if user in users and user is not None:
            return
        users.append(user)
        for q in getattr(p.mark.source, "splits", ()):
            self.use(q, p.mark)

    def window(self, mark: IterMark) -> tuple[Expr, bool, bool]:
        """How many values of a mark, one after the other, are taken whatever else is; whether they are all of [0, extent); whether they are all
        that the mark was padded from."""
        if mark not in self.padded:
            return mark.extent, True, True
        (p,) = mark.source.splits  # type: ignore[union-attr]
        count, whole = self.taken(type(p)(p.mark, p.lower, p.extent, index_const(1)))
        return count, False, whole

    def taken(self, p: IterSplit) -> tuple[Expr, bool]:
        """How many values of a part are taken, whatever the other parts of its mark are; whether they are all of them."""
        order = self.in_order(p.mark)
        count, whole, solid = self.window(p.mark)
        top = order[-1]
        all_parts = tir.mul(top.lower, top.extent)
        if (whole and self.an.prove_equal(all_parts, p.mark.extent)) or self.an.prove(tir.le(all_parts, count)):
            return p.extent, True
        if p is not top and p != top:
            if not self.an.prove(tir.le(top.lower, count)):
                raise self.fail("an iterator is shorter than what divides it", p.mark)
            return p.extent, True
        quotient = self.an.prove_equal(top.extent, tir.ceildiv(p.mark.extent, top.lower)) and not self.an.prove_equal(top.lower, 1)
        if len(order) == 1 and solid and quotient:
            return p.extent, True  # a quotient by itself: blocks that are cut count too
        return self.an.simplify(tir.floordiv(count - top.lower + 1, top.lower)), False

    def in_order(self, mark: IterMark) -> list[IterSplit]:
        """The parts of a mark from the innermost; raises ArithError where they overlap."""
        rest, out, covered = list(self.parts[mark]), [], index_const(1)
        while rest:
            part = next((p for p in rest if self.an.prove_equal(tir.floormod(p.lower, covered), 0) and self.lowest(p, rest)), None)
            if part is None:
                raise self.fail("parts of an iterator overlap", mark)
            rest.remove(part)
            out.append(part)
            covered = self.an.simplify(part.lower * part.extent)
        return out

    def lowest(self, p: IterSplit, others: Sequence[IterSplit]) -> bool:
        """Whether a part ends below all others."""
        return all(o is p or self.an.prove(tir.ge(o.lower, p.lower * p.extent)) for o in others)
