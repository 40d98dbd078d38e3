# SPDX-License-Identifier: Apache-2.0
"""Expressions as script. An operator is Python's where that reads back as the same object, else ``T.Add(a, b)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...ir import tir
from ...ir.dtype import HANDLE, INT32, INT64, VOID, DType
from ...ir.escape import python_identifier, python_string
from ...ir.graph import GlobalVar
from ...ir.node import Node
from ...ir.tir import Buffer, BufferLoad, CommReducer, Expr, FloatImm, IndexMap, IntImm, Ramp, Range, StringImm, Var, intrin
from .. import tir as script
from ..literals import float_text
from ..regions import extent_between, ramp
from .doc import Doc
from .names import Names
from .values import comm_reducer_text, index_map_text, value_text

_COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = 4, 9, 10, 11, 20
_OPERATORS: dict[type, tuple[str, int, Callable[[Any, Any], Any]]] = {
    tir.Add: ("+", _SUM, tir.add),
    tir.Sub: ("-", _SUM, tir.sub),
    tir.Mul: ("*", _PRODUCT, tir.mul),
    tir.Div: ("/", _PRODUCT, tir.div),
    tir.FloorDiv: ("//", _PRODUCT, tir.floordiv),
    tir.FloorMod: ("%", _PRODUCT, tir.floormod),
    tir.EQ: ("==", _COMPARE, tir.eq),
    tir.NE: ("!=", _COMPARE, tir.ne),
    tir.LT: ("<", _COMPARE, tir.lt),
    tir.LE: ("<=", _COMPARE, tir.le),
    tir.GT: (">", _COMPARE, tir.gt),
    tir.GE: (">=", _COMPARE, tir.ge),
    tir.And: ("and", 2, tir.logical_and),
    tir.Or: ("or", 1, tir.logical_or),
}
_FUNCTIONS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    tir.Div: ("truncdiv", tir.truncdiv),
    tir.Mod: ("truncmod", tir.truncmod),
    tir.Min: ("min", tir.min_),
    tir.Max: ("max", tir.max_),
}


def stop_of(start: Expr, extent: Expr) -> Expr | None:
    """The ``stop`` for which ``start:stop`` has this extent, or None where none reads back."""
    for stop in (extent.a if type(extent) is tir.Sub and extent.b is start else None, tir.add(start, extent)):
        if stop is not None and start.dtype is extent.dtype and extent_between(start, stop) is extent:
            return stop
    return None


def _gives(node: Expr, build: Callable[..., Any], *args: Any) -> bool:
    """Whether ``build(*args)`` is this very expression."""
    try:
        return build(*args) is node
    except (TypeError, ValueError, ZeroDivisionError, AttributeError):
        return False


class ExprPrinter:
    """Prints expressions with the names given; ``module`` is the class whose functions they call (None: no class)."""

    expressions: ClassVar[dict[type, Callable[..., str]]] = {}  # type of node to (printer, node, level) -> text

    def __init__(
        self,
        names: Names,
        doc: Doc | None = None,
        module: str | None = None,
        functions: dict[str, tuple[str, DType]] | None = None,
    ) -> None:
        self.names, self.doc, self.module_name, self.functions = names, doc or Doc(), module, functions or {}

    def expr(self, e: Any, level: int = 0) -> str:
        """The text, in parentheses where it binds looser than ``level``."""
        known = self.expressions.get(type(e))
        text = known(self, e, level) if known else e.as_text(self.expr)  # an expression of another language has a text of its own
        return self.doc.marked(e, text) if self.doc.marks else text

    def var(self, v: Var, level: int = 0) -> str:
        """The name of a variable; one that nothing declares shows its hint."""
        return self.names.get(v) or python_identifier(v.name)

    def buffer(self, b: Buffer) -> str:
        """The name of a buffer."""
        return self.names.get(b) or python_identifier(b.name)

    def value(self, v: Any) -> str:
        """An attribute value."""
        return value_text(v, self.node)

    def attrs(self, items: Any) -> str:
        """Attributes as a dict."""
        return value_text(items, self.node)

    def node(self, n: Any) -> str:
        """Any IR object as a value."""
        if isinstance(n, IndexMap):
            return index_map_text(n, self.names, self.expr)
        if isinstance(n, CommReducer):
            return comm_reducer_text(n, self.names, self.expr)
        if isinstance(n, Buffer):
            return self.buffer(n)
        if type(n) in self.expressions or hasattr(n, "as_text"):
            return self.expr(n)
        if isinstance(n, tir.BufferRegion):
            return self.region(n)
        return f"I.unprintable({repr(n) if not isinstance(n, Node) else type(n).__name__!r})"

    # ---- leaves

    def int_imm(self, e: IntImm, level: int = 0) -> str:
        """int64 as a plain number, other types by name."""
        if e.dtype is INT64:
            return f"({e.value})" if e.value < 0 and level > _UNARY else str(e.value)
        return f"T.{e.dtype}({bool(e.value) if e.dtype.is_bool else e.value})"

    def float_imm(self, e: FloatImm, level: int = 0) -> str:
        """Always with its type; a number that the type does not hold, as one that is not finite, as a text."""
        return f"T.{e.dtype}({self.number(e)})"

    def number(self, e: FloatImm) -> str:
        """The value of a constant."""
        text = float_text(e.value)
        return text if text.startswith('"') or abs(e.value) <= e.dtype.largest else f'"{text}"'

    # ---- operators

    def binary(self, e: Any, level: int) -> str:
        """``a + b``, ``T.min(a, b)``, or ``T.Add(a, b)`` where the constructors would fold or convert."""
        if type(e) in _OPERATORS:
            symbol, prec, build = _OPERATORS[type(e)]
            for a, b in ((e.a, _plain(e.b)), (_plain(e.a), e.b), (e.a, e.b)):
                if (
                    a is not None
                    and b is not None
                    and (isinstance(a, Expr) or isinstance(b, Expr))
                    and _gives(e, build, a, b)
                ):
                    left = prec + 1 if prec == _COMPARE else prec
                    text = f"{self._operand(a, left)} {symbol} {self._operand(b, prec + 1)}"
                    return f"({text})" if prec < level else text
        if type(e) in _FUNCTIONS and _gives(e, _FUNCTIONS[type(e)][1], e.a, e.b):
            return f"T.{_FUNCTIONS[type(e)][0]}({self._pair(e.a, e.b)})"
        return f"T.{type(e).__name__}({self._pair(e.a, e.b)})"

    def _operand(self, x: Any, level: int) -> str:
        if isinstance(x, Expr):
            return self.expr(x, level)
        return f"({x})" if x < 0 and level > _UNARY else str(x)

    def _pair(self, a: Expr, b: Expr) -> str:
        """Two operands that are brought to one type: a number beside an expression takes that one's type."""
        if type(a) is IntImm and type(b) is not IntImm and a.dtype is b.dtype and a.dtype.is_int:
            return f"{a.value}, {self.expr(b)}"
        if type(b) is IntImm and type(a) is not IntImm and a.dtype is b.dtype and b.dtype.is_int:
            return f"{self.expr(a)}, {b.value}"
        return f"{self.expr(a)}, {self.expr(b)}"

    def not_(self, e: tir.Not, level: int) -> str:
        """``not a``"""
        if not _gives(e, tir.logical_not, e.a):
            return f"T.Not({self.expr(e.a)})"
        return f"(not {self.expr(e.a, 3)})" if level > 3 else f"not {self.expr(e.a, 3)}"

    def cast(self, e: tir.Cast, level: int) -> str:
        """``T.Cast("float32", x)``"""
        return f'T.Cast("{e.dtype}", {self.expr(e.value)})'

    def choice(self, e: Any, level: int) -> str:
        """``T.Select`` and ``T.if_then_else``"""
        name = "Select" if type(e) is tir.Select else "if_then_else"
        return f"T.{name}({self.expr(e.condition)}, {self._pair(e.true_value, e.false_value)})"

    def ramp(self, e: Ramp, level: int) -> str:
        """``T.Ramp(base, stride, lanes)``"""
        return f"T.Ramp({self._pair(e.base, e.stride)}, {_lanes(e.lanes)})"

    def broadcast(self, e: tir.Broadcast, level: int) -> str:
        """``T.Broadcast(value, lanes)``"""
        return f"T.Broadcast({self.expr(e.value)}, {_lanes(e.lanes)})"

    def shuffle(self, e: tir.Shuffle, level: int) -> str:
        """``T.Shuffle([vectors], [indices])``"""
        return f"T.Shuffle([{', '.join(map(self.expr, e.vectors))}], {list(e.indices)})"

    # ---- memory

    def load(self, e: BufferLoad, level: int) -> str:
        """``A[i, j]``"""
        if e.predicate is not None:
            return f"{self.buffer(e.buffer)}.vload([{self.args(e.indices)}], predicate={self.expr(e.predicate)})"
        return f"{self.buffer(e.buffer)}[{self.indices(e.indices)}]"

    def indices(self, indices: tuple[Expr, ...]) -> str:
        """Indices; vectors with a constant stride as slices."""
        return ", ".join(self._vector(i) if type(i) is Ramp else self.expr(i) for i in indices) or "()"

    def _vector(self, i: Ramp) -> str:
        if isinstance(i.stride, IntImm) and i.stride.value > 0 and i.lanes > 0:
            stop = tir.add(i.base, i.lanes * i.stride.value)
            span = extent_between(i.base, stop)
            if isinstance(span, IntImm) and ramp(i.base, i.stride, -(-span.value // i.stride.value)) is i:
                text = f"{self.expr(i.base)}:{self.expr(stop)}"
                return text if i.stride.value == 1 else f"{text}:{i.stride.value}"
        return self.expr(i)

    def region(self, r: tir.BufferRegion) -> str:
        """``A[i, 0:16]``"""
        return f"{self.buffer(r.buffer)}[{', '.join(map(self.range_item, r.region)) or '()'}]"

    def range_item(self, r: Range) -> str:
        """One dimension of a region."""
        if isinstance(r.extent, IntImm) and r.extent is tir.index_const(1) and type(r.min) is not Ramp:
            return self.expr(r.min)
        stop = stop_of(r.min, r.extent)
        if stop is not None:
            return f"{self.expr(r.min)}:{self.expr(stop)}"
        return f"T.Range({self.expr(r.min)}, {self.expr(r.extent)})"

    # ---- calls

    def call(self, e: tir.Call, level: int) -> str:
        """A call of an intrinsic or of a function of the module."""
        if isinstance(e.op, GlobalVar):
            return self._function_call(e)
        special = _CALLS.get(e.op)
        text = special(self, e) if special else None
        if text is not None:
            return text
        if e.op in intrin.REGISTRY and _gives(e, getattr(script, e.op), *e.args):
            both = len(e.args) == 2 and intrin.REGISTRY[e.op].arity == 2 and intrin.REGISTRY[e.op].result == "first"
            return f"T.{e.op}({self._pair(*e.args) if both else self.args(e.args)})"
        return f'T.call_intrin("{e.dtype}", {python_string(e.op)}{self._rest(e.args)})'

    def args(self, args: tuple[Expr, ...]) -> str:
        """Operands."""
        return ", ".join(map(self.expr, args))

    def _rest(self, args: tuple[Expr, ...]) -> str:
        return "".join(f", {self.expr(a)}" for a in args)

    def _function_call(self, e: tir.Call) -> str:
        assert isinstance(e.op, GlobalVar)
        name, usual = self.functions.get(e.op.name, ("", VOID))
        where = f"{self.module_name}.{name}" if self.module_name and name else f"I.GlobalVar({python_string(e.op.name)})"
        return (
            f"{where}({self.args(e.args)})"
            if e.dtype is usual
            else f'T.call({where}{self._rest(e.args)}, dtype="{e.dtype}")'
        )

    def typed_call(self, e: tir.Call) -> str:
        """``T.call_extern("float32", ...)``: the dtype first."""
        return f'T.{e.op}("{e.dtype}"{self._rest(e.args)})'

    def packed_call(self, e: tir.Call) -> str | None:
        """``T.call_packed("name", ...)``"""
        if not e.args or type(e.args[0]) is not StringImm:
            return None
        return (
            f"T.call_packed({self.args(e.args)})"
            if e.dtype is INT32
            else f'T.call_packed({self.args(e.args)}, dtype="{e.dtype}")'
        )

    def access_ptr(self, e: tir.Call) -> str | None:
        """``T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 16, 1)``"""
        if len(e.args) != 5 or e.dtype is not HANDLE or type(e.args[0]) is not StringImm:
            return None
        return f"T.tvm_access_ptr({python_string(e.args[0].value)}{self._rest(e.args[1:])})"


def _raw(p: ExprPrinter, e: tir.Call) -> str:
    """A call that its function in ``T`` would make something else."""
    return f'T.call_intrin("{e.dtype}", {python_string(str(e.op))}{p._rest(e.args)})'


def _lanes(lanes: int) -> str:
    return str(lanes) if lanes > 0 else f"T.vscale() * {-lanes}"


def _plain(e: Expr) -> Any:
    """An integer constant as a Python number, else None."""
    return e.value if type(e) is IntImm and e.dtype.is_int else None


ExprPrinter.expressions = {
    Var: ExprPrinter.var,
    IntImm: ExprPrinter.int_imm,
    FloatImm: ExprPrinter.float_imm,
    StringImm: lambda p, e, level: python_string(e.value),
    tir.Not: ExprPrinter.not_,
    tir.Cast: ExprPrinter.cast,
    tir.Select: ExprPrinter.choice,
    tir.IfThenElse: ExprPrinter.choice,
    Ramp: ExprPrinter.ramp,
    tir.Broadcast: ExprPrinter.broadcast,
    tir.Shuffle: ExprPrinter.shuffle,
    BufferLoad: ExprPrinter.load,
    tir.Call: ExprPrinter.call,
    **{c: ExprPrinter.binary for c in (*_OPERATORS, *_FUNCTIONS)},
}
_CALLS: dict[str, Callable[[ExprPrinter, Any], str | None]] = {
    "call_engine": ExprPrinter.typed_call,
    "call_extern": ExprPrinter.typed_call,
    "call_pure_extern": ExprPrinter.typed_call,
    "call_llvm_intrin": ExprPrinter.typed_call,
    "call_llvm_pure_intrin": ExprPrinter.typed_call,
    "get_active_lane_mask": ExprPrinter.typed_call,
    "reinterpret": lambda p, e: p.typed_call(e) if len(e.args) == 1 and e.args[0].dtype is not e.dtype else _raw(p, e),
    "call_packed": ExprPrinter.packed_call,
    "access_ptr": ExprPrinter.access_ptr,
    "ret": lambda p, e: f"T.ret({p.expr(e.args[0])})" if len(e.args) == 1 and e.dtype is VOID else None,
}
