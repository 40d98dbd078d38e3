# SPDX-License-Identifier: Apache-2.0
"""What depends on the parameters of a model only, as a function of its own, to be called once before the model runs.

    def main(x, w):                    # num_input = 1      def main_transform_params(params):
        wt = R.permute_dims(w)                                   return (R.permute_dims(params[0]),)
        return R.matmul(x, wt)                      ->
                                                             def main(x, wt):
                                                                 return R.matmul(x, wt)

The attribute ``num_input`` of a function says how many of its parameters, the first, are inputs; the others are the model's. The transformed parameters
follow the inputs: first those that are used as they are, then what was computed, both in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...ir import graph, structural_equal, tir
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.errors import RoundelError
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ir.visit import substitute, walk
from ...relax.analysis import contains_impure_call, remove_all_unused
from ...relax.outline import Renamed, sizes_in
from .convert_to_dataflow import straight_function
from .inline_functions import dims_of

INPUTS = "num_input"
"""The attribute of a function that says how many of its parameters are inputs."""
SUFFIX = "transform_params"


def lift_params(mod: IRModule, shared: bool | Sequence[str] = False) -> IRModule:
    """For every function ``f`` with the attribute ``num_input`` a function ``f_transform_params``, which takes a tuple of its other parameters and returns
    a tuple of those that ``f`` takes afterwards. One that is there already is applied first.

    ``shared``: one function ``transform_params`` for all of them, or for those of these names, with the steps that they have in common; what else each
    takes after its inputs is the same for all. Symbolic sizes that only the parameters told come first, as a shape.
    Raises RoundelError where functions that share have other parameters.
    """
    asked = [shared] if isinstance(shared, str) else shared if not isinstance(shared, bool) else ()
    parts = {name: _Parts.of(mod, f) for name, f in mod.items() if isinstance(f, graph.Function) and INPUTS in f.attrs
             and not name.endswith(SUFFIX) and (not asked or name in asked)}
    missing = [name for name in asked if name not in parts]
    if missing:
        raise RoundelError(f"{', '.join(missing)} cannot have parameters transformed", hint=f"a graph function with the attribute {INPUTS}")
    if not parts:
        return mod
    if shared is False:
        for name, part in parts.items():
            mod = _with_transform(mod, f"{name}_{SUFFIX}", part, part.outputs(), part.told_sizes()).with_functions({name: part.at_run_time()})
        return mod
    return _share(mod, parts)


def bundle_params(mod: IRModule, name: str = "model_params") -> IRModule:
    """One tuple ``name`` in place of all parameters that are no inputs, in every function with the attribute ``num_input`` where they are not one already."""
    are_one = lambda weights: len(weights) == 1 and isinstance(weights[0].sinfo, graph.TupleInfo)
    return mod.with_functions({key: bundled(f, name) for key, f in mod.items() if isinstance(f, graph.Function) and INPUTS in f.attrs
                               and not are_one(_divided(f)[1])})


def bundled(func: graph.Function, name: str) -> graph.Function:
    """The function with one tuple in place of the parameters behind its inputs."""
    inputs, weights = _divided(func)
    whole = graph.Var(name, graph.TupleInfo(tuple(w.sinfo for w in weights)))
    used = {n for n in walk(func.body) if isinstance(n, graph.Var)}
    fields = {w: graph.Var(w.name, w.sinfo) for w in weights if w in used}
    taken = tuple(graph.VarBinding(v, graph.TupleGetItem(whole, weights.index(w))) for w, v in fields.items())
    body = Renamed(fields).rewrite(func.body)
    if taken and body.blocks and isinstance(body.blocks[0], graph.DataflowBlock):
        first = body.blocks[0].replace(bindings=(*taken, *body.blocks[0].bindings))
        body = graph.SeqExpr((first, *body.blocks[1:]), body.body)
    elif taken:
        body = graph.SeqExpr((graph.BindingBlock(taken), *body.blocks), body.body)
    return func.replace(params=(*inputs, whole), body=body)


def _divided(func: graph.Function) -> tuple[tuple[graph.Var, ...], tuple[graph.Var, ...]]:
    """Inputs, and the parameters of the model."""
    count = int(func.attrs[INPUTS])
    if not 0 <= count <= len(func.params):
        raise RoundelError(f"{func.attrs.get('global_symbol', 'a function')} has {len(func.params)} parameters, {INPUTS} says that {count} are inputs")
    return func.params[:count], func.params[count:]


def _variables(value: Any) -> set[graph.Var]:
    return {n for n in walk(value) if isinstance(n, graph.Var)}


def _told(infos: Iterable[graph.StructInfo]) -> set[tir.Var]:
    """The symbolic sizes that values of these types tell: those that are a dimension as they stand."""
    fields = [f for info in infos for f in (info.fields if isinstance(info, graph.TupleInfo) else (info,))]
    return {d for f in fields for d in getattr(f, "shape", None) or getattr(f, "values", None) or () if isinstance(d, tir.Var)}


@dataclass(frozen=True)
class _Parts:
    """A function with its steps that do not wait for its inputs: ``early`` in order, ``lifted`` those of them that depend on parameters."""

    func: graph.Function
    early: tuple[graph.Binding, ...]
    lifted: frozenset[graph.Var]

    @staticmethod
    def of(mod: IRModule, func: graph.Function) -> _Parts:
        _, weights = _divided(func)
        known, depends, sizes = set(weights), set(weights), _told(w.sinfo for w in weights)
        early: list[graph.Binding] = []
        for b in func.body.bindings:
            new = set(dims_of(b.sinfo)) if isinstance(b, graph.MatchCast) else set()
            used = _variables(b.value)
            if used <= known and sizes_in(b.value) | sizes_in(b.var.sinfo) <= sizes | new and _is_pure(mod, b.value):
                early.append(b)
                known.add(b.var)
                sizes |= new
                if used & depends:
                    depends.add(b.var)
        return _Parts(func, tuple(early), frozenset(depends - set(weights)))

    def late(self) -> list[graph.BindingBlock]:
        """The blocks of what stays."""
        blocks = [b.replace(bindings=tuple(s for s in b.bindings if s.var not in self.lifted)) for b in self.func.body.blocks]
        return [b for b in blocks if b.bindings]

    def stays(self) -> graph.Function:
        """The function without what is lifted; it still uses it."""
        return remove_all_unused(self.func.replace(body=graph.SeqExpr(tuple(self.late()), self.func.body.body)))

    def outputs(self) -> tuple[graph.Var, ...]:
        """What the function needs of its parameters and of what is lifted."""
        needed = _variables(self.stays().body)
        _, weights = _divided(self.func)
        return tuple(v for v in (*weights, *(b.var for b in self.early if b.var in self.lifted)) if v in needed)

    def told_sizes(self, outputs: Sequence[graph.Var] | None = None) -> tuple[tir.Var, ...]:
        """Sizes that the function needs and that after lifting none of its parameters tells."""
        inputs, weights = _divided(self.func)
        told = _told(v.sinfo for v in (*inputs, *(self.outputs() if outputs is None else outputs)))
        gone = [v for b in self.early if isinstance(b, graph.MatchCast) and b.var in self.lifted for v in dims_of(b.sinfo)]
        body = self.stays().body
        needed = sizes_in(body).union(*(sizes_in(b.var.sinfo) for b in body.bindings), *(sizes_in(v.sinfo) for v in self.outputs()))
        early = sorted(_told(w.sinfo for w in weights), key=lambda v: v.name)
        return tuple(v for v in dict.fromkeys((*early, *gone)) if v in needed and v not in told)

    def at_run_time(self, outputs: Sequence[graph.Var] | None = None, sizes: Sequence[tir.Var] | None = None) -> graph.Function:
        """The function that takes what was lifted."""
        outputs = self.outputs() if outputs is None else outputs
        sizes = self.told_sizes() if sizes is None else sizes
        inputs, _ = _divided(self.func)
        shape = (graph.Var("sizes_of_params", graph.ShapeInfo(tuple(sizes))),) if sizes else ()
        table = {v: graph.Var(v.name, v.sinfo) for v in outputs}
        return self.stays().replace(params=(*inputs, *shape, *table.values()), body=Renamed(dict(table)).rewrite(self.stays().body))


def _is_pure(mod: IRModule, value: Any) -> bool:
    """Whether a step may be done at another time: no control flow, no effects."""
    if not isinstance(value, graph.Call):
        return isinstance(value, graph.Var | graph.Constant | graph.Tuple | graph.TupleGetItem | graph.ShapeExpr | graph.PrimValue)
    callee = mod.functions.get(value.op.name) if isinstance(value.op, graph.GlobalVar) else None
    return not contains_impure_call(value) and (isinstance(value.op, OpDef) or (isinstance(callee, graph.Function) and callee.is_pure))


def _with_transform(mod: IRModule, name: str, part: _Parts, outputs: Sequence[graph.Var], sizes: Sequence[tir.Var]) -> IRModule:
    """The module with the function that computes these of the parameters, behind the one of that name where there is one."""
    _, weights = _divided(part.func)
    result = graph.Tuple((*((graph.ShapeExpr(tuple(sizes)),) if sizes else ()), *outputs))
    body = graph.SeqExpr((graph.DataflowBlock(part.early),) if part.early else (), result)
    made = bundled(straight_function(mod, name, graph.Function(weights, body, result.sinfo, True, Attrs({INPUTS: 0}))), "params")
    old = mod.functions.get(name)
    if isinstance(old, graph.Function):
        made = _composed(mod, old, made)
    return mod.with_functions({name: made.replace(attrs=Attrs({"global_symbol": name, INPUTS: 0}))})


def _composed(mod: IRModule, first: graph.Function, then: graph.Function) -> graph.Function:
    """``then`` of what ``first`` gives."""
    made = mod.with_functions({"first": first, "then": then})
    (param,) = first.params
    whole = graph.Var("given", first.ret_sinfo)
    call = lambda name, value, info: graph.Call(graph.GlobalVar(name), (value,), sinfo=info)
    out = graph.Var("out", then.ret_sinfo)
    steps = (graph.VarBinding(whole, call("first", param, first.ret_sinfo)), graph.VarBinding(out, call("then", whole, then.ret_sinfo)))
    return straight_function(made, "composed", graph.Function((param,), graph.SeqExpr((graph.BindingBlock(steps),), out), out.sinfo, True, then.attrs))


# -- one function for several


def _share(mod: IRModule, parts: dict[str, _Parts]) -> IRModule:
    """The steps that all functions have in common, once."""
    (first_name, first), *others = parts.items()
    tables = {first_name: {v: v for v in (*_divided(first.func)[1], *(b.var for b in first.early))}}
    dims = {first_name: {d: d for b in first.func.params for d in dims_of(b.sinfo)}}
    for name, part in others:
        dims[name] = _same_parameters(first, part, first_name, name)
        tables[name] = _counterparts(first, part, dims[name])
    common = set.intersection(*({t for t in table.values()} for table in tables.values()))
    cut = {name: replace(part, early=tuple(b for b in part.early if tables[name].get(b.var) in common),
                         lifted=frozenset(v for v in part.lifted if tables[name].get(v) in common)) for name, part in parts.items()}
    needed = {tables[name][v] for name, part in cut.items() for v in part.outputs()}
    outputs = [v for v in tables[first_name] if v in needed]
    own = {name: {shared: v for v, shared in tables[name].items()} for name in parts}
    views = {name: [own[name].get(v, v) for v in outputs] for name in parts}
    asked = {dims[name].get(d, d) for name, part in cut.items() for d in part.told_sizes(views[name])}
    sizes = tuple(d for d in dims[first_name] if d in asked)
    early = cut[first_name]
    mod = _with_transform(mod, SUFFIX, early, outputs, sizes)
    changes = {}
    for name, part in cut.items():
        back = {shared: d for d, shared in dims[name].items()}
        changes[name] = part.at_run_time(views[name], [back.get(d, d) for d in sizes])
    return mod.with_functions(changes)


def _same_parameters(first: _Parts, part: _Parts, first_name: str, name: str) -> dict[tir.Var, tir.Expr]:
    """What the sizes of a function are called in the first one."""
    ours, theirs = _divided(part.func)[1], _divided(first.func)[1]
    dims: dict[tir.Var, tir.Expr] = {}
    for a, b in zip(ours, theirs, strict=False):
        for m, n in zip(getattr(a.sinfo, "shape", None) or (), getattr(b.sinfo, "shape", None) or (), strict=False):
            if isinstance(m, tir.Var):
                dims.setdefault(m, n)
    if len(ours) != len(theirs) or any(not structural_equal(substitute(a.sinfo, dims), b.sinfo) for a, b in zip(ours, theirs, strict=False)):
        texts = [f"{n}: {', '.join(map(str, (v.sinfo for v in vs)))}" for n, vs in ((first_name, theirs), (name, ours))]
        raise RoundelError(f"{first_name} and {name} have other parameters and cannot share what transforms them", why="; ".join(texts),
                           hint="transform those of each function by itself, or name functions of one model")
    return dims


def _counterparts(first: _Parts, part: _Parts, dims: dict[tir.Var, tir.Expr]) -> dict[graph.Var, graph.Var]:
    """The variables of early steps of the first function that hold the same as those of another, and its parameters."""
    table: dict[graph.Var, graph.Var] = dict(zip(_divided(part.func)[1], _divided(first.func)[1], strict=True))
    for b in part.early:
        if _variables(b.value) <= table.keys():
            value = substitute(Renamed(dict(table)).rewrite(b.value), dims)
            same = next((f.var for f in first.early if type(f) is type(b) and f.var not in table.values() and structural_equal(f.value, value)), None)
            if same is not None and isinstance(b, graph.VarBinding):
                table[b.var] = same
    return table


__all__ = ["bundle_params", "bundled", "lift_params"]
