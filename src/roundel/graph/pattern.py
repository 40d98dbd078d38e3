# SPDX-License-Identifier: Apache-2.0
"""Patterns over graph expressions, for passes that rewrite by example.

    x, b = wildcard(), wildcard()
    pattern = is_op("nn.relu")(is_op("add")(x, b))
    rewrite(mod, pattern, lambda m: make("my.add_relu", m[x], m[b]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir import graph
from ..ir.attrs import freeze
from ..ir.module import IRModule
from ..ir.op import OpDef
from .rewriter import GraphRewriter, uses


class Pattern:
    """Base of patterns; a pattern is its own key in the match."""

    def match(self, value: Any, m: Match) -> bool:
        """Whether ``value`` fits; captures go into ``m``."""
        if self in m.captured:
            return m.captured[self] is value
        if not self._fits(value, m):
            return False
        m.captured[self] = value
        return True

    def _fits(self, value: Any, m: Match) -> bool:
        raise NotImplementedError

    @property
    def operators(self) -> frozenset[str] | None:
        """The operators whose calls it may match; None for any."""
        return None

    def __or__(self, other: Pattern) -> Pattern:
        return Either(self, other)

    def where(self, condition: Callable[[Any], bool]) -> Pattern:
        """This pattern, when ``condition`` holds of the matched expression."""
        return Where(self, condition)

    def has_dtype(self, dtype: str) -> Pattern:
        """This pattern, on tensors of ``dtype``."""
        return Where(self, lambda v: getattr(v.sinfo, "dtype", None) == dtype)


class Match:
    """The expressions captured, by pattern: ``m[x]``. ``lookup`` finds what a variable is bound to; a replacement sets ``origin`` to the pattern
    of the call whose node's name it keeps, where that is not the outermost one."""

    def __init__(self, lookup: Callable[[Any], Any], use_count: Mapping[graph.Var, int]) -> None:
        self.captured: dict[Pattern, Any] = {}
        self.origin: Pattern | None = None
        self.lookup, self.use_count = lookup, use_count

    def __getitem__(self, pattern: Pattern) -> Any:
        return self.captured[pattern]

    def call(self, pattern: Pattern) -> graph.Call:
        """The call that the captured variable is bound to."""
        value = self.captured[pattern]
        made = self.lookup(value)
        return value if made is None else made


class Wildcard(Pattern):
    """Matches anything."""

    def _fits(self, value: Any, m: Match) -> bool:
        return True


class ConstantPattern(Pattern):
    """Matches a constant; with ``value``, one whose elements all equal it."""

    def __init__(self, value: float | None = None) -> None:
        self.value = value

    def _fits(self, value: Any, m: Match) -> bool:
        if not isinstance(value, graph.Constant):
            return False
        if self.value is None:
            return True
        return value.data.nbytes <= 4096 and value.data.numpy().size > 0 and bool((value.data.numpy() == self.value).all())


class OpPattern(Pattern):
    """Matches a call of the operator with matching operands and (where given) attributes. ``once``: inner calls must have
    no other user, so that the rewriting removes them."""

    def __init__(self, name: str, args: tuple[Pattern, ...] | None = None, attrs: Mapping[str, Any] | None = None) -> None:
        self.name, self.args, self.attrs = name, args, dict(attrs or {})

    def __call__(self, *args: Pattern, **attrs: Any) -> OpPattern:
        return OpPattern(self.name, args, attrs)

    @property
    def operators(self) -> frozenset[str]:
        """The one operator of the name."""
        return frozenset((self.name,))

    def _fits(self, value: Any, m: Match) -> bool:
        call = m.lookup(value) if isinstance(value, graph.Var) else value
        if not isinstance(call, graph.Call) or not isinstance(call.op, OpDef) or call.op.name != self.name:
            return False
        if any(call.attrs.get(k) != freeze(v) for k, v in self.attrs.items()):
            return False
        if self.args is None:
            return True
        return len(call.args) >= len(self.args) and all(p.match(a, m) for p, a in zip(self.args, call.args, strict=False))


class Either(Pattern):
    """Matches what either pattern matches, the first tried first."""

    def __init__(self, *options: Pattern) -> None:
        self.options = options

    @property
    def operators(self) -> frozenset[str] | None:
        """Those of all its alternatives."""
        each = [o.operators for o in self.options]
        return None if None in each else frozenset().union(*each)

    def _fits(self, value: Any, m: Match) -> bool:
        for option in self.options:
            saved = dict(m.captured)
            if option.match(value, m):
                return True
            m.captured = saved
        return False


class Where(Pattern):
    """A pattern with a condition on the matched expression."""

    def __init__(self, inner: Pattern, condition: Callable[[Any], bool]) -> None:
        self.inner, self.condition = inner, condition

    @property
    def operators(self) -> frozenset[str] | None:
        """Those of the pattern that it restricts."""
        return self.inner.operators

    def _fits(self, value: Any, m: Match) -> bool:
        return self.inner.match(value, m) and self.condition(value)


def wildcard() -> Wildcard:
    """A pattern that every value matches."""
    return Wildcard()


def is_const(value: float | None = None) -> ConstantPattern:
    """A constant, optionally one filled with ``value``."""
    return ConstantPattern(value)


def is_op(name: str) -> OpPattern:
    """A call of ``R.<name>``; call the result with operand patterns and attributes."""
    return OpPattern(name)


def commutative(name: str, a: Pattern, b: Pattern) -> Pattern:
    """The operator with its two operands in either order."""
    return is_op(name)(a, b) | is_op(name)(b, a)


def rewrite(mod: IRModule, pattern: Pattern, replacement: Callable[[Match], Any]) -> IRModule:
    """Replace every match by ``replacement(match)`` (None leaves it). Calls left without users go with dead code elimination."""
    return PatternRewriter(mod, [(pattern, replacement)]).module()


class PatternRewriter(GraphRewriter):
    """Applies rules (pattern, replacement) in order to each call until none fits."""

    def __init__(self, mod: IRModule, rules: list[tuple[Pattern, Callable[[Match], Any]]]) -> None:
        super().__init__(mod)
        self.rules = [(p.operators, p, replacement) for p, replacement in rules]
        self.of_operator: dict[str, list[tuple[Pattern, Callable[[Match], Any]]]] = {}  # the rules that may fit its calls
        self.use_count: dict[graph.Var, int] = {}

    def function(self, func: graph.Function) -> graph.Function:
        """A function with its matches rewritten."""
        self.use_count = uses(func)
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """What a call becomes: what the first rule that matches makes of it, or itself."""
        name = call.op.name if isinstance(call.op, OpDef) else ""
        if name not in self.of_operator:
            self.of_operator[name] = [(p, made) for operators, p, made in self.rules if operators is None or name in operators]
        for pattern, replacement in self.of_operator[name]:
            m = Match(self.producer, self.use_count)
            if pattern.match(call, m):
                new = replacement(m)
                if new is not None:
                    if m.origin is not None:
                        self.span = self.spans.get(m[m.origin], self.span)
                    return new
        return call
