# SPDX-License-Identifier: Apache-2.0
"""Constructors of expressions that coerce numbers, promote types and fold constants; Python's operators call them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import escape
from ..dtype import BOOL, FLOAT32, INT64, DType
from ..errors import ConstantError, NotAnIndexError
from . import expr as e
from .expr import Expr, FloatImm, IntImm

INT_FOLD: dict[type, Callable[[int, int], Any]] = {  # what an operator of exact integers gives
    e.Add: lambda a, b: a + b, e.Sub: lambda a, b: a - b, e.Mul: lambda a, b: a * b,
    e.FloorDiv: lambda a, b: a // b, e.FloorMod: lambda a, b: a % b,
    e.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    e.Mod: lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    e.Min: min, e.Max: max, e.EQ: lambda a, b: a == b, e.NE: lambda a, b: a != b, e.LT: lambda a, b: a < b,
    e.LE: lambda a, b: a <= b, e.GT: lambda a, b: a > b, e.GE: lambda a, b: a >= b,
}
_DIVIDES = (e.FloorDiv, e.FloorMod, e.Div, e.Mod)


def const(value: Any, dtype: Any = None) -> Expr:
    """A constant of ``dtype``; without one bool, int64 or float32 by the Python value's type. Vectors are broadcast."""
    if type(value) is int and type(dtype) is DType and dtype.is_int and dtype.lanes == 1:
        return IntImm(value, dtype)
    if isinstance(value, Expr):
        return value if dtype is None or value.dtype == dtype else cast(value, dtype)
    if hasattr(value, "asexpr"):  # a tensor without dimensions
        return const(value.asexpr(), dtype)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, str):
        return e.StringImm(value)
    if not isinstance(value, int | float):
        raise TypeError(f"a {type(value).__name__} is neither a number nor an expression: {value!r}")
    kind = DType(dtype) if dtype is not None else BOOL if isinstance(value, bool) else INT64 if isinstance(value, int) else FLOAT32
    if kind.lanes != 1:
        return e.Broadcast(const(value, kind.element), kind.lanes)
    return FloatImm(value, kind) if kind.is_float else IntImm(value, kind)


def exact_const(value: Any, dtype: Any = None) -> Expr:
    """``const`` as a person writes it: raises ConstantError for a number too large for float16 or float32 (infinity is ``float("inf")``)."""
    made = const(value, dtype)
    number = made.value if isinstance(made, e.Broadcast) else made
    if isinstance(number, FloatImm) and number.dtype in _LIMITED and number.dtype.largest < abs(number.value) != float("inf"):
        why = f"its largest number is {number.dtype.largest}"
        raise ConstantError(f"{number.value} is out of the range of {number.dtype}", why=why, hint="infinity is float('inf')")
    return made


_LIMITED = (DType("float16"), DType("float32"))


def index_const(value: int) -> IntImm:
    """An int64 constant."""
    return IntImm(value, INT64)


def as_index(value: Any) -> Expr:
    """A number or expression as an index expression; raises NotAnIndexError (an ArithError and a TypeError) for anything else."""
    if isinstance(value, Expr):
        return value
    if type(value) is int:
        return IntImm(value, INT64)
    if hasattr(value, "asexpr"):
        return value.asexpr()
    try:
        if not isinstance(value, str | bytes) and int(value) == value:
            return IntImm(int(value), INT64)
    except (TypeError, ValueError, OverflowError):  # what is no number, NaN, infinity
        pass
    raise NotAnIndexError(f"an index is an integer or an expression, and not {'the text ' if isinstance(value, str) else ''}{escape.value(value)}")


def _pair(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as expressions of one dtype: constants take the other's type; index ints widen to int64."""
    if isinstance(a, Expr):
        if isinstance(b, Expr):
            if a.dtype is b.dtype:
                return a, b
        elif type(b) is int and a.dtype.is_int and a.dtype.lanes == 1:
            return a, IntImm(b, a.dtype)
    if not isinstance(a, Expr):
        a = a.asexpr() if hasattr(a, "asexpr") else const(a, _literal_dtype(a, b)) if hasattr(b, "dtype") or hasattr(b, "asexpr") else const(a)
    if not isinstance(b, Expr):
        b = b.asexpr() if hasattr(b, "asexpr") else const(b, _literal_dtype(b, a))
    if a.dtype.lanes != b.dtype.lanes:
        a = e.Broadcast(a, b.dtype.lanes) if a.dtype.lanes == 1 else a
        b = e.Broadcast(b, a.dtype.lanes) if b.dtype.lanes == 1 else b
    if a.dtype is b.dtype:
        return a, b
    ea, eb = a.dtype.element, b.dtype.element
    if ea is eb:
        raise TypeError(f"vectors of {a.dtype} and {b.dtype} do not go together")
    to = promote(ea, eb)
    return cast(a, to.with_lanes(a.dtype.lanes)), cast(b, to.with_lanes(b.dtype.lanes))


def _literal_dtype(value: Any, other: Expr) -> DType:
    element = other.dtype.element
    if element.kind in ("handle", "str", "void") and not isinstance(value, str):
        raise TypeError(f"the number {value} does not go together with a {element}")
    if isinstance(value, float) and not element.is_float:
        return FLOAT32
    if element.is_bool and not isinstance(value, bool):
        return INT64
    return element


def promote(a: DType, b: DType) -> DType:
    """The type two element types meet in: float over int over bool, then the wider; of equal width the unsigned one, as in C."""
    if a is b:
        return a
    rank = {"bool": 0, "uint": 1, "int": 1, "float": 3, "complex": 4}
    for d in (a, b):
        if d.kind not in rank:
            raise TypeError(f"a {a} and a {b} do not go together")
    if rank[a.kind] != rank[b.kind]:
        return a if rank[a.kind] > rank[b.kind] else b
    if a.bits == b.bits:  # float16 with bfloat16 and the like
        return FLOAT32 if a.is_float else DType(f"uint{a.bits}")
    return a if a.bits > b.bits else b


def _binary(cls: type) -> Callable[[Any, Any], Expr]:
    fold = INT_FOLD.get(cls)
    compares = issubclass(cls, e.Compare)

    def build(a: Any, b: Any) -> Expr:
        a, b = _pair(a, b)
        if type(a) is IntImm and type(b) is IntImm and fold is not None and not (cls in _DIVIDES and b.value == 0):
            return IntImm(fold(a.value, b.value), BOOL) if compares else wrap(fold(a.value, b.value), a.dtype)
        return cls(a, b)

    build.__name__, build.__doc__ = cls.__name__.lower(), cls.__doc__
    return build


def wrap(value: int, dtype: DType) -> IntImm:
    """An integer constant wrapped to its width (64-bit indices never get there)."""
    if dtype.is_bool:
        return IntImm(bool(value), dtype)
    value &= (1 << dtype.bits) - 1
    if dtype.kind == "int" and value >> (dtype.bits - 1):
        value -= 1 << dtype.bits
    return IntImm(value, dtype)


_add, _sub, _mul = _binary(e.Add), _binary(e.Sub), _binary(e.Mul)


def _is(x: Any, value: int) -> bool:
    return type(x) is IntImm and x.value == value


def add(a: Any, b: Any) -> Expr:
    """a + b (x + 0 of integers is x)."""
    a, b = _pair(a, b)
    return a if _is(b, 0) else b if _is(a, 0) else _add(a, b)


def sub(a: Any, b: Any) -> Expr:
    """a - b (x - 0 of integers is x)."""
    a, b = _pair(a, b)
    return a if _is(b, 0) else _sub(a, b)


def mul(a: Any, b: Any) -> Expr:
    """a * b (x * 1 of integers is x, x * 0 is 0)."""
    a, b = _pair(a, b)
    if _is(b, 1) or _is(a, 0):
        return a
    return b if _is(a, 1) or _is(b, 0) else _mul(a, b)


truncdiv, _truncmod = _binary(e.Div), _binary(e.Mod)
_floordiv, _floormod = _binary(e.FloorDiv), _binary(e.FloorMod)


def truncmod(a: Any, b: Any) -> Expr:
    """Remainder with the dividend's sign (x % 1 is 0)."""
    a, b = _pair(a, b)
    return IntImm(0, a.dtype) if _is(b, 1) and a.dtype.is_int and a.dtype.lanes == 1 else _truncmod(a, b)


def floordiv(a: Any, b: Any) -> Expr:
    """Quotient rounded down (x // 1 is x)."""
    a, b = _pair(a, b)
    return a if _is(b, 1) else _floordiv(a, b)


def floormod(a: Any, b: Any) -> Expr:
    """Remainder with the divisor's sign (x % 1 is 0)."""
    a, b = _pair(a, b)
    return IntImm(0, a.dtype) if _is(b, 1) and a.dtype.lanes == 1 else _floormod(a, b)


def div(a: Any, b: Any) -> Expr:
    """``a / b``: true division; of two integers this is an error that names the choices."""
    a, b = _pair(a, b)
    if a.dtype.is_int:
        raise TypeError("`/` between integers is ambiguous: write a // b (floordiv) or truncdiv(a, b)")
    return e.Div(a, b)


minimum, maximum = _binary(e.Min), _binary(e.Max)
eq, ne, lt, le, gt, ge = (_binary(c) for c in (e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE))
min_, max_ = minimum, maximum


def ceildiv(a: Any, b: Any) -> Expr:
    """Quotient rounded up, as (a + b - 1) // b."""
    a, b = _pair(a, b)
    return floordiv(a + (b - 1), b)


def cast(value: Any, dtype: Any) -> Expr:
    """``value`` as ``dtype``; constants are converted at once, equal types are left alone. Lanes follow the value."""
    value, dtype = const(value), DType(dtype)
    if dtype.lanes == 1 and value.dtype.lanes != 1:
        dtype = dtype.with_lanes(value.dtype.lanes)
    if value.dtype is dtype:
        return value
    if type(value) is IntImm and dtype.lanes == 1:
        if dtype.is_float:
            return FloatImm(float(value.value), dtype)
        if dtype.is_int or dtype.is_bool:
            return wrap(value.value if not dtype.is_bool else value.value != 0, dtype)
    if type(value) is FloatImm and dtype.is_float and dtype.lanes == 1:
        return FloatImm(rounded(value.value, dtype), dtype)
    if type(value) is e.Broadcast:
        return e.Broadcast(cast(value.value, dtype.element), dtype.lanes)
    return e.Cast(dtype, value)


def rounded(value: float, dtype: DType) -> float:
    """A number too large for a type, as the conversion to it gives it: infinity."""
    if abs(value) <= dtype.largest or value != value:
        return value
    with np.errstate(over="ignore"):
        return float(np.array(value).astype(dtype.numpy))


def logical_and(*conditions: Any) -> Expr:
    """Conjunction; constants are absorbed, no conditions give true."""
    out: Expr | None = None
    for c in map(_truth, conditions):
        if type(c) is IntImm and c.dtype.lanes == 1:
            if not c.value:
                return c
            continue
        out = c if out is None else e.And(out, c)
    return IntImm(1, BOOL) if out is None else out


def logical_or(*conditions: Any) -> Expr:
    """Disjunction; constants are absorbed, no conditions give false."""
    out: Expr | None = None
    for c in map(_truth, conditions):
        if type(c) is IntImm:
            if c.value:
                return c
            continue
        out = c if out is None else e.Or(out, c)
    return IntImm(0, BOOL) if out is None else out


def logical_not(condition: Any) -> Expr:
    """Negation; constants are folded and double negation drops."""
    c = _truth(condition)
    if type(c) is IntImm:
        return IntImm(not c.value, BOOL)
    return c.a if type(c) is e.Not else e.Not(c)


def _truth(c: Any) -> Expr:
    c = const(c, BOOL) if isinstance(c, bool) else const(c)
    return c if c.dtype.is_bool else ne(c, 0)


def select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """Eager choice (both sides are evaluated)."""
    t, f = _pair(true_value, false_value)
    c = _truth(condition)
    return (t if c.value else f) if type(c) is IntImm else e.Select(c, t, f)


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """Lazy choice (only the chosen side is evaluated)."""
    t, f = _pair(true_value, false_value)
    c = _truth(condition)
    return (t if c.value else f) if type(c) is IntImm else e.IfThenElse(c, t, f)


def call(op: Any, *args: Any, dtype: Any = None) -> Expr:
    """A call of the intrinsic ``op``; without ``dtype`` the intrinsic's rule (usually the first operand's) applies. Numbers that are whole may be
    written as such for an intrinsic of floating-point numbers."""
    from .intrin import check_operands, of_floats, result_dtype

    exprs = tuple(const(float(a)) if type(a) is int and of_floats(op) else const(a) for a in args)
    check_operands(op, exprs)
    return e.Call(op, exprs, DType(dtype) if dtype is not None else result_dtype(op, exprs))


def sum_of(items: Sequence[Any]) -> Expr:
    """The sum of index expressions; 0 for none."""
    out: Expr = IntImm(0, INT64)
    for i in items:
        out = add(out, i)
    return out


def product_of(items: Sequence[Any]) -> Expr:
    """The product of index expressions; 1 for none."""
    out: Expr = IntImm(1, INT64)
    for i in items:
        out = mul(out, i)
    return out


def check_bits(name: str, a: Expr, b: Expr) -> None:
    """Raises TypeError for an operator of bits between other than integers, ConstantError for a shift by more bits than there are."""
    if not name.startswith(("bitwise_", "shift_")):
        return
    if a.dtype.is_float or b.dtype.is_float:
        raise TypeError(f"{name} is of integers, not of {a.dtype} and {b.dtype}")
    if name.startswith("shift_") and type(b) is IntImm and not 0 <= b.value < a.dtype.bits:
        raise ConstantError(f"a {a.dtype} cannot be shifted by {b.value} bits", why=f"it has {a.dtype.bits}")


_BITS: dict[str, Callable[[int, int], int]] = {
    "shift_left": operator.lshift, "shift_right": operator.rshift, "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
}


def _shift(name: str) -> Callable[[Any, Any], Expr]:
    def build(a: Any, b: Any) -> Expr:
        a, b = _pair(a, b)
        check_bits(name, a, b)
        if type(a) is IntImm and type(b) is IntImm and a.dtype.is_int:
            return wrap(_BITS[name](a.value, b.value), a.dtype)
        return e.Call(name, (a, b), a.dtype)

    return build


def _flip(fn: Callable) -> Callable:
    return lambda self, other: fn(other, self)


def _invert(a: Expr) -> Expr:
    if a.dtype.is_bool:
        return logical_not(a)
    if not a.dtype.is_int:
        raise TypeError(f"~ is of integers and bools, not of {a.dtype}")
    return e.Call("bitwise_not", (a,), a.dtype)


def _install() -> None:
    """Python's operators on expressions."""
    table = {"add": add, "sub": sub, "mul": mul, "truediv": div, "floordiv": floordiv, "mod": floormod,
             "lshift": _shift("shift_left"), "rshift": _shift("shift_right"),
             "and": _shift("bitwise_and"), "or": _shift("bitwise_or"), "xor": _shift("bitwise_xor")}
    for name, fn in table.items():
        setattr(Expr, f"__{name}__", fn)
        setattr(Expr, f"__r{name}__", _flip(fn))
    for name, fn in {"lt": lt, "le": le, "gt": gt, "ge": ge}.items():
        setattr(Expr, f"__{name}__", fn)
    Expr.__neg__ = lambda self: sub(const(0, self.dtype), self) if not self.dtype.is_float else e.Call("neg", (self,), self.dtype)  # type: ignore[method-assign]
    Expr.__invert__ = _invert  # type: ignore[attr-defined]
    Expr.astype = lambda self, dtype: cast(self, dtype)  # type: ignore[attr-defined]


_install()
