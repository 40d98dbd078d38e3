# SPDX-License-Identifier: Apache-2.0
"""Size variables that no parameter has as a whole dimension are solved for.

    x: Tensor((2 * n, 3))     becomes     x': Tensor((m, 3));  (n,) = match_cast((m // 2,));  x: Tensor((2 * n, 3)) = match_cast(x')

The second cast checks at run time that 2 divides m.
"""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.dtype import INT64
from ..ir.module import IRModule
from ..ir.visit import free_vars, substitute
from ..passes import pass_


@pass_("solve_sizes")
def solve_sizes(mod: IRModule) -> IRModule:
    """Give graph functions whole dimensions for all variables in the shapes of their parameters, where these are linear in them."""
    changed = {name: new for name, f in mod.items() if isinstance(f, graph.Function) and (new := _solved(f)) is not f}
    return mod.with_functions(changed) if changed else mod


def _solved(func: graph.Function) -> graph.Function:
    shapes = {p: p.sinfo.shape for p in func.params if isinstance(p.sinfo, graph.TensorInfo) and p.sinfo.shape is not None}
    known = _whole(func.params)
    unknown = {v for shape in shapes.values() for d in shape for v in free_vars(d)} - known
    if not unknown:
        return func
    casts: list[graph.Binding] = []
    dims: dict[tuple[graph.Var, int], tir.Var] = {}
    for (param, k), var, value in _solutions(shapes, known, unknown, dims):
        info = graph.ShapeInfo((var,))
        casts.append(graph.MatchCast(graph.Var(f"{var.name}_of_{param.name}_{k}", info), graph.ShapeExpr((value,)), info))
    params = [_with_dims(p, shapes.get(p, ()), unknown, dims) for p in func.params]
    casts += [graph.MatchCast(old, new, old.sinfo) for old, new in zip(func.params, params, strict=True) if new is not old]
    body = func.body.replace(blocks=(graph.BindingBlock(tuple(casts)), *func.body.blocks))
    return func.replace(params=tuple(params), body=body)


def _whole(params: tuple[graph.Var, ...]) -> set[tir.Var]:
    """Variables that a parameter gives as they are."""
    found: set[tir.Var] = set()
    todo = [p.sinfo for p in params]
    while todo:
        info: Any = todo.pop()
        if isinstance(info, graph.TupleInfo):
            todo += info.fields
            continue
        values = info.values if isinstance(info, graph.ShapeInfo) else (info.value,) if isinstance(info, graph.PrimInfo) else getattr(info, "shape", None)
        found |= {d for d in values or () if type(d) is tir.Var}
    return found


def _solutions(shapes: dict[graph.Var, Any], known: set[tir.Var], unknown: set[tir.Var], dims: dict[tuple[graph.Var, int], tir.Var]) -> Any:
    """Place, variable and value of each variable that a dimension tells once others are known; ``dims`` gets the dimensions' variables."""
    left, an, progress = set(unknown), Analyzer(), True
    while progress:
        progress = False
        for param, shape in shapes.items():
            for k, dim in enumerate(shape):
                new = [v for v in free_vars(dim) if v in left]
                if len(new) != 1 or not free_vars(dim) <= known | left:
                    continue
                slope = an.simplify(substitute(dim, {new[0]: new[0] + 1}) - dim)
                if isinstance(slope, tir.IntImm) and slope.value > 0:
                    whole = dims.setdefault((param, k), tir.Var(f"{param.name}_{k}", INT64, True))
                    yield (param, k), new[0], an.simplify(tir.floordiv(whole - an.simplify(dim - slope * new[0]), slope))
                    left.discard(new[0])
                    known, progress = known | {new[0]}, True


def _with_dims(param: graph.Var, shape: Any, solved: set[tir.Var], dims: dict[tuple[graph.Var, int], tir.Var]) -> graph.Var:
    """The parameter with variables for its dimensions in which something is solved for."""
    if not any(free_vars(d) & solved for d in shape):
        return param
    new = tuple(dims.setdefault((param, k), tir.Var(f"{param.name}_{k}", INT64, True)) if free_vars(d) & solved else d for k, d in enumerate(shape))
    return graph.Var(param.name, graph.TensorInfo(new, param.sinfo.dtype))
