# SPDX-License-Identifier: Apache-2.0
"""Parameters and symbolic dimensions of graph functions given for good: weights become constants, ``n`` becomes 16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundel.arith import Analyzer
from roundel.arith.struct_infos import matched, symbols_of
from roundel.ir import graph, tir
from roundel.ir.errors import RoundelError
from roundel.ir.visit import Rewriter, on, substitute, walk


def bind_params(func: graph.Function, values: Mapping[Any, Any]) -> graph.Function:
    """The function without the parameters that ``values`` gives, by variable or name: arrays, numbers, constants or other graph values.

    Symbolic dimensions that follow from what is given are put in too. Raises RoundelError for names that no parameter or several have, and
    values that do not fit."""
    given: dict[graph.Var, graph.GraphExpr] = {}
    for key, value in values.items():
        param = _one(key, {p: p.name for p in func.params}, "parameter", func)
        given[param] = value if isinstance(value, graph.GraphExpr) else _constant(value, param)
        _check(param, given[param])
    dims = matched([p.sinfo for p in given], [v.sinfo for v in given.values()])
    wrong = next((p for p, v in given.items() if not _agrees(p.sinfo, v.sinfo, dims)), None)
    if wrong is not None:
        raise RoundelError(f"the value for {wrong.name} does not fit", why=f"{wrong.name} is {wrong.sinfo!r}, the value {given[wrong].sinfo!r}")
    return _rewritten(func, dims, given)


def bind_sizes(func: graph.Function, values: Mapping[Any, Any]) -> graph.Function:
    """The function with numbers or expressions in place of symbolic dimensions, by variable or name. Raises RoundelError for names that no
    dimension or several have."""
    names = {v: v.name for v in symbolic_dimensions(func)}
    dims = {_one(key, names, "symbolic dimension", func): tir.as_index(value) for key, value in values.items()}
    return _rewritten(func, dims, {})


def symbolic_dimensions(func: graph.Function) -> list[tir.Var]:
    """The variables in the function's struct info, those of the parameters first."""
    infos = [p.sinfo for p in func.params] + [n.var.sinfo for n in walk(func.body) if isinstance(n, graph.Binding)] + [func.ret_sinfo]
    return list(dict.fromkeys(v for info in infos for v in sorted(symbols_of([info]), key=lambda v: v.name)))


def _one(key: Any, names: Mapping[Any, str], what: str, func: graph.Function) -> Any:
    """The variable that is meant."""
    where = str(func.attrs.get("global_symbol", "")) or None
    if not isinstance(key, str):
        if key not in names:
            raise RoundelError(f"{getattr(key, 'name', key)} is no {what} of the function", where=where, hint=f"it has {', '.join(names.values()) or 'none'}")
        return key
    found = [v for v, name in names.items() if name == key]
    if len(found) != 1:
        why = f"{len(found)} have that name" if found else f"it has {', '.join(names.values()) or 'none'}"
        raise RoundelError(f"the function has no single {what} {key!r}", where=where, why=why, hint="give the variable itself" if found else "")
    return found[0]


def _constant(value: Any, param: graph.Var) -> graph.GraphExpr:
    info = param.sinfo
    if isinstance(info, graph.PrimInfo):
        return graph.PrimValue(tir.const(value, info.dtype))
    if isinstance(info, graph.ShapeInfo):
        return graph.ShapeExpr(tuple(value))
    if isinstance(value, bool | int | float):
        return graph.Constant.of(value, getattr(info, "dtype", None))
    return graph.Constant.of(value.numpy() if hasattr(value, "numpy") else value)


def _check(param: graph.Var, value: graph.GraphExpr) -> None:
    wanted, found = param.sinfo, value.sinfo
    if isinstance(wanted, graph.TensorInfo) and isinstance(found, graph.TensorInfo):
        if wanted.dtype not in (None, found.dtype) or wanted.ndim not in (-1, found.ndim):
            raise RoundelError(f"the value for {param.name} does not fit", why=f"{param.name} is {wanted!r}, the value {found!r}")


def _agrees(wanted: graph.StructInfo, found: graph.StructInfo, dims: Mapping[tir.Var, tir.Expr]) -> bool:
    shapes = getattr(substitute(wanted, dims), "shape", None), getattr(found, "shape", None)
    if None in shapes:
        return True
    return not any(Analyzer().prove(tir.ne(a, b)) for a, b in zip(*shapes, strict=True))


def _rewritten(func: graph.Function, dims: Mapping[tir.Var, tir.Expr], given: Mapping[graph.Var, graph.GraphExpr]) -> graph.Function:
    if not dims and not given:
        return func
    made = _Bound(dims, given)
    params = tuple(made.variable(p) for p in func.params if p not in given)
    return graph.Function(params, made.rewrite(func.body), made.rewrite(func.ret_sinfo), func.is_pure, func.attrs, func.span)


class _Bound(Rewriter):
    """Variables with what is known of them in the new dimensions, each renewed once."""

    def __init__(self, dims: Mapping[tir.Var, tir.Expr], values: Mapping[graph.Var, graph.GraphExpr]) -> None:
        self.dims, self.values = dims, dict(values)

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, tir.Expr):
            made = substitute(node, self.dims)
            return node if made is node else Analyzer().simplify(made)
        return super().rewrite(node)

    @on(graph.Var, graph.DataflowVar)
    def variable(self, v: graph.Var) -> Any:
        """The renewed variable, or the value that stands for it."""
        if v not in self.values:
            info = self.rewrite(v.sinfo)
            self.values[v] = v if info is v.sinfo else type(v)(v.name, info)
        return self.values[v]

    @on(graph.MatchCast)
    def _match_cast(self, b: graph.MatchCast) -> graph.Binding:
        return b.replace(var=self.variable(b.var), value=self.rewrite(b.value), sinfo=self.rewrite(b.sinfo))
