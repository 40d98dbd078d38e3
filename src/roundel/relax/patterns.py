# SPDX-License-Identifier: Apache-2.0
"""Patterns of graph values: what an expression looks like, through the variables that its parts are bound to.

    x = wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(x, is_const()))
    found = pattern.extract_matched_expr(value, get_var2val(func))    # {x: ..., pattern: ...} or None

One pattern used twice stands for one value. Operands of ``add`` and ``multiply`` match in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roundel.arith import Analyzer
from roundel.ir import graph, structural_equal, tir
from roundel.ir.attrs import freeze
from roundel.ir.dtype import DType
from roundel.ir.errors import RoundelError
from roundel.ir.op import CALL_DPS_PACKED, CALL_TIR, OpDef, get_op

_COMMUTATIVE = ("add", "multiply", "maximum", "minimum")


class Matcher:
    """What patterns have matched so far; ``var2val`` tells what variables are bound to."""

    def __init__(self, var2val: Mapping[graph.Var, Any] | None = None) -> None:
        self.var2val = var2val or {}
        self.found: dict[DFPattern, Any] = {}

    def value(self, e: Any) -> Any:
        """What a variable is bound to in the end; anything else as it is."""
        while isinstance(e, graph.Var) and e in self.var2val:
            e = self.var2val[e]
        return e

    def match(self, pattern: DFPattern, e: Any) -> bool:
        """Whether ``e`` is what the pattern says, and what it has been before; nothing is kept of an attempt that fails."""
        if pattern in self.found:
            return self.found[pattern] is e or self.value(self.found[pattern]) is self.value(e)
        before = dict(self.found)
        if pattern.matches(self, e):
            self.found[pattern] = e
            return True
        self.found = before
        return False

    def all(self, patterns: Sequence[DFPattern], items: Sequence[Any]) -> bool:
        """Whether each of the items is what its pattern says."""
        return len(patterns) == len(items) and self._first(lambda: all(map(self.match, patterns, items)))

    def any_order(self, patterns: Sequence[DFPattern], items: Sequence[Any]) -> bool:
        """Whether the items are what the patterns say in some order."""
        if len(patterns) != len(items):
            return False
        if not patterns:
            return True
        rest = [items[:k] + items[k + 1 :] for k in range(len(items))]
        return any(
            self._first(lambda e=e, r=r: self.match(patterns[0], e) and self.any_order(patterns[1:], r)) for e, r in zip(items, rest)
        )

    def _first(self, attempt: Callable[[], bool]) -> bool:
        before = dict(self.found)
        if attempt():
            return True
        self.found = before
        return False


CONTEXTS: list[Any] = []  # pattern contexts that are open, the innermost last


class Connected:
    """What uses and users are told of in a pattern context: patterns, and sequences of them."""

    @property
    def patterns(self) -> list[DFPattern]:
        """Its patterns, from producer to user."""
        raise NotImplementedError

    def _connect(self, other: Connected, index: int, only: bool) -> Any:
        if not CONTEXTS:
            raise RoundelError("uses are told of inside of a pattern context", hint="with PatternContext() as ctx:")
        return CONTEXTS[-1].connect(self, other, index, only)

    def used_by(self, other: Connected, index: int = -1) -> Any:
        """``other`` uses this value (as operand ``index``, -1 for any)."""
        return self._connect(other, index, False)

    def only_used_by(self, other: Connected, index: int = -1) -> Any:
        """``other`` uses this value and nothing else does."""
        return self._connect(other, index, True)

    def __xor__(self, other: Connected) -> Any:
        return self.used_by(other)

    def __rshift__(self, other: Connected) -> Any:
        return self.only_used_by(other)

    def fork_to(self, *others: Connected) -> None:
        """Each of the others uses this value."""
        for other in others:
            self.used_by(other)


class DFPattern(Connected):
    """Base of the patterns."""

    @property
    def patterns(self) -> list[DFPattern]:
        """The pattern."""
        return [self]

    def same_shape_as(self, other: DFPattern) -> None:
        """In a pattern context: a tensor of the shape that the other's value has."""
        CONTEXTS[-1].same_shapes.append((self, other))

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether ``e`` is what this pattern says; what its parts matched is kept in ``m``."""
        raise NotImplementedError

    def match(self, expr: Any, var2val: Mapping[graph.Var, Any] | None = None) -> bool:
        """Whether an expression matches."""
        return Matcher(var2val).match(self, expr)

    def extract_matched_expr(self, expr: Any, var2val: Mapping[graph.Var, Any] | None = None) -> dict[DFPattern, Any] | None:
        """What each part of the pattern matched, or None."""
        m = Matcher(var2val)
        return m.found if m.match(self, expr) else None

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False) -> CallPattern:
        return CallPattern(self, args, varg_default_wildcard)

    def __or__(self, other: DFPattern) -> DFPattern:
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> DFPattern:
        return AndPattern(self, other)

    def __invert__(self) -> DFPattern:
        return NotPattern(self)

    def has_dtype(self, dtype: Any) -> DFPattern:
        """Also of this data type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """Also a tensor of this shape."""
        return ShapePattern(self, shape)

    def has_struct_info(self, info: graph.StructInfo) -> DFPattern:
        """Also of this struct info."""
        return StructInfoPattern(self, info)

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """Also a call, or a function, with these attributes."""
        return AttrPattern(self, attrs)

    def optional(self, make: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This, or what ``make`` builds on it."""
        return self | make(self)

    def dup(self) -> DFPattern:
        """A pattern of the same kind that stands for a value of its own."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


class WildcardPattern(DFPattern):
    """The pattern that every value matches."""

    def matches(self, m: Matcher, e: Any) -> bool:
        """True for every value."""
        return True


class ExprPattern(DFPattern):
    """This very expression, or operator."""

    def __init__(self, expr: Any) -> None:
        self.expr = expr

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is this expression, or one that is structurally equal."""
        return e is self.expr or m.value(e) is self.expr or (not isinstance(self.expr, OpDef | graph.Var) and structural_equal(m.value(e), self.expr))


class _Named(DFPattern):
    """A node of a class, by name where one is given."""

    node: type = object

    def __init__(self, name: str = "") -> None:
        self.name = name

    def matches(self, m: Matcher, e: Any) -> bool:
        return isinstance(e, self.node) and (not self.name or e.name == self.name)


class VarPattern(_Named):
    """A variable."""

    node = graph.Var


class DataflowVarPattern(VarPattern):
    """A variable of a dataflow block."""

    node = graph.DataflowVar


class GlobalVarPattern(_Named):
    """A function of the module."""

    node = graph.GlobalVar


class ExternFuncPattern(_Named):
    """A foreign function."""

    node = graph.ExternFunc


class ConstantPattern(DFPattern):
    """A constant."""

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is a constant."""
        return isinstance(m.value(e), graph.Constant)


class CallPattern(DFPattern):
    """A call of what ``op`` matches with operands that ``args`` match (any, by default, where ``varg_default_wildcard`` says so)."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern], varg_default_wildcard: bool = False) -> None:
        self.op, self.args, self.varg_default_wildcard = op, list(args), varg_default_wildcard
        if CONTEXTS:
            CONTEXTS[-1].note_call(self)

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is a call whose operator and arguments match, in order."""
        call = m.value(e)
        if not isinstance(call, graph.Call) or not m.match(self.op, call.op):
            return False
        if self.varg_default_wildcard and len(self.args) <= len(call.args):
            return all(map(m.match, self.args, call.args))
        if m.all(self.args, call.args):
            return True
        swaps = isinstance(call.op, OpDef) and call.op.name in _COMMUTATIVE
        return swaps and m.all(self.args, tuple(reversed(call.args)))


class _DestinationPassing(DFPattern):
    """``call_tir`` or ``call_dps_packed`` of a function, with what its operands match."""

    def __init__(self, op: OpDef, function: DFPattern, args: Sequence[DFPattern] | DFPattern | None, tir_vars: DFPattern | None = None) -> None:
        self.op, self.function, self.args, self.tir_vars = op, function, args, tir_vars

    def dup(self) -> DFPattern:
        """A pattern of the same kind, the function's too."""
        return _DestinationPassing(self.op, self.function.dup(), self.args, self.tir_vars)

    def matches(self, m: Matcher, e: Any) -> bool:
        call = m.value(e)
        if not isinstance(call, graph.Call) or call.op is not self.op or not m.match(self.function, call.args[0]):
            return False
        if self.tir_vars is not None and (len(call.args) < 3 or not m.match(self.tir_vars, call.args[2])):
            return False
        if self.args is None:
            return True
        given = call.args[1]
        return m.match(self.args, given) if isinstance(self.args, DFPattern) else m.all(self.args, getattr(given, "fields", (given,)))


class FunctionPattern(DFPattern):
    """A graph function of parameters and a result that match."""

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        self.params, self.body = list(params), body

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is a function whose parameters and body match."""
        if not isinstance(e, graph.Function):
            return False
        inner = Matcher({**m.var2val, **get_var2val(e)})
        inner.found = m.found
        ok = inner.all(self.params, e.params) and inner.match(self.body, e.body.body)
        m.found = inner.found
        return ok


class TuplePattern(DFPattern):
    """A tuple of fields that match, in this order."""

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = list(fields)

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is a tuple whose fields match, in order."""
        whole = m.value(e)
        return isinstance(whole, graph.Tuple) and self._fields(m, whole.fields)

    def _fields(self, m: Matcher, items: Sequence[Any]) -> bool:
        return m.all(self.fields, items)

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        if index is not None:
            self.fields[index]  # raises IndexError
            index %= len(self.fields)
        return TupleGetItemPattern(self, index)


class UnorderedTuplePattern(TuplePattern):
    """A tuple of fields that match in some order."""

    def _fields(self, m: Matcher, items: Sequence[Any]) -> bool:
        return m.any_order(self.fields, tuple(items))


class TupleGetItemPattern(DFPattern):
    """A field of a tuple (any, where ``index`` is None)."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index = tuple_value, index

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the value is a field, of this index where one is given, of a tuple that matches."""
        item = m.value(e)
        return isinstance(item, graph.TupleGetItem) and self.index in (None, item.index) and m.match(self.tuple, item.tuple_value)


class OrPattern(DFPattern):
    """One or the other."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether one of them matches; the first that does is taken."""
        return m.match(self.left, e) or m.match(self.right, e)


class AndPattern(OrPattern):
    """A pattern that values match which match both of two."""

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether both match."""
        return m.match(self.left, e) and m.match(self.right, e)


class NotPattern(DFPattern):
    """Anything else."""

    def __init__(self, to_reject: DFPattern) -> None:
        self.to_reject = to_reject

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the pattern that is refused does not match."""
        return not m.match(self.to_reject, e)


class _Restricted(DFPattern):
    """What another pattern matches, where more holds."""

    def __init__(self, pattern: DFPattern, wanted: Any) -> None:
        self.pattern, self.wanted = pattern, wanted

    def matches(self, m: Matcher, e: Any) -> bool:
        return m.match(self.pattern, e) and self.holds(m, e)

    def holds(self, m: Matcher, e: Any) -> bool:
        """The restriction."""
        raise NotImplementedError


class DataTypePattern(_Restricted):
    """Of a data type."""

    @property
    def dtype(self) -> DType:
        """The data type."""
        return DType(self.wanted)

    def holds(self, m: Matcher, e: Any) -> bool:
        """Whether the tensor has this data type."""
        return getattr(getattr(e, "sinfo", None), "dtype", None) == self.dtype


class ShapePattern(_Restricted):
    """A tensor of a shape; dimensions are compared as expressions."""

    @property
    def shape(self) -> Sequence[Any]:
        """The shape."""
        return self.wanted

    def holds(self, m: Matcher, e: Any) -> bool:
        """Whether the tensor has this shape, dimension by dimension equal by proof."""
        return same_shape(getattr(getattr(e, "sinfo", None), "shape", None), self.wanted)


class StructInfoPattern(_Restricted):
    """Of a struct info."""

    def holds(self, m: Matcher, e: Any) -> bool:
        """Whether the value has this very struct info."""
        return getattr(e, "sinfo", None) is self.wanted


class AttrPattern(_Restricted):
    """With attributes."""

    def holds(self, m: Matcher, e: Any) -> bool:
        """Whether the call or function has these attributes with these values."""
        attrs = getattr(m.value(e), "attrs", {})
        return all(k in attrs and _plain(attrs[k]) == _plain(freeze(v)) for k, v in self.wanted.items())


class PrimArrPattern(DFPattern):
    """A shape as a value."""

    def __init__(self, shape: Sequence[Any]) -> None:
        self.shape = list(shape)

    def __getitem__(self, index: int) -> Any:
        return self.shape[index]

    def matches(self, m: Matcher, e: Any) -> bool:
        """Whether the shape has these sizes, equal by proof."""
        return same_shape(getattr(m.value(e), "values", None), self.shape)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value) if isinstance(value, tir.Expr) else value


def same_shape(a: Sequence[Any] | None, b: Sequence[Any] | None) -> bool:
    """Whether two shapes are known and equal."""
    an = Analyzer()
    return a is not None and b is not None and len(a) == len(b) and all(an.prove_equal(x, y) for x, y in zip(a, b))


# ---- by the names that TVM gives them


def wildcard() -> WildcardPattern:
    """A pattern that every value matches; two of them may match different values."""
    return WildcardPattern()


def is_expr(expr: Any) -> ExprPattern:
    """This expression."""
    return ExprPattern(expr)


def is_op(name: str) -> ExprPattern:
    """An operator, ``is_op("relax.add")(x, y)``; raises RoundelError for one that there is none of."""
    return ExprPattern(get_op(name.removeprefix("relax.")))


def is_var(name: str = "") -> VarPattern:
    """A variable."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module."""
    return GlobalVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> TuplePattern:
    """A tuple."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape: Sequence[Any]) -> PrimArrPattern:
    """A shape as a value."""
    return PrimArrPattern(shape)


def has_dtype(dtype: Any, pattern: DFPattern | None = None) -> DFPattern:
    """Of a data type."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> DFPattern:
    """With attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def is_call_tir(name: str, args: Sequence[DFPattern] | DFPattern | None = None, tir_vars: DFPattern | None = None) -> DFPattern:
    """A call of a tensor program of the module."""
    return _DestinationPassing(CALL_TIR, GlobalVarPattern(name), args, tir_vars)


def is_call_dps_packed(name: str, args: Sequence[DFPattern] | DFPattern | None = None) -> DFPattern:
    """A call of a foreign function that writes its results into given tensors."""
    return _DestinationPassing(CALL_DPS_PACKED, ExternFuncPattern(name), args)


def is_call_packed(name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A call of a foreign function."""
    return CallPattern(ExternFuncPattern(name), args or (), args is None)


def get_var2val(func: graph.Function) -> dict[graph.Var, Any]:
    """What the variables of a function are bound to."""
    body = func.body
    return {b.var: b.value for b in body.bindings if isinstance(b, graph.VarBinding)} if isinstance(body, graph.SeqExpr) else {}
