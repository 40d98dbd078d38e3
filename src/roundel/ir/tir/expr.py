# SPDX-License-Identifier: Apache-2.0
"""Scalar and vector expressions: shared by tensor programs, buffer indices and the shapes of graph tensors.

Two arithmetics (see ``Expr.is_index``): *index* expressions (constants, variables and their sums, products, quotients)
are exact and unbounded; *data* expressions (anything with a load, cast or call in it) wrap at their width.
Nodes are interned: structurally equal means identical, so ``is`` compares. ``ops`` has the constructors that coerce.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ..dtype import BOOL, DType
from ..errors import ConstantError
from ..node import Node, node

if TYPE_CHECKING:
    from ..graph.expr import GlobalVar
    from .buffer import Buffer


class Expr(Node):
    """Base of all expressions. ``_facts`` memoises context-free facts (free variables, sort); never bounds."""

    __slots__ = ("_facts",)
    dtype: DType
    _facts: dict[str, Any] | None
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Expr):
            return self is other
        if isinstance(other, int | float):
            raise TypeError("an expression does not compare with a number by ==; build the condition with roundel.ir.tir.eq(a, b); in a script, "
                            "a in (1, 2) is a == 1 or a == 2")
        return NotImplemented

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: it is known when the program runs; choose by if_then_else(condition, a, b), max and min of te or T, "
                        "join conditions by all and any, or ask an arith.Analyzer what can be proved")

    is_index: bool = False
    """True when only constants, variables and integer arithmetic are inside: exact, unbounded integers."""

    if TYPE_CHECKING:  # Python's operators, which ``ops`` installs

        def __add__(self, other: Any) -> Expr: ...
        def __radd__(self, other: Any) -> Expr: ...
        def __sub__(self, other: Any) -> Expr: ...
        def __rsub__(self, other: Any) -> Expr: ...
        def __mul__(self, other: Any) -> Expr: ...
        def __rmul__(self, other: Any) -> Expr: ...
        def __truediv__(self, other: Any) -> Expr: ...
        def __rtruediv__(self, other: Any) -> Expr: ...
        def __floordiv__(self, other: Any) -> Expr: ...
        def __rfloordiv__(self, other: Any) -> Expr: ...
        def __mod__(self, other: Any) -> Expr: ...
        def __rmod__(self, other: Any) -> Expr: ...
        def __lshift__(self, other: Any) -> Expr: ...
        def __rlshift__(self, other: Any) -> Expr: ...
        def __rshift__(self, other: Any) -> Expr: ...
        def __rrshift__(self, other: Any) -> Expr: ...
        def __and__(self, other: Any) -> Expr: ...
        def __rand__(self, other: Any) -> Expr: ...
        def __or__(self, other: Any) -> Expr: ...
        def __ror__(self, other: Any) -> Expr: ...
        def __xor__(self, other: Any) -> Expr: ...
        def __rxor__(self, other: Any) -> Expr: ...
        def __lt__(self, other: Any) -> Expr: ...
        def __le__(self, other: Any) -> Expr: ...
        def __gt__(self, other: Any) -> Expr: ...
        def __ge__(self, other: Any) -> Expr: ...
        def __neg__(self) -> Expr: ...
        def __invert__(self) -> Expr: ...
        def astype(self, dtype: Any) -> Expr: ...


Expr._defaults = {}  # type: ignore[attr-defined]


@node(derive={"is_index": "dtype.is_int and dtype.lanes == 1"})
class Var(Expr):
    """A variable, by identity (``name`` is a hint). ``size`` says that it is a shape variable, known to be >= 0."""

    name: str
    dtype: DType
    size: bool = False

    @staticmethod
    def _coerce(name: str, dtype: Any, size: bool) -> tuple:
        if not isinstance(name, str):
            raise TypeError(f"a variable has a text for a name, not {name!r}: Var(\"x\", \"int32\")")
        return name, dtype if type(dtype) is DType else DType(dtype), size

    def __reduce__(self) -> tuple:
        return _restore_var, (self.name, self.dtype, self.size)


def _restore_var(name: str, dtype: DType, size: bool) -> Var:
    return Var(name, dtype, size)


@node(intern=True)
class IntImm(Expr):
    """An integer (or, with dtype bool, a truth value) constant. Raises ConstantError for a value that its type does not hold."""

    value: int
    dtype: DType
    is_index = True
    _equal_as_given = True

    @staticmethod
    def _coerce(value: Any, dtype: Any) -> tuple:
        return int(value), DType(dtype)

    @staticmethod
    def _check(value: int, dtype: DType) -> None:
        low, high = dtype.limits
        if not low <= value <= high:
            raise ConstantError(f"{value} is out of the range of {dtype}", why=f"{dtype} holds {low} to {high}")

    def __int__(self) -> int:
        return self.value


@node(intern=True)
class FloatImm(Expr):
    """A floating-point constant, kept as a Python float; interned by bit pattern."""

    value: float
    dtype: DType

    @staticmethod
    def _coerce(value: Any, dtype: Any) -> tuple:
        return float(value), DType(dtype)

    @staticmethod
    def _check(value: float, dtype: DType) -> None:
        if not dtype.is_float:
            raise ConstantError(f"a floating-point constant has a floating-point type, not {dtype}")

    @staticmethod
    def _key(value: float, dtype: DType) -> tuple:
        return FloatImm, struct.pack("<d", value), dtype


@node(intern=True)
class StringImm(Expr):
    """A string constant: names of packed functions, messages, annotation values."""

    value: str
    dtype: DType = DType("str")


def _is_exact(to: DType, value: Expr) -> bool:
    """Whether a cast is one of an index that widens it, which is exact."""
    of = value.dtype
    widens = to.is_int and of.is_int and to.lanes == 1 and (to.bits >= of.bits if to.kind == of.kind else to.kind == "int" and to.bits > of.bits)
    return widens and value.is_index


@node(intern=True, derive={"is_index": "_is_exact(dtype, value)"})
class Cast(Expr):
    """``value`` as ``dtype``. Float to int truncates and saturates (NaN gives 0); int to int wraps."""

    dtype: DType
    value: Expr


_OF_BOTH = {"is_index": "a.is_index and b.is_index"}


@node(intern=True)
class BinaryOp(Expr):
    """Two operands of one dtype; the result has it too."""

    a: Expr
    b: Expr


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Add(BinaryOp):
    """a + b"""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Sub(BinaryOp):
    """a - b"""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Mul(BinaryOp):
    """a * b"""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Div(BinaryOp):
    """True division of floats; of integers the quotient rounded toward zero (``T.truncdiv``)."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Mod(BinaryOp):
    """Remainder with the sign of ``a`` (``T.truncmod``; of floats ``fmod``)."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class FloorDiv(BinaryOp):
    """Quotient rounded toward minus infinity."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class FloorMod(BinaryOp):
    """Remainder with the sign of ``b``."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Min(BinaryOp):
    """The smaller; of floats NaN when either is NaN."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Max(BinaryOp):
    """The larger; of floats NaN when either is NaN."""


def _bool_like(a: Expr) -> DType:
    return BOOL if a.dtype.lanes == 1 else BOOL.with_lanes(a.dtype.lanes)


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class Compare(BinaryOp):
    """Base of the comparisons; the result is bool with the operands' lanes."""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class EQ(Compare):
    """a == b"""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class NE(Compare):
    """a != b"""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class LT(Compare):
    """a < b"""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class LE(Compare):
    """a <= b"""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class GT(Compare):
    """a > b"""


@node(intern=True, derive={"dtype": "_bool_like(a)"} | _OF_BOTH)
class GE(Compare):
    """a >= b"""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class And(BinaryOp):
    """Logical and of bools, both evaluated or not (no side effects inside)."""


@node(intern=True, derive={"dtype": "a.dtype"} | _OF_BOTH)
class Or(BinaryOp):
    """Logical or of bools."""


BINARY: tuple[type[BinaryOp], ...] = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or)


@node(intern=True, derive={"dtype": "a.dtype", "is_index": "a.is_index"})
class Not(Expr):
    """Logical negation of a bool."""

    a: Expr


@node(intern=True, derive={"dtype": "true_value.dtype", "is_index": "condition.is_index and true_value.is_index and false_value.is_index"})
class Select(Expr):
    """Eager choice: both values are evaluated (so both must be safe to evaluate). ``condition`` may be a vector."""

    condition: Expr
    true_value: Expr
    false_value: Expr


@node(intern=True, derive={"dtype": "true_value.dtype", "is_index": "condition.is_index and true_value.is_index and false_value.is_index"})
class IfThenElse(Expr):
    """Lazy choice (``T.if_then_else``): only the chosen value is evaluated; guards loads and divisions."""

    condition: Expr
    true_value: Expr
    false_value: Expr


def check_predicate(predicate: Expr, value: DType, what: str) -> None:
    """Raises TypeError for a predicate that has no truth value for each lane of what is loaded or stored."""
    mask = predicate.dtype
    other, vector = ("value dtype", "value") if what == "store" else ("load indices", "vector")
    if (mask.lanes < 0) != (value.lanes < 0):
        raise TypeError(f"Predicate mask dtype and {other} must both be scalable. Here they are {mask} and {value}")
    if mask.lanes != value.lanes:
        raise TypeError(
            f"Got a predicate mask with {abs(mask.lanes)} lanes, but trying to {what} a {vector} with {abs(value.lanes)} lanes. "
            "The number of lanes must match."
        )
    if not mask.is_bool:
        raise TypeError(f"Predicate mask elements must be boolean values, but got {mask.element}.")


@node(intern=True)
class BufferLoad(Expr):
    """``buffer[indices]``. The last index may be a vector (Ramp); ``predicate`` is a bool vector or None.

    Two loads of one place are one object although memory may change between them.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None
    dtype: DType
    _defaults = {"predicate": None, "dtype": None}

    @staticmethod
    def _coerce(buffer: Buffer, indices: Any, predicate: Expr | None, dtype: DType | None) -> tuple:
        lanes = 1
        for i in indices:
            lanes *= i.dtype.lanes
        dtype = buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes * buffer.dtype.lanes)
        if predicate is not None:
            check_predicate(predicate, dtype, "load")
        return buffer, tuple(indices), predicate, dtype


@node(intern=True, derive={"dtype": "base.dtype.with_lanes(lanes)"})
class Ramp(Expr):
    """The vector ``base, base + stride, ..., base + (lanes - 1) * stride``."""

    base: Expr
    stride: Expr
    lanes: int


@node(intern=True, derive={"dtype": "value.dtype.with_lanes(lanes)"})
class Broadcast(Expr):
    """A vector of ``lanes`` copies of a scalar."""

    value: Expr
    lanes: int


@node(intern=True, derive={"dtype": "vectors[0].dtype.with_lanes(len(indices))"})
class Shuffle(Expr):
    """Elements ``indices`` (constants) picked from the concatenation of ``vectors``; one index extracts a scalar."""

    vectors: tuple[Expr, ...]
    indices: tuple[int, ...]


@node(intern=True, derive={"is_index": "op == 'vscale'"})  # of calls, only that is: a small number that one machine keeps
class Call(Expr):
    """A call of an intrinsic (``op`` is its name, see ``intrin``) or of another function of the module (a GlobalVar)."""

    op: str | GlobalVar
    args: tuple[Expr, ...]
    dtype: DType
