# SPDX-License-Identifier: Apache-2.0
"""From a function of tensor expressions and graph operands to a tensor program and the ``call_tir`` that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import RoundelError
from roundel.ir.op import CALL_TIR
from roundel.ir.visit import Visitor, free_vars, on, substitute


@dataclass
class Program:
    """A tensor program with what a call needs: operands, values of its extra scalars, struct info of the result."""

    func: tir.PrimFunc
    args: tuple[graph.GraphExpr, ...]
    scalars: tuple[tir.Expr, ...]
    sinfo: graph.StructInfo

    def call(self, name: graph.GlobalVar) -> graph.Call:
        """``call_tir`` of the program under this name."""
        extra = (graph.ShapeExpr(self.scalars),) if self.scalars else ()
        return graph.Call(CALL_TIR, (name, graph.Tuple(self.args), *extra), sinfo_args=(self.sinfo,), sinfo=self.sinfo)


def make_program(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *,
                 attrs: Mapping[str, Any] | None = None) -> Program:
    """Call ``fn`` with every graph operand as tensor expression; what it returns becomes a tensor program.

    Tensors become placeholders (one per distinct operand; constants of one element become literals), shapes tuples of
    expressions, scalars expressions, tuples Python tuples; anything else is passed as it is. Shape variables are renewed,
    also those that ``fn`` itself holds, so that equal programs are structurally equal; one that no buffer's shape has as a dimension
    becomes a parameter.
    """
    inputs = _Inputs()
    result = fn(*map(inputs.convert, args), **{k: inputs.convert(v) for k, v in (kwargs or {}).items()})
    outs = [_own(t, inputs) for t in (result if isinstance(result, tuple | list) else (result,))]
    if len(set(outs)) < len(outs):
        outs = [t if t not in outs[:k] else _copy(t) for k, t in enumerate(outs)]
    used = [(a, t) for a, t in inputs.tensors.items() if isinstance(t.definition, te.Placeholder)]
    func = te.create_prim_func([*(t for _, t in used), *outs], name=None, attrs=attrs)
    renewed = set(inputs.fresh.values())
    free = _variables(func)
    if held := {v: inputs.expr(v) for v in free if v not in renewed}:
        func = substitute(func, held)
        free = _variables(func)
    bound = {d for b in func.buffer_params for d in b.shape if isinstance(d, tir.Var)}
    extra = tuple(v for v in free if v not in bound)
    func = func.replace(params=(*func.params, *extra))
    back = {new: old for old, new in inputs.fresh.items()}
    infos = tuple(graph.TensorInfo(tuple(substitute(s, back) for s in t.shape), t.dtype) for t in outs)
    sinfo = graph.TupleInfo(infos) if isinstance(result, tuple | list) else infos[0]
    scalars = tuple(back[v] for v in extra)
    return Program(func, tuple(a for a, _ in used), scalars, sinfo)


@dataclass
class _Inputs:
    tensors: dict[Any, te.Tensor] = field(default_factory=dict)
    fresh: dict[tir.Var, tir.Var] = field(default_factory=dict)
    fields: dict[graph.Var, tuple[graph.TupleGetItem, ...]] = field(default_factory=dict)

    def convert(self, value: Any) -> Any:
        handler = _CONVERT.get(type(value))
        if handler is None:
            return self.expr(value) if isinstance(value, tir.Expr) else value
        return handler(self, value)

    def expr(self, e: tir.Expr) -> tir.Expr:
        """The expression over fresh variables."""
        for v in free_vars(e):
            self.fresh.setdefault(v, tir.Var(v.name, v.dtype, v.size))
        return substitute(e, self.fresh)

    def tensor(self, value: Any) -> te.Tensor:
        if value not in self.tensors:
            info = value.sinfo
            if isinstance(info, graph.TupleInfo) or not isinstance(info, graph.TensorInfo):
                raise RoundelError("an operand of a tensor expression has to be a tensor", why=f"it is {info!r}")
            if info.shape is None or info.dtype is None:
                raise RoundelError(f"operand {getattr(value, 'name', value)} does not tell its {info.unknown}", why=f"it is {info!r}",
                                   hint=f"declare a parameter whole, give others a type by R.match_cast: {info.completed}")
            name = getattr(value, "name", None) or chr(ord("A") + len(self.tensors) % 26)
            self.tensors[value] = te.placeholder(tuple(map(self.expr, info.shape)), info.dtype, name)
        return self.tensors[value]

    def variable(self, value: graph.Var) -> Any:
        if isinstance(value.sinfo, graph.TupleInfo):
            if value not in self.fields:
                self.fields[value] = tuple(graph.TupleGetItem(value, k) for k in range(len(value.sinfo.fields)))
            return tuple(map(self.tensor, self.fields[value]))
        by_kind = {graph.ShapeInfo: lambda s: None if s.values is None else tuple(map(self.expr, s.values)),
                   graph.PrimInfo: lambda s: None if s.value is None else self.expr(s.value)}
        known = by_kind.get(type(value.sinfo))
        if known is None:
            return self.tensor(value)
        out = known(value.sinfo)
        if out is None:
            raise RoundelError(f"the value of operand {value.name} is not known here", why=f"it is {value.sinfo!r}")
        return out

    def constant(self, value: graph.Constant) -> te.Tensor:
        dtype = value.data.dtype
        if any(n != 1 for n in value.data.shape) or not (dtype.is_float or dtype.is_int or dtype.is_bool):
            return self.tensor(value)
        return te.literal(value.data.numpy().reshape(()).item(), value.data.shape, dtype)


_CONVERT: dict[type, Callable[[_Inputs, Any], Any]] = {
    graph.Var: _Inputs.variable, graph.DataflowVar: _Inputs.variable, graph.Constant: _Inputs.constant,
    graph.TupleGetItem: _Inputs.tensor, graph.Call: _Inputs.tensor,
    graph.ShapeExpr: lambda self, v: tuple(map(self.expr, v.values)),
    graph.PrimValue: lambda self, v: self.expr(v.value),
    graph.StringValue: lambda self, v: v.value, graph.DTypeValue: lambda self, v: v.value,
    graph.Tuple: lambda self, v: tuple(map(self.convert, v.fields)),
    tuple: lambda self, v: tuple(map(self.convert, v)), list: lambda self, v: [self.convert(x) for x in v],
    dict: lambda self, v: {k: self.convert(x) for k, x in v.items()},
}


def _copy(t: te.Tensor) -> te.Tensor:
    return te.compute(t.shape, lambda *i: t(*i), t.name + "_copy")


def _own(t: Any, inputs: _Inputs) -> te.Tensor:
    """A result that is an operand itself is copied."""
    if not isinstance(t, te.Tensor):
        raise RoundelError("the function given to emit_te has to return tensors", why=f"it returned {t!r}")
    return _copy(t) if isinstance(t.definition, te.Placeholder | te.Literal) else t


class _Variables(Visitor):
    def __init__(self) -> None:
        self.used: dict[tir.Var, None] = {}
        self.defined: set[tir.Var] = set()

    @on(tir.Var)
    def _var(self, v: tir.Var) -> None:
        if v.dtype.is_int:
            self.used[v] = None

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: Any) -> None:
        self.shape(access.buffer)
        self.generic(access)

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        self.defined.add(loop.loop_var)
        self.generic(loop)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.defined.add(let.var)
        self.generic(let)

    @on(tir.Block)
    def _block(self, block: tir.Block) -> None:
        self.defined.update(i.var for i in block.iter_vars)
        for b in block.alloc_buffers:
            self.shape(b)
        self.generic(block)

    def shape(self, buffer: tir.Buffer) -> None:
        for dim in buffer.shape:
            self.visit(dim)


def _variables(func: tir.PrimFunc) -> tuple[tir.Var, ...]:
    """Integer variables that nothing in the body defines, in the order in which they appear."""
    found = _Variables()
    for b in func.buffer_params:
        found.shape(b)
    found.visit(func.body)
    return tuple(v for v in found.used if v not in found.defined)


def program_attrs(kind: int, **more: Any) -> Attrs:
    """Attributes of the tensor program of an operator of this FuseKind."""
    return Attrs({"fuse_kind": int(kind), **more})
