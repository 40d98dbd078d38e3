# SPDX-License-Identifier: Apache-2.0
"""Evaluates the Python expressions of a script: constants, captured names, comprehensions, calls; hooks for IR."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

from ...ir import graph, tir
from ...ir.errors import RoundelError, ScriptError
from ...ir.node import Node
from .source import Source

F = TypeVar("F", bound=Callable)

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
COMPARE: dict[type, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any] | None]] = {
    ast.Eq: (operator.eq, tir.eq),
    ast.NotEq: (operator.ne, tir.ne),
    ast.Lt: (operator.lt, tir.lt),
    ast.LtE: (operator.le, tir.le),
    ast.Gt: (operator.gt, tir.gt),
    ast.GtE: (operator.ge, tir.ge),
    ast.Is: (operator.is_, None),
    ast.IsNot: (operator.is_not, None),
    ast.In: (lambda a, b: a in b, None),
    ast.NotIn: (lambda a, b: a not in b, None),
}
GRAPH_BINARY = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


def handles(*types: type) -> Callable[[F], F]:
    """Marks a method as the handler of these syntax nodes."""

    def mark(fn: F) -> F:
        fn.handles = types  # type: ignore[attr-defined]
        return fn

    return mark


class Scope:
    """Names in nested frames, above the names captured from Python."""

    def __init__(self, captured: Mapping[str, Any]) -> None:
        self.frames: list[dict[str, Any]] = [{}]
        self.captured = captured

    def lookup(self, name: str) -> Any:
        """The value of a name; raises KeyError."""
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return self.captured[name] if name in self.captured else vars(builtins)[name]

    def has(self, name: str) -> bool:
        """Whether the name has a value."""
        return any(name in frame for frame in self.frames) or name in self.captured

    def define(self, name: str, value: Any) -> None:
        """Bind a name in the innermost frame."""
        self.frames[-1][name] = value

    def replace(self, old: Any, new: Any) -> None:
        """Names of one value are names of another from here on."""
        for frame in self.frames:
            frame.update({name: new for name, value in frame.items() if value is old})

    @contextmanager
    def frame(self, names: Mapping[str, Any] | None = None) -> Iterator[None]:
        """A nested frame, with these names in it."""
        self.frames.append(dict(names or {}))
        try:
            yield
        finally:
            self.frames.pop()

    def known(self) -> list[str]:
        """All names, for suggestions."""
        return [n for f in self.frames for n in f] + [n for n in self.captured if not n.startswith("_")]


class Evaluator:
    """Evaluates syntax nodes by a table from type to handler; ``error`` makes errors with a position."""

    _table: ClassVar[dict[type, Callable]] = {}

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        own = {t: fn for fn in vars(cls).values() if hasattr(fn, "handles") for t in fn.handles}
        cls._table = {**cls._table, **own}

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source, self.scope = source, scope

    def error(self, node: ast.AST, what: str, hint: str = "") -> ScriptError:
        """A ScriptError at ``node``."""
        return self.source.error(node, what, hint)

    def visit(self, node: ast.AST) -> Any:
        """Dispatch on the type of the syntax node; errors of IR constructors get the position."""
        handler = self._table.get(type(node))
        if handler is None:
            raise self.error(node, f"a script cannot have {_described(node)} here")
        try:
            return handler(self, node)
        except ScriptError:
            raise
        except RoundelError as e:
            why = "" if "\n" in e.why else e.why  # a program would bury the place
            raise self.error(node, e.what, "; ".join(filter(None, (why, e.hint))) or e.why) from e
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, AssertionError) as e:
            raise self.error(node, _message(e)) from e

    def annotation(self, node: ast.expr) -> Any:
        """The value of an annotation, which may be quoted."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            inner = ast.parse(node.value, mode="eval").body
            for n in ast.walk(inner):
                ast.copy_location(n, node)
            node = inner
        return self.visit(node)

    # hooks

    def operand(self, value: Any) -> Any:
        """A value as an operand of an operator."""
        return value

    def graph_op(self, node: ast.AST, name: str, *args: Any) -> Any:
        """An operator between graph values."""
        raise self.error(node, "graph values cannot be combined here")

    def subscript(self, node: ast.Subscript, value: Any, index: Any) -> Any:
        """``value[index]``"""
        return value[_plain(index)]

    def attribute(self, node: ast.Attribute, value: Any) -> Any:
        """``value.name``"""
        try:
            return getattr(value, node.attr)
        except AttributeError as e:
            near = get_close_matches(node.attr, [n for n in dir(value) if not n.startswith("_")], 1)
            if not near or "did you mean" in str(e):
                raise
            raise self.error(node, str(e), f"did you mean {near[0]}?") from e

    def call(self, node: ast.Call, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """``fn(*args, **kwargs)``"""
        if not callable(fn):
            raise self.error(node.func, f"{ast.unparse(node.func)} ({type(fn).__name__}) cannot be called")
        return fn(*args, **kwargs)


class StaticEvaluator(Evaluator):
    """The handlers of Python expressions."""

    @handles(ast.Constant)
    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    @handles(ast.Name)
    def _name(self, node: ast.Name) -> Any:
        try:
            return self.scope.lookup(node.id)
        except KeyError:
            from difflib import get_close_matches

            near = get_close_matches(node.id, self.scope.known(), 3)
            hint = (
                f"did you mean {', '.join(near)}?"
                if near
                else "define it above, or capture it from the Python scope around the script"
            )
            raise self.error(node, f"name {node.id!r} is not defined", hint) from None

    @handles(ast.Tuple)
    def _tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self._items(node.elts))

    @handles(ast.List)
    def _list(self, node: ast.List) -> list:
        return self._items(node.elts)

    @handles(ast.Set)
    def _set(self, node: ast.Set) -> set:
        return set(self._items(node.elts))

    def _items(self, nodes: list[ast.expr]) -> list:
        out: list[Any] = []
        for n in nodes:
            if isinstance(n, ast.Starred):
                out.extend(self.visit(n.value))
            else:
                out.append(self.visit(n))
        return out

    @handles(ast.Dict)
    def _dict(self, node: ast.Dict) -> dict:
        out: dict[Any, Any] = {}
        for k, v in zip(node.keys, node.values):
            if k is None:
                out.update(self.visit(v))
            else:
                out[self.visit(k)] = self.visit(v)
        return out

    @handles(ast.Slice)
    def _slice(self, node: ast.Slice) -> slice:
        return slice(*(None if p is None else self.visit(p) for p in (node.lower, node.upper, node.step)))

    @handles(ast.BinOp)
    def _binop(self, node: ast.BinOp) -> Any:
        a, b = self.visit(node.left), self.visit(node.right)
        if isinstance(a, graph.GraphExpr) or isinstance(b, graph.GraphExpr):
            return self.graph_op(node, GRAPH_BINARY.get(type(node.op), "?"), a, b)
        a, b = self.number(node, a), self.number(node, b)
        if isinstance(a, tir.Expr) != isinstance(b, tir.Expr):  # NumPy scalars would broadcast over the expression
            a, b = (x.item() if hasattr(x, "item") else x for x in (a, b))
        if type(node.op) is ast.Pow and (isinstance(a, tir.Expr) or isinstance(b, tir.Expr)):
            return tir.call("pow", *tir.ops._pair(a, b))
        return BINARY[type(node.op)](a, b)

    def number(self, node: ast.AST, value: Any) -> Any:
        """An operand of arithmetic, where a buffer is none."""
        if isinstance(value, tir.Buffer):
            indices = ", ".join("ijklmn"[: value.ndim])
            raise self.error(node, f"buffer {value.name} stands where one of its elements is meant", f"index it: {value.name}[{indices}]")
        return self.operand(value)

    @handles(ast.UnaryOp)
    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        if isinstance(value, graph.GraphExpr):
            return self.graph_op(
                node,
                {ast.USub: "negative", ast.Not: "logical_not", ast.Invert: "bitwise_not"}.get(type(node.op), "?"),
                value,
            )
        value = self.operand(value)
        if type(node.op) is ast.Not:
            return tir.logical_not(value) if isinstance(value, tir.Expr) else not value
        return {ast.USub: operator.neg, ast.UAdd: lambda x: x, ast.Invert: operator.invert}[type(node.op)](value)

    @handles(ast.BoolOp)
    def _boolop(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        result = self.operand(self.visit(node.values[0]))
        for n in node.values[1:]:
            if not isinstance(result, tir.Expr) and bool(result) != is_and:
                return result
            value = self.operand(self.visit(n))
            if isinstance(result, tir.Expr) or isinstance(value, tir.Expr):
                result = (tir.logical_and if is_and else tir.logical_or)(result, value)
            else:
                result = value
        return result

    @handles(ast.Compare)
    def _compare(self, node: ast.Compare) -> Any:
        values = [self.visit(node.left), *map(self.visit, node.comparators)]
        if any(isinstance(v, graph.GraphExpr) for v in values):
            return self.graph_op(node, GRAPH_BINARY.get(type(node.ops[0]), "?"), *values)
        values = [self.operand(v) for v in values]
        result: Any = True
        for op, a, b in zip(node.ops, values, values[1:]):
            plain, symbolic = COMPARE[type(op)]
            is_symbolic = symbolic is not None and (isinstance(a, tir.Expr) or isinstance(b, tir.Expr))
            one = symbolic(a, b) if is_symbolic and symbolic and not (a is None or b is None) else plain(a, b)
            result = (
                one
                if result is True
                else tir.logical_and(result, one)
                if isinstance(result, tir.Expr) or isinstance(one, tir.Expr)
                else result and one
            )
        return result

    @handles(ast.IfExp)
    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.operand(self.visit(node.test))
        if isinstance(test, tir.Expr):
            return tir.if_then_else(test, self.operand(self.visit(node.body)), self.operand(self.visit(node.orelse)))
        return self.visit(node.body if test else node.orelse)

    @handles(ast.Attribute)
    def _attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(node, self.visit(node.value))

    @handles(ast.Subscript)
    def _subscript(self, node: ast.Subscript) -> Any:
        return self.subscript(node, self.visit(node.value), self.visit(node.slice))

    @handles(ast.Call)
    def _call(self, node: ast.Call) -> Any:
        fn = self.visit(node.func)
        args = self._items(node.args)
        kwargs: dict[str, Any] = {}
        for k in node.keywords:
            kwargs.update(self.visit(k.value) if k.arg is None else {k.arg: self.visit(k.value)})
        try:
            return self.call(node, fn, args, kwargs)
        except TypeError as e:
            if what := _wrong_level(fn, args):
                raise self.error(node, *what) from e
            raise

    @handles(ast.JoinedStr)
    def _fstring(self, node: ast.JoinedStr) -> str:
        return "".join(self.visit(v) if isinstance(v, ast.FormattedValue) else str(self.visit(v)) for v in node.values)

    @handles(ast.FormattedValue)
    def _formatted(self, node: ast.FormattedValue) -> str:
        value = _plain(self.visit(node.value))
        value = {115: str, 114: repr, 97: ascii}.get(node.conversion, lambda v: v)(value)
        return format(value, self.visit(node.format_spec) if node.format_spec else "")

    @handles(ast.Lambda)
    def _lambda(self, node: ast.Lambda) -> Callable[..., Any]:
        """A Python function with the lambda's own signature (``IndexMap.from_func`` looks at it)."""
        spec = ast.copy_location(
            ast.Lambda(
                node.args,
                ast.Call(ast.Name("_evaluate", ast.Load()), [ast.Call(ast.Name("locals", ast.Load()), [], [])], []),
            ),
            node,
        )
        make = eval(
            compile(ast.fix_missing_locations(ast.Expression(_without_defaults(spec))), self.source.file, "eval"),
            {"_evaluate": lambda names: self._in_frame(names, node.body)},
        )
        return make

    def _in_frame(self, names: dict[str, Any], body: ast.expr) -> Any:
        with self.scope.frame(names):
            return self.visit(body)

    @handles(ast.ListComp, ast.GeneratorExp)
    def _comprehension(self, node: Any) -> list:
        return [self.visit(node.elt) for _ in self._generators(node.generators)]

    @handles(ast.SetComp)
    def _set_comprehension(self, node: ast.SetComp) -> set:
        return {self.visit(node.elt) for _ in self._generators(node.generators)}

    @handles(ast.DictComp)
    def _dict_comprehension(self, node: ast.DictComp) -> dict:
        return {self.visit(node.key): self.visit(node.value) for _ in self._generators(node.generators)}

    def _generators(self, generators: list[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield
            return
        first, *rest = generators
        for item in self.visit(first.iter):
            with self.scope.frame():
                self.assign_names(first.target, item)
                if all(self.visit(c) for c in first.ifs):
                    yield from self._generators(rest)

    def assign_names(self, target: ast.expr, value: Any) -> None:
        """Bind Python values to a name or a tuple of names."""
        if isinstance(target, ast.Name):
            self.scope.define(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = list(value)
            if len(values) != len(target.elts):
                raise self.error(target, f"{len(target.elts)} names for {len(values)} values")
            for t, v in zip(target.elts, values):
                self.assign_names(t, v)
        else:
            raise self.error(target, f"cannot assign to {_described(target)} here")


def _without_defaults(node: ast.Lambda) -> ast.Lambda:
    if node.args.defaults or any(node.args.kw_defaults):
        raise TypeError("a lambda in a script cannot have defaults")
    return node


def _plain(value: Any) -> Any:
    """Constants as Python numbers."""
    return value.value if isinstance(value, tir.IntImm | tir.FloatImm | tir.StringImm) else value


def _wrong_level(fn: Any, args: list[Any]) -> tuple[str, str] | None:
    """What to say of a function that is not one of programs, or of the other kind of them: what is wrong, what to do."""
    module, name = str(getattr(fn, "__module__", None) or type(fn).__module__), str(getattr(fn, "__name__", ""))
    if module.split(".")[0] in ("numpy", "math", "torch", "scipy") and any(isinstance(a, Node) for a in args):
        what = f"{module}.{name} computes with numbers, and this is a part of the program"
        return what, f"write what the program computes: T.{name} or R.{name}, where there is one"
    if module.startswith(f"{__name__.split('.')[0]}.script.tir") and any(isinstance(a, graph.GraphExpr) for a in args):
        return f"T.{name} is of tensor programs, and this is a value of a graph function", f"R.{name}, where there is one"
    return None


def _message(e: BaseException) -> str:
    text = e.args[0] if isinstance(e, KeyError) and e.args else str(e)
    return f"{text}" if text else type(e).__name__


def _described(node: ast.AST) -> str:
    return "".join(" " + c.lower() if c.isupper() else c for c in type(node).__name__).strip()
