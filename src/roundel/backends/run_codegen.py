# SPDX-License-Identifier: Apache-2.0
"""Regions of a partitioned graph, computed by the backends that they are for: the third step beside patterns and partition, all three by hand.

    patterns = get_patterns_with_prefix("mykit")
    mod = run_codegen(merge_composites(fuse_by_pattern(mod, patterns)))

    lv = lv_fused_dense(x, w)         # Composite: mykit.dense       ->       lv = R.call_tir(cls.mykit_dense, (x, w), out_sinfo=...)

The pass `libraries` does all of this by itself and only where it is faster; here what was put into a region is computed by its backend.
"""

from __future__ import annotations

from typing import Any

from ..ir import graph
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..passes import pass_
from ..relax.fuse_by_pattern import FusionPattern
from ..relax.merge_composites import CODEGEN, COMPOSITE
from ..relax.outline import Renamed
from ..target import Target
from . import known
from .backend import Backend
from .forms import Formed
from .libraries import Calls
from .offers import offer_of, plain

_patterns: list[FusionPattern] = []


def register_patterns(patterns: list[Any]) -> None:
    """Know patterns by their names, those that come later before those that were there. Raises OptionError for what is none."""
    for given in patterns:
        _patterns.append(FusionPattern.of(given))


def get_patterns_with_prefix(prefix: str) -> list[FusionPattern]:
    """The patterns whose names begin so, those that go first first: registered ones, then those of backends."""
    of_backends = [p for name in known.available() if name.startswith(prefix) or prefix.startswith(name) for p in known.find(name).fusion_patterns]
    return [p for p in (*reversed(_patterns), *of_backends) if p.name.startswith(prefix)]


def get_pattern(name: str) -> FusionPattern | None:
    """The pattern of this name; None where there is none."""
    return next((p for p in get_patterns_with_prefix(name) if p.name == name), None)


@pass_("run_codegen")
def run_codegen(mod: IRModule) -> IRModule:
    """Functions with the attribute ``Codegen`` call the kernels of the backend of that name in place of their composite functions.

    Raises OptionError where there is no such backend, or it cannot compute one.
    """
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function) and CODEGEN in func.attrs:
            mod = _computed(mod, name, func, known.find(str(func.attrs[CODEGEN])))
    return mod


def _computed(mod: IRModule, name: str, func: graph.Function, backend: Backend) -> IRModule:
    """The module with a region that calls a backend's kernels, private from now on."""
    calls = Calls(mod, name, func, [backend])
    inner = {b.var: b.value for b in func.body.bindings if isinstance(b.value, graph.Function) and COMPOSITE in b.value.attrs}
    kept = [b for b in func.body.bindings if b.var not in inner]
    body = graph.SeqExpr((graph.BindingBlock(tuple(kept)),), func.body.body)
    formed = {b.var: _formed(calls, b, inner[b.value.op], backend) for b in kept if isinstance(b.value, graph.Call) and b.value.op in inner}
    return calls.finished(func.replace(body=body, attrs=func.attrs.without(CODEGEN, "global_symbol")), formed)


def _formed(calls: Calls, b: Any, composite: graph.Function, backend: Backend) -> Formed:
    """The call of the backend's kernel in place of that of a composite function."""
    target, pattern = calls.mod.attrs.get("target") or Target.host(), str(composite.attrs[COMPOSITE])
    offer = offer_of(backend, pattern, plain(composite).body.bindings, target)
    if isinstance(offer.kernel, str):
        raise OptionError(f"{backend.name} cannot compute {pattern}", why=offer.kernel, hint="give the pattern a check that refuses such parts")
    given = Renamed(dict(zip(composite.params, b.value.args, strict=True)))
    return calls.formed(offer._replace(operands=[given.rewrite(o) for o in offer.operands]), backend.name)
