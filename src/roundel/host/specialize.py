# SPDX-License-Identifier: Apache-2.0
"""Variants for hot sizes: the same artifact holds code made for these sizes and code for all others, chosen at the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir import graph, tir
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..ir.visit import free_vars, substitute

Sizes = Mapping[str, int]


def specialize(mod: IRModule, hot: Sequence[Sizes], dynamic: Any = None) -> IRModule:
    """Each exported graph function becomes an if-chain over ``hot``, sizes by the names of its symbolic dimensions, first match wins.

    Before: ``def main(x: (batch, seq)): body``. After, for ``[{"seq": 128}]``::

        def main(x: (batch, seq)):
            if seq == 128: main_any(match_cast(x, (batch, 128)))
            else: main_any(x)

    ``inline_functions`` puts the bodies in place, with the sizes known. Raises OptionError for names that no function has;
    ``dynamic`` is what the model was imported with, and says whether a name was one of a dimension that has a fixed size now.
    """
    changes: dict[str, tir.BaseFunc] = {}
    unused = {name for sizes in hot for name in sizes}
    for name, func in mod.items():
        if not isinstance(func, graph.Function) or not ("global_symbol" in func.attrs or name == "main"):
            continue
        dims = _dims(func)
        unused -= dims.keys()
        wanted = [{dims[k]: tir.index_const(n) for k, n in sizes.items()} for sizes in hot if sizes and sizes.keys() <= dims.keys()]
        if wanted:
            inner = mod.unique_name(f"{name}_any")
            changes[inner] = func.replace(attrs=func.attrs.without("global_symbol"))
            changes[name] = _dispatch(name, func, graph.GlobalVar(inner), wanted)
    if unused:
        fixed = {n: size for n, size in dynamic.items() if hasattr(size, "__index__")} if isinstance(dynamic, Mapping) else {}
        for name in sorted(unused & fixed.keys()):
            raise OptionError(f"dimension {name!r} is fixed to {fixed[name]}, so no sizes of it can be hot", hint="fix it or give it hot sizes")
        known = sorted({d for f in mod.functions.values() if isinstance(f, graph.Function) for d in _dims(f)})
        hint = f"they are {', '.join(known)}" if known else "all its dimensions are numbers"
        raise OptionError(f"the model has no symbolic dimension {min(unused)!r}", hint=hint)
    return mod.with_functions(changes)


def _dims(func: graph.Function) -> dict[str, tir.Var]:
    """Symbolic dimensions of the parameters, by name."""
    infos = [p.sinfo for p in func.params]
    shapes = [i.shape for i in infos if isinstance(i, graph.TensorInfo) and i.shape is not None]
    return {v.name: v for shape in shapes for d in shape for v in free_vars(d)}


def _dispatch(name: str, func: graph.Function, inner: graph.GlobalVar, wanted: Sequence[Mapping[tir.Var, tir.Expr]]) -> graph.Function:
    params = tuple(graph.Var(p.name, p.sinfo) for p in func.params)
    result = func.ret_sinfo
    value: graph.SeqExpr = _call(inner, params, (), result)
    for sizes in reversed(wanted):
        casts = tuple(graph.MatchCast(graph.Var(p.name, substitute(p.sinfo, sizes)), p, substitute(p.sinfo, sizes)) for p in params)
        hot = _call(inner, tuple(c.var for c in casts), casts, substitute(result, sizes))
        condition = graph.PrimValue(tir.logical_and(*(tir.eq(v, n) for v, n in sizes.items())))
        var = graph.Var("result", result)
        chosen = graph.If(condition, hot, value, result)
        value = graph.SeqExpr((graph.BindingBlock((graph.VarBinding(var, chosen),)),), var)
    return func.replace(params=params, body=value, attrs=func.attrs | {"global_symbol": name})


def _call(inner: graph.GlobalVar, args: tuple[graph.Var, ...], casts: tuple[graph.Binding, ...], info: graph.StructInfo) -> graph.SeqExpr:
    var = graph.Var("out", info)
    return graph.SeqExpr((graph.BindingBlock((*casts, graph.VarBinding(var, graph.Call(inner, args, sinfo=info)))),), var)
