# SPDX-License-Identifier: Apache-2.0
"""Executes graph functions: bindings in order, operators by their NumPy definition, tensor programs interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import graph, tir
from ..ir.attrs import Attrs
from ..ir.errors import CallError, InterpretError, RoundelError
from ..ir.module import IRModule
from ..ir.node import Span
from ..ir.op import OpDef
from ..ir.visit import free_vars
from .positions import require_inside
from .symbolic import Dims, evaluate, solve

if TYPE_CHECKING:
    from .runtime import Runtime

Expand = Callable[[OpDef, tuple, Attrs], IRModule]
_expand: Expand | None = None


def install_expansion(expand: Expand) -> None:
    """``expand(op, infos, attrs)`` gives a module whose ``main`` takes the operator's tensors (operands in order,
    tuples spread) and computes it from its definition (``compute`` or ``decompose``). ``infos`` are the struct infos of
    the operands, with all dimensions known, None for absent ones. ``roundel.ops`` installs it, for operators without
    ``numpy``.
    """
    global _expand
    _expand = expand


class ShapeValue(tuple):
    """A shape at run time: a tuple of ints, told apart from a tuple of tensors."""

    __slots__ = ()


class GraphEvaluator:
    """One activation of a graph function. ``env`` holds variables, ``dims`` the symbolic dimensions; of a function inside of another one
    they begin with those that are known around it."""

    def __init__(self, runtime: Runtime, name: str, env: Mapping[graph.Var, Any] | None = None, dims: Dims | None = None) -> None:
        self.runtime, self.name = runtime, name
        self.env: dict[graph.Var, Any] = dict(env or {})
        self.dims: Dims = dict(dims or {})
        self.span: Span | None = None  # of the binding that is evaluated

    def call(self, func: graph.Function, args: Sequence[Any]) -> Any:
        """Bind the parameters and evaluate the body."""
        if len(args) != len(func.params):
            raise CallError(
                f"{self.name} takes {len(func.params)} arguments, {len(args)} were given",
                why=f"its parameters are {', '.join(p.name for p in func.params)}",
            )
        values = [self.coerce(a, p.sinfo, f"argument {p.name} of {self.name}") for p, a in zip(func.params, args)]
        self.match([(p.sinfo, v, f"argument {p.name} of {self.name}") for p, v in zip(func.params, values)])
        self.env.update(zip(func.params, values))
        return self.eval(func.body)

    # --- struct info at run time

    def coerce(self, value: Any, info: graph.StructInfo, where: str) -> Any:
        """``value`` as the kind of thing that ``info`` describes; raises CallError when it cannot be."""
        if isinstance(info, graph.TensorInfo):
            value = np.asarray(value, None if info.dtype is None or isinstance(value, np.ndarray) else info.dtype.numpy)
            if info.dtype is not None and value.dtype not in (info.dtype.numpy, self.runtime.machine.numpy(info.dtype)):
                raise CallError(f"{where} is {info.dtype}, got {value.dtype}")
            if info.ndim >= 0 and value.ndim != info.ndim:
                raise CallError(f"{where} has {info.ndim} dimensions, got shape {value.shape}")
        elif isinstance(info, graph.TupleInfo):
            if not isinstance(value, tuple) or len(value) != len(info.fields):
                raise CallError(f"{where} is a tuple of {len(info.fields)}, got {type(value).__name__}")
            return tuple(self.coerce(v, i, f"{where}[{k}]") for k, (v, i) in enumerate(zip(value, info.fields)))
        elif isinstance(info, graph.ShapeInfo):
            return ShapeValue(int(v) for v in value)
        elif isinstance(info, graph.PrimInfo) and isinstance(value, np.ndarray | np.generic):
            return value.item()
        return value

    def match(self, triples: Sequence[tuple[graph.StructInfo, Any, str]]) -> None:
        """Bind symbolic dimensions that are new in the struct infos, check the others; raises CallError."""
        equations: list[tuple[tir.Expr, int, str]] = []
        for info, value, where in triples:
            self._equations(info, value, where, equations)
        solve(equations, self.dims)

    def _equations(self, info: graph.StructInfo, value: Any, where: str, out: list) -> None:
        if isinstance(info, graph.TensorInfo) and info.shape is not None:
            out += [(e, n, f"dimension {d} of {where}") for d, (e, n) in enumerate(zip(info.shape, value.shape))]
        elif isinstance(info, graph.ShapeInfo) and info.values is not None:
            if len(value) != len(info.values):
                raise CallError(f"{where} has {len(info.values)} dimensions, got {tuple(value)}")
            out += [(e, n, f"element {d} of {where}") for d, (e, n) in enumerate(zip(info.values, value))]
        elif isinstance(info, graph.PrimInfo) and info.value is not None and info.dtype.is_int:
            out.append((info.value, int(value), where))
        elif isinstance(info, graph.TupleInfo):
            for k, (i, v) in enumerate(zip(info.fields, value)):
                self._equations(i, v, f"{where}[{k}]", out)

    def conform(self, value: Any, info: graph.StructInfo, where: str) -> Any:
        """A result in the type that was inferred for it; raises InterpretError when its shape contradicts that."""
        if isinstance(info, graph.TupleInfo):
            if not isinstance(value, tuple | list) or len(value) != len(info.fields):
                raise InterpretError(f"{where} gave {type(value).__name__} for a tuple of {len(info.fields)}")
            return tuple(self.conform(v, i, f"{where}[{k}]") for k, (v, i) in enumerate(zip(value, info.fields)))
        if not isinstance(info, graph.TensorInfo):
            return value
        value = np.asarray(value)
        if info.dtype is not None and value.dtype not in (info.dtype.numpy, self.runtime.machine.numpy(info.dtype)):
            value = value.astype(info.dtype.numpy)
        if info.shape is not None and all(v in self.dims for e in info.shape for v in free_vars(e)):
            want = tuple(evaluate(e, self.dims) for e in info.shape)
            if want != value.shape:
                raise InterpretError(f"{where} gave shape {value.shape}, inferred was {want}")
        elif info.ndim not in (-1, value.ndim):
            raise InterpretError(f"{where} gave shape {value.shape}, inferred were {info.ndim} dimensions")
        return value

    def outputs(self, info: graph.StructInfo) -> list[np.ndarray]:
        """Fresh arrays for results of destination-passing calls."""
        if isinstance(info, graph.TupleInfo):
            return [a for f in info.fields for a in self.outputs(f)]
        if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
            raise InterpretError("a destination-passing call needs the shape and dtype of its result", where=self.name)
        shape = tuple(evaluate(e, self.dims) for e in info.shape)
        machine = self.runtime.machine
        return [np.full(shape, machine.blank(info.dtype), machine.numpy(info.dtype))]

    # --- expressions

    def eval(self, e: Any) -> Any:
        """The value of a graph expression."""
        handler = _EVAL.get(type(e))
        if handler is None:
            raise InterpretError(
                f"the interpreter does not know the graph expression {type(e).__name__}", where=self.name
            )
        return handler(self, e)

    def var(self, e: graph.Var) -> Any:
        """A bound variable."""
        if e not in self.env:
            raise InterpretError(f"variable {e.name} has no value", where=self.name)
        return self.env[e]

    def seq(self, e: graph.SeqExpr) -> Any:
        """Bindings in order, then the body."""
        for b in e.bindings:
            self.span = b.span
            value = self.eval(b.value)
            if isinstance(b, graph.MatchCast):
                where = f"the value cast to {b.var.name} in {self.name}"
                value = self.coerce(value, b.sinfo, where)
                self.match([(b.sinfo, value, where)])
            self.env[b.var] = value
        return self.eval(e.body)

    def branch(self, e: graph.If) -> Any:
        """The branch that the condition chooses."""
        return self.eval(e.true_branch if bool(np.real(np.asarray(self.eval(e.condition))).item()) else e.false_branch)

    def loop(self, e: graph.While) -> Any:
        """The loop variables' last values."""
        values = tuple(self.eval(v) for v in e.init)
        outside = dict(self.dims)
        while True:
            self.env.update(zip(e.loop_vars, values))
            self.dims = dict(outside)  # sizes that the body binds are new in every iteration
            if not bool(np.asarray(self.eval(e.condition)).item()):
                self.dims = outside
                return values
            values = tuple(self.eval(e.body))

    def attrs(self, value: Any) -> Any:
        """Attributes with symbolic expressions replaced by numbers."""
        if isinstance(value, tir.Expr):
            return evaluate(value, self.dims) if value.dtype.is_int else value
        if isinstance(value, tuple):
            return tuple(self.attrs(v) for v in value)
        return Attrs({k: self.attrs(v) for k, v in value.items()}) if isinstance(value, Attrs) else value

    # --- calls

    def invoke(self, e: graph.Call) -> Any:
        """A call of an operator, a function of the module, a foreign function or a function value."""
        if isinstance(e.op, OpDef):
            special = _SPECIAL.get(e.op.name)
            return special(self, e) if special else self.operator(e)
        args = [self.eval(a) for a in e.args]
        if isinstance(e.op, graph.GlobalVar):
            func = self.runtime.mod[e.op.name]
            if not isinstance(func, graph.Function):
                raise InterpretError(f"{e.op.name} is a tensor program: reach it by call_tir", where=self.name)
            return GraphEvaluator(self.runtime, e.op.name).call(func, args)
        if isinstance(e.op, graph.ExternFunc):
            return self._packed(e, args)
        return self.eval(e.op)(*args)

    def _packed(self, e: graph.Call, args: list[Any]) -> Any:
        """A call of a foreign function, or of a graph function of the module by the name under which it is exported."""
        own = self.runtime.own(e.op.name)
        if own is not None:
            return self.runtime.call(own, args)
        found = self.runtime.packed(e.op.name)(*args)
        info = e.sinfo_args[0] if e.sinfo_args else e.sinfo
        if found is None and info is _NOTHING:  # called for its effect
            return ()
        return self.conform(found, info, e.op.name)

    def closure(self, func: graph.Function) -> Callable[..., Any]:
        """A function inside of this one, which sees the variables that are bound here."""
        return lambda *args: GraphEvaluator(self.runtime, self.name, self.env, self.dims).call(func, args)

    def operator(self, e: graph.Call) -> Any:
        """An operator by its NumPy definition, else by what its tensor expression or decomposition computes."""
        op, attrs = e.op, self.attrs(e.attrs)
        given = [None if _absent(op, k, a) else a for k, a in enumerate(e.args)]
        args = tuple(None if a is None else self.eval(a) for a in given)
        args += (None,) * (len(op.operands) - len(args))
        self._check_positions(e, given, args, attrs)
        try:
            if op.has("numpy"):
                out = self.runtime.machine.operator(op.numpy, args, attrs)
            elif _expand is not None:
                infos = tuple(None if a is None else _concrete(a.sinfo, v) for a, v in zip(given, args))
                mod = _expand(op, infos, attrs)
                out = type(self.runtime)(mod, self.runtime.machine).call(
                    "main", [v for v in _flat(args) if isinstance(v, np.ndarray)]
                )
            else:
                raise InterpretError(
                    f"R.{op.name} has no NumPy definition",
                    hint="import roundel.ops for what follows from its tensor expression",
                )
        except RoundelError:
            raise
        except Exception as error:
            shapes = ", ".join(_describe(a) for a in args)
            raise InterpretError(
                f"R.{op.name}({shapes}) failed: {error}", where=e.span or self.name, why=f"attributes {dict(attrs)}"
            ) from error
        return self.conform(out, e.sinfo, f"R.{op.name}")


    def _check_positions(self, e: graph.Call, given: Sequence[Any], args: Sequence[Any], attrs: Attrs) -> None:
        """Raises InterpretError for an index that is out of range."""
        if not e.op.has("positions"):
            return
        infos = tuple(None if a is None else _concrete(a.sinfo, v) for a, v in zip(given, args))
        for wanted in e.op.positions(infos, attrs):
            limits = [evaluate(n, {}) for n in wanted.limits]
            require_inside(attrs.get("node") or str(self.span or e.op), np.asarray(args[wanted.operand]), limits, wanted.negative)


def _absent(op: OpDef, k: int, a: Any) -> bool:
    """Whether operand ``k`` is an optional one left out: an empty tuple stands for it."""
    return a is None or (
        isinstance(a, graph.Tuple) and not a.fields and k < len(op.operands) and op.operands[k].endswith("?")
    )


def _concrete(info: graph.StructInfo, value: Any) -> graph.StructInfo:
    """What is known of a value at run time; element types as declared."""
    if isinstance(value, np.ndarray):
        dtype = info.dtype if isinstance(info, graph.TensorInfo) and info.dtype is not None else value.dtype
        return graph.TensorInfo(value.shape, dtype)
    if isinstance(value, ShapeValue):
        return graph.ShapeInfo(value)
    if isinstance(value, tuple):
        fields = info.fields if isinstance(info, graph.TupleInfo) else (graph.ObjectInfo(),) * len(value)
        return graph.TupleInfo(tuple(_concrete(i, v) for i, v in zip(fields, value)))
    if isinstance(value, bool | int | float):
        dtype = info.dtype if isinstance(info, graph.PrimInfo) else None
        return graph.PrimInfo(tir.const(value, dtype).dtype, tir.const(value, dtype))
    return graph.ObjectInfo()


def _describe(a: Any) -> str:
    return f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a)


def _flat(values: Any) -> list[Any]:
    """Operands of a destination-passing call: shapes and tuples are spread."""
    out = []
    for v in values:
        out += list(v) if isinstance(v, ShapeValue) else _flat(v) if isinstance(v, tuple) else [v]
    return out


def _result(outs: list[np.ndarray], info: graph.StructInfo) -> Any:
    return tuple(outs) if isinstance(info, graph.TupleInfo) else outs[0]


def _call_tir(self: GraphEvaluator, e: graph.Call) -> Any:
    name = e.args[0].name
    args = _flat(self.eval(a) for a in e.args[1:2])
    extra = [n for a in e.args[2:] for n in self.eval(a)]
    outs = self.outputs(e.sinfo_args[0])
    if not outs or any(o.size for o in outs):
        self.runtime.call_prim(self.runtime.mod[name], [*args, *outs, *extra], name)
    return _result(outs, e.sinfo_args[0])


def _call_tir_inplace(self: GraphEvaluator, e: graph.Call) -> Any:
    name = e.args[0].name
    args = _flat(self.eval(a) for a in e.args[1:2])
    extra = [n for a in e.args[2:] for n in self.eval(a)]
    places = e.attrs["inplace_indices"]
    places = places if isinstance(places, tuple) else (places,)
    for k in {p for p in places if p >= 0}:
        args[k] = args[k].copy()
    fresh = self.outputs(e.sinfo_args[0])
    outs = [args[p] if p >= 0 else f for p, f in zip(places, fresh)]
    self.runtime.call_prim(self.runtime.mod[name], [*args, *(f for p, f in zip(places, fresh) if p < 0), *extra], name)
    return _result(outs, e.sinfo_args[0])


def _call_dps_packed(self: GraphEvaluator, e: graph.Call) -> Any:
    target = e.args[0]
    args = _flat(self.eval(a) for a in e.args[1:2])
    outs = self.outputs(e.sinfo_args[0])
    name = target.name if isinstance(target, graph.ExternFunc | graph.GlobalVar) else str(self.eval(target))
    own = self.runtime.own(name)
    if own is not None:
        self.runtime.call_prim(self.runtime.mod[own], [*args, *outs], own)
    else:
        self.runtime.packed(name)(*args, *outs)
    return _result(outs, e.sinfo_args[0])


_NOTHING = graph.TupleInfo(())
_SPECIAL: Mapping[str, Callable] = {
    "call_tir": _call_tir,
    "call_tir_with_grad": _call_tir,
    "call_tir_inplace": _call_tir_inplace,
    "call_dps_packed": _call_dps_packed,
}
_EVAL: dict[type, Callable] = {
    graph.Var: GraphEvaluator.var,
    graph.DataflowVar: GraphEvaluator.var,
    graph.Call: GraphEvaluator.invoke,
    graph.Constant: lambda self, e: self.runtime.machine.lift(e.data.numpy()),
    graph.SeqExpr: GraphEvaluator.seq,
    graph.If: GraphEvaluator.branch,
    graph.While: GraphEvaluator.loop,
    graph.Tuple: lambda self, e: tuple(self.eval(f) for f in e.fields),
    graph.TupleGetItem: lambda self, e: self.eval(e.tuple_value)[e.index],
    graph.ShapeExpr: lambda self, e: ShapeValue(evaluate(v, self.dims) for v in e.values),
    graph.PrimValue: lambda self, e: evaluate(e.value, self.dims),
    graph.StringValue: lambda self, e: e.value,
    graph.DTypeValue: lambda self, e: e.value,
    graph.ExternFunc: lambda self, e: self.runtime.packed(e.name),
    graph.GlobalVar: lambda self, e: self.runtime[e.name],
    graph.Function: GraphEvaluator.closure,
}
