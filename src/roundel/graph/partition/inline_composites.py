# SPDX-License-Identifier: Apache-2.0
"""Composite functions and regions for code generators put back into the functions that call them: the graph as it was before the partition."""

from __future__ import annotations

from ...ir import graph
from ...ir.module import IRModule
from ...ir.visit import walk
from ...passes import pass_
from ..tidy.convert_to_dataflow import convert_to_dataflow
from ..tidy.inline_functions import expanded


@pass_("inline_composites")
def inline_composites(mod: IRModule) -> IRModule:
    """Put the bodies of functions with the attribute ``Composite`` or ``Codegen`` in place of their calls; calls of other functions stay.
    What is pure is in dataflow blocks afterwards, and functions that were put back everywhere are gone."""
    parts = {name: f for name, f in mod.items() if isinstance(f, graph.Function) and {"Composite", "Codegen"} & f.attrs.keys()}
    called = {name: {n.name for n in walk(f) if isinstance(n, graph.GlobalVar)} for name, f in mod.items()}
    callers = [name for name in mod if name not in parts and called[name] & parts.keys()]
    if not callers:
        return mod
    inside = IRModule(parts)
    changes = {name: expanded(inside.with_functions({name: mod[name]}), name, mod[name]) for name in callers}
    put_back = {n for name in callers for n in called[name] & parts.keys()}
    put_back |= {n for name in put_back for n in called[name] & parts.keys()}
    mod = mod.with_functions({**changes, **dict.fromkeys(put_back)})
    return convert_to_dataflow(mod)
