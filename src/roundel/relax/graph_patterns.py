# SPDX-License-Identifier: Apache-2.0
"""Patterns of several values of a dataflow block, with who uses whom.

    with PatternContext() as ctx:
        matmul, relu = is_op("relax.matmul")(wildcard(), wildcard()), is_op("relax.nn.relu")(wildcard())
        matmul >> relu                      # relu uses the product and nothing else does; ^ where others may
    found = ctx.match_dfb(block)            # {matmul: variable, relu: variable, ...} or None

Different patterns stand for different values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from roundel.ir import graph
from roundel.ir.dataclass import dataclass
from roundel.ir.visit import walk

from .patterns import CONTEXTS, CallPattern, Connected, DFPattern, Matcher, same_shape


@dataclass(frozen=True)
class Use:
    """``user`` uses the value of ``producer``, as operand ``index`` (-1: any); ``only``: and nothing else does."""

    producer: DFPattern
    user: DFPattern
    index: int
    only: bool


class PatternSeq(Connected):
    """Patterns each of which uses the one before."""

    def __init__(self, patterns: Sequence[DFPattern]) -> None:
        self._patterns = list(patterns)

    @property
    def patterns(self) -> list[DFPattern]:
        """From producer to user."""
        return self._patterns

    def dup(self) -> PatternSeq:
        """A sequence of the same kind that stands for values of its own."""
        table = {p: p.dup() for p in self._patterns}
        context = CONTEXTS[-1]
        context.uses += [Use(table[u.producer], table[u.user], u.index, u.only) for u in context.uses if u.producer in table and u.user in table]
        return PatternSeq(list(table.values()))


class PatternContext:
    """Patterns and uses that are told of inside ``with``; an ``incremental`` one goes on from those of the context around it."""

    def __init__(self, incremental: bool = False) -> None:
        outer = CONTEXTS[-1] if incremental and CONTEXTS else None
        self.uses: list[Use] = list(outer.uses) if outer else []
        self.same_shapes: list[tuple[DFPattern, DFPattern]] = list(outer.same_shapes) if outer else []

    def __enter__(self) -> PatternContext:
        CONTEXTS.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        CONTEXTS.pop()

    @staticmethod
    def current() -> PatternContext:
        """The innermost context that is open."""
        return CONTEXTS[-1]

    def connect(self, producer: Connected, user: Connected, index: int, only: bool) -> PatternSeq:
        """Adds a use between the end of one and the start of the other."""
        self.uses.append(Use(producer.patterns[-1], user.patterns[0], index, only))
        return PatternSeq([*producer.patterns, *user.patterns])

    def note_call(self, call: CallPattern) -> None:
        """The operands of a pattern of a call are used by it."""
        self.uses += [Use(a, call, -1, False) for a in call.args]

    def match_dfb(self, block: graph.DataflowBlock) -> dict[DFPattern, Any] | None:
        """What each pattern stands for, or None where the block has nothing of the kind."""
        return next(self.matches(block), None)

    def matches(self, block: graph.DataflowBlock) -> Iterator[dict[DFPattern, Any]]:
        """All ways in which the patterns match."""
        order = list(dict.fromkeys(p for u in self.uses for p in (u.user, u.producer)))
        yield from self._extend(order, Matcher(bound_in(block)), Uses(block))

    def _extend(self, order: list[DFPattern], m: Matcher, uses: Uses) -> Iterator[dict[DFPattern, Any]]:
        if not self._holds(m.found, uses):
            return
        rest = [p for p in order if p not in m.found]
        if not rest:
            yield dict(m.found)
            return
        before = dict(m.found)
        for value in uses.candidates(rest[0], self.uses, m.found):
            m.found = dict(before)
            if m.match(rest[0], value):
                yield from self._extend(rest, m, uses)
        m.found = before

    def _holds(self, found: Mapping[DFPattern, Any], uses: Uses) -> bool:
        """Whether nothing that is known so far contradicts what was told."""
        told = {p for u in self.uses for p in (u.producer, u.user)}
        values = [v for p, v in found.items() if p in told]
        return (
            len({id(v) for v in values}) == len(values)
            and all(uses.holds(u, found[u.producer], found[u.user]) for u in self.uses if u.producer in found and u.user in found)
            and all(same_shape(found[a].sinfo.shape, found[b].sinfo.shape) for a, b in self.same_shapes if a in found and b in found)
        )


class Uses:
    """Who uses which variable in a block."""

    def __init__(self, block: graph.DataflowBlock) -> None:
        self.operands = {b.var: operands(b.value) for b in block.bindings if isinstance(b, graph.VarBinding)}
        self.users: dict[Any, set[Any]] = {}
        for var, args in self.operands.items():
            for a in args:
                self.users.setdefault(a, set()).add(var)
        self.leaving = {b.var for b in block.bindings if not isinstance(b.var, graph.DataflowVar)}

    def holds(self, use: Use, producer: Any, user: Any) -> bool:
        """Whether one value is used by another as told."""
        args = self.operands.get(user, ())
        if not any(a is producer for a in (args if use.index < 0 else args[use.index : use.index + 1])):
            return False
        return not use.only or (self.users.get(producer) == {user} and producer not in self.leaving)

    def candidates(self, pattern: DFPattern, told: Sequence[Use], found: Mapping[DFPattern, Any]) -> list[Any]:
        """Values that a pattern may stand for: the operands of a user that is known, else all."""
        user = next((found[u.user] for u in told if u.producer is pattern and u.user in found), None)
        if user is not None:
            return list(dict.fromkeys(self.operands.get(user, ())))
        return list(dict.fromkeys([*self.operands, *self.users]))


def operands(value: Any) -> list[Any]:
    """The operands of a value, those of tuples one by one; functions are none."""
    if isinstance(value, graph.Call):
        args = value.args[1:] if value.args and isinstance(value.args[0], graph.GlobalVar | graph.ExternFunc) else value.args
        return [x for a in args for x in (a.fields if isinstance(a, graph.Tuple) else (a,))]
    if isinstance(value, graph.TupleGetItem):
        return [value.tuple_value]
    return [n for n in walk(value) if isinstance(n, graph.Var | graph.Constant)]


def bound_in(block: graph.BindingBlock) -> dict[graph.Var, Any]:
    """What the variables of a block are bound to."""
    return {b.var: b.value for b in block.bindings if isinstance(b, graph.VarBinding)}
