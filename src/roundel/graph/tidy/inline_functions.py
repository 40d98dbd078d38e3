# SPDX-License-Identifier: Apache-2.0
"""Calls of graph functions by graph functions are replaced by their bodies: what follows sees one dataflow.

So are calls of functions inside functions, which may use variables of the function around them, and those by the name of a function of the module
(``R.call_packed("f", x)``); ``R.call_dps_packed("program", x)`` of a tensor program of the module becomes ``R.call_tir``,
as does ``R.call_tir_with_grad``, whose gradient nothing asks for any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.attrs import EMPTY, Attrs
from ...ir.errors import LowerError
from ...ir.module import IRModule
from ...ir.node import Span
from ...ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_WITH_GRAD, OpDef
from ...ir.visit import free_vars, substitute
from ...ops.dims import assuming
from ...passes import pass_
from ..rewriter import operands


@pass_("inline_functions")
def inline_functions(mod: IRModule) -> IRModule:
    """Put the bodies of called graph functions in place of the calls (their dataflow blocks become plain ones there)."""
    changes = {}
    with assuming():
        for name, func in mod.items():
            if isinstance(func, graph.Function) and _calls_functions(func.body, mod):
                changes[name] = expanded(mod, name, func)
    return mod.with_functions(changes)


def _calls_functions(value: Any, mod: IRModule) -> bool:
    if isinstance(value, graph.Function):
        return True
    if isinstance(value, graph.Call) and (isinstance(value.op, graph.GlobalVar) or value.op is CALL_TIR_WITH_GRAD or own_function(mod, value) is not None):
        return True
    return any(_calls_functions(v, mod) for v in operands(value))


def own_function(mod: IRModule, call: graph.Call) -> str | None:
    """The function of the module that a call of a foreign function names by the symbol under which it is exported."""
    target = call.args[0] if call.op is CALL_DPS_PACKED else call.op
    if not isinstance(target, graph.ExternFunc):
        return None
    return next((name for name, f in mod.items() if target.name == f.attrs.get("global_symbol", name)), None)


def expanded(mod: IRModule, name: str, func: graph.Function) -> graph.Function:
    """The function with all calls of functions that the module has replaced by their bodies; others stay."""
    copy = _Copy(mod, (name,), {}, {}, [])
    result = copy.atom(copy.inline(func.body))
    if any(isinstance(v, _Closure) for v in (result, *operands(result))):
        raise LowerError(f"{name} returns a function", where=name, hint="return what the function gives: compiled code has no functions as values")
    body = graph.SeqExpr((graph.BindingBlock(tuple(copy.out)),), result)
    return func.replace(body=body, ret_sinfo=result.sinfo)


def straightened(mod: IRModule, name: str) -> tuple[tuple[graph.Var, ...], list[graph.Binding], graph.GraphExpr]:
    """Parameters, bindings and result of a copy of a function, with variables and sizes of its own and all calls of graph functions expanded."""
    func = mod[name]
    dims = {v: tir.Var(v.name, v.dtype, v.size) for p in func.params for v in dims_of(p.sinfo)}
    params = tuple(graph.Var(p.name, substitute(p.sinfo, dims)) for p in func.params)
    copy = _Copy(mod, ("", name), dict(zip(func.params, params, strict=True)), dims, [], keeps_gradients=True)
    result = copy.inline(func.body)
    return params, copy.out, result


def fresh_copy(mod: IRModule, seq: graph.SeqExpr, known: Iterable[tir.Var]) -> graph.SeqExpr:
    """The body with variables of its own (and calls of graph functions expanded). ``known``: sizes that are defined outside of it."""
    return _Copy(mod, ("", ""), {}, {v: v for v in known}, []).nested(seq)


class _Copy:
    """Copies a body with fresh variables into ``out``, calls expanded. ``dims``: what its symbolic dimensions stand for."""

    def __init__(self, mod: IRModule, stack: tuple[str, ...], env: dict[graph.Var, Any], dims: dict[tir.Var, tir.Expr], out: list[graph.Binding],
                 keeps_gradients: bool = False) -> None:
        self.mod, self.stack, self.env, self.dims, self.out, self.keeps_gradients = mod, stack, env, dims, out, keeps_gradients

    def bind(self, value: graph.GraphExpr, hint: str, span: Span | None = None) -> graph.GraphExpr:
        """A variable for the value; atoms stay."""
        if not isinstance(value, graph.Call | graph.If | graph.While | graph.Tuple | graph.TupleGetItem):
            return value
        var = graph.Var(hint, value.sinfo)
        self.out.append(graph.VarBinding(var, value, span))
        return var

    def atom(self, value: graph.GraphExpr) -> graph.GraphExpr:
        """The value, bound unless it is an operand already."""
        return self.bind(value, "lv") if isinstance(value, graph.Call | graph.If | graph.While) else value

    def inline(self, seq: graph.SeqExpr) -> graph.GraphExpr:
        """Append the bindings; the result's copy."""
        for binding in seq.bindings:
            if isinstance(binding, graph.MatchCast):
                self.match_cast(binding)
            else:
                self.env[binding.var] = self.bind(self.expr(binding.value), binding.var.name, binding.span)
        return self.expr(seq.body)

    def local(self, func: graph.Function) -> _Closure:
        """A function inside of this one."""
        return _Closure(func, f"{self.stack[-1]}.{len(self.env)}", self)

    def match_cast(self, binding: graph.MatchCast) -> None:
        """The variables that it defines are new in every copy."""
        if len(self.stack) > 1:
            self.dims.update((v, tir.Var(v.name, v.dtype, v.size)) for v in dims_of(binding.sinfo) if v not in self.dims)
        self.env[binding.var] = self.cast(self.atom(self.expr(binding.value)), self.info(binding.sinfo), binding.var.name)

    def cast(self, value: graph.GraphExpr, info: graph.StructInfo, name: str) -> graph.Var:
        """Bind ``value`` as one of ``info``, checked at run time."""
        var = graph.Var(name, info)
        self.out.append(graph.MatchCast(var, value, info))
        return var

    def info(self, info: graph.StructInfo) -> graph.StructInfo:
        """Struct info in the caller's dimensions."""
        return substitute(info, self.dims)

    def nested(self, seq: graph.SeqExpr) -> graph.SeqExpr:
        """A branch or the body of a loop."""
        inner = _Copy(self.mod, self.stack, self.env, self.dims, [], self.keeps_gradients)
        result = inner.atom(inner.inline(seq))
        return graph.SeqExpr((graph.BindingBlock(tuple(inner.out)),) if inner.out else (), result)

    def expr(self, value: Any) -> Any:
        """A copy of an expression."""
        handler = _EXPR.get(type(value))
        return handler(self, value) if handler else value

    def call(self, value: graph.Call) -> graph.GraphExpr:
        """A call, expanded when it is one of a graph function."""
        args = tuple(self.expr(a) for a in value.args)
        op = self.expr(value.op)
        if isinstance(op, _Closure):
            return self.expand(op.name, op.function, args, op.outside)
        if op is CALL_TIR_WITH_GRAD and not self.keeps_gradients:
            return self.call(value.replace(op=CALL_TIR, attrs=EMPTY))
        own = own_function(self.mod, value)
        if own is not None and value.op is CALL_DPS_PACKED:
            op, args = CALL_TIR, (graph.GlobalVar(own), *args[1:])
        name = own if own is not None else getattr(op, "name", "")
        callee = self.mod.functions.get(name) if own is not None or isinstance(op, graph.GlobalVar) else None
        if callee is not None and op is not CALL_TIR:
            if not isinstance(callee, graph.Function):
                raise LowerError(f"{name} is a tensor program, it is called like a graph function", where=self.stack[0],
                                 hint=f"R.call_tir(cls.{name}, (x, ...), out_sinfo=R.Tensor(...))")
            return self.expand(name, callee, args)
        if isinstance(op, graph.Var):
            raise LowerError(f"{op.name} is called, and it is not known which function it is", where=self.stack[0],
                             hint="call a function of the module, or one that is defined in this function")
        made = value.replace(op=op, args=args, attrs=_attrs(value.attrs, self.dims),
                             sinfo_args=tuple(map(self.info, value.sinfo_args)), sinfo=self.info(value.sinfo))
        return graph.infer_call(made) if isinstance(made.op, OpDef) and not made.sinfo_args else made

    def expand(self, name: str, func: graph.Function, args: tuple[Any, ...], outside: _Copy | None = None) -> graph.GraphExpr:
        """The body of the function with ``args`` as its parameters; one inside of a function sees the variables ``outside`` of it."""
        if name in self.stack:
            raise LowerError(f"graph function {name} calls itself", where=self.stack[0], why=" -> ".join((*self.stack, name)),
                             hint="write the repetition as R.while_loop")
        if len(args) != len(func.params):
            raise LowerError(f"{name} takes {len(func.params)} arguments, {len(args)} are given", where=self.stack[-1])
        known = ({}, {}) if outside is None else (dict(outside.env), dict(outside.dims))
        inner = _Copy(self.mod, (*self.stack, name), *known, self.out, self.keeps_gradients)
        for p, a in zip(func.params, args, strict=True):
            inner.env[p] = inner.argument(p.sinfo, self.atom(a), p.name)
        return inner.inline(func.body)

    # -- arguments

    def argument(self, info: graph.StructInfo, value: graph.GraphExpr, name: str) -> graph.GraphExpr:
        """The value as a parameter of this info: what is not known of it or not provably so is checked at run time."""
        if isinstance(info, graph.TupleInfo):
            fields = tuple(self.bind(_field(value, k), f"{name}_{k}") for k in range(len(info.fields)))
            return graph.Tuple(tuple(self.argument(f, v, f"{name}_{k}") for k, (f, v) in enumerate(zip(info.fields, fields, strict=True))))
        wanted, actual = _extents(info), _extents(value.sinfo)
        if wanted is None:
            return value
        if actual is None or len(actual) != len(wanted):
            self.dims.update((v, tir.Var(v.name, v.dtype, v.size)) for v in dims_of(info) if v not in self.dims)
            return self.cast(value, self.info(info), name)
        for dim, is_now in zip(wanted, actual, strict=True):
            if type(dim) is tir.Var:
                self.dims.setdefault(dim, is_now)
        unsure = any(not Analyzer().prove_equal(substitute(d, self.dims), n) for d, n in zip(wanted, actual, strict=True))
        return self.cast(value, self.info(info), name) if unsure else value


def _extents(info: graph.StructInfo) -> tuple[tir.Expr, ...] | None:
    """The expressions in a struct info; None where they are not known."""
    if isinstance(info, graph.TensorInfo):
        return info.shape
    if isinstance(info, graph.ShapeInfo):
        return info.values
    return (info.value,) if isinstance(info, graph.PrimInfo) and info.value is not None else None


def dims_of(info: graph.StructInfo) -> list[tir.Var]:
    """Symbolic sizes in a struct info."""
    if isinstance(info, graph.TupleInfo):
        return [v for f in info.fields for v in dims_of(f)]
    return [v for e in _extents(info) or () for v in sorted(free_vars(e), key=lambda v: v.name)]


def _attrs(attrs: Attrs, dims: dict[tir.Var, tir.Expr]) -> Attrs:
    """Attributes with expressions in the caller's dimensions."""

    def value(v: Any) -> Any:
        if isinstance(v, tuple):
            return tuple(map(value, v))
        return substitute(v, dims) if isinstance(v, tir.Expr) else v

    return Attrs({k: value(v) for k, v in attrs.items()}) if dims else attrs


def _if(self: _Copy, value: graph.If) -> graph.If:
    branches = self.nested(value.true_branch), self.nested(value.false_branch)
    return graph.If(self.expr(value.condition), *branches, self.info(value.sinfo))


def _while(self: _Copy, value: graph.While) -> graph.While:
    init = tuple(map(self.expr, value.init))
    loop_vars = tuple(graph.Var(v.name, self.info(v.sinfo)) for v in value.loop_vars)
    self.env.update(zip(value.loop_vars, loop_vars, strict=True))
    return graph.While(loop_vars, init, self.nested(value.condition), self.nested(value.body), self.info(value.sinfo))


class _Closure(graph.GraphExpr):
    """A function inside of a function, with the variables around it; it stands for itself until it is called."""

    __slots__ = ("function", "name", "outside")
    sinfo = graph.ObjectInfo()

    def __init__(self, function: graph.Function, name: str, outside: _Copy) -> None:
        self.function, self.name, self.outside = function, name, outside


_EXPR: dict[type, Callable[[_Copy, Any], Any]] = {
    graph.Var: lambda self, v: self.env.get(v, v),
    graph.DataflowVar: lambda self, v: self.env.get(v, v),
    graph.Tuple: lambda self, v: graph.Tuple(tuple(self.atom(self.expr(f)) for f in v.fields)),
    graph.TupleGetItem: lambda self, v: _field(self.expr(v.tuple_value), v.index),
    graph.ShapeExpr: lambda self, v: graph.ShapeExpr(tuple(substitute(e, self.dims) for e in v.values)),
    graph.PrimValue: lambda self, v: graph.PrimValue(substitute(v.value, self.dims)),
    graph.Call: _Copy.call, graph.If: _if, graph.While: _while, graph.Function: _Copy.local,
}


def _field(value: graph.GraphExpr, index: int) -> graph.GraphExpr:
    return value.fields[index] if isinstance(value, graph.Tuple) else graph.TupleGetItem(value, index)
