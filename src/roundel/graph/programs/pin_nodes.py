# SPDX-License-Identifier: Apache-2.0
"""What somebody asked for of the kernel of a node: decisions of its schedule, and whether its weights are packed.

    choices={"/fc/MatMul": {"sketch": "contraction", "rows": 6}}      the attribute decisions of the tensor program that computes the node
    choices={"/fc/MatMul": "unpacked"}                                its weights stay in the order in which the model has them

A node that several kernels compute is pinned in its main ones, those of the most arithmetic kind. Nodes that shared a program get their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.choice import Choice, Later
from ...ir.module import IRModule
from ...ir.op import CALL_TIR, FuseKind
from ...passes import pass_
from ...strategy.expected import expected
from ...strategy.pack_constants import calls_of
from ...strategy.pins import PACKED, PINNED_AT
from ..expectations import setting_of
from ..rewriter import GraphRewriter, nodes_of

AS_SCHEDULED, AS_GIVEN = "packed", "unpacked"


@pass_("pin_nodes")
def pin_nodes(mod: IRModule) -> IRModule:
    """Give tensor programs the decisions that are asked for at the nodes that they compute, and record which weights may be packed. Names and
    patterns that fit no node are left to ``pin_programs``."""
    return _PinNodes(mod).module()


def main_kernels(mod: IRModule) -> dict[str, int]:
    """For each node the kind (`FuseKind`) of the kernels that are its main ones."""
    found: dict[str, int] = {}
    for binding, call in calls_of(mod):
        for node in nodes_of(binding):
            found[node] = max(found.get(node, 0), kind_of(mod, call))
    return found


def kind_of(mod: IRModule, call: graph.Call) -> int:
    """The `FuseKind` of the program that is called."""
    return int(mod[call.args[0]].attrs.get("fuse_kind", FuseKind.OPAQUE))


class _PinNodes(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.main = main_kernels(mod)
        self.setting = setting_of(mod)
        self.made: dict[tuple[str, Attrs], graph.GlobalVar] = {}
        self.met: set[str] = set()

    def module(self) -> IRModule:
        mod = super().module()
        choices, kernels = self.choosing.choices(), {call.args[0].name for _, call in calls_of(mod)}
        left = tuple(p for p in choices.pins if p[0] not in self.met or any(fnmatchcase(name, p[0]) for name in kernels))
        return mod.replace(choices=choices.replace_pins(left))

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if call.op is not CALL_TIR:
            return call
        name = call.args[0].name
        nodes = [n for n in nodes_of(binding) if kind_of(self.mod, call) == self.main[n]]
        wanted = self.pinned(name, nodes)
        fixed = tuple(k for k, a in enumerate(call.args[1].fields) if isinstance(a, graph.Constant))
        if nodes and any(len(call.args[1].fields[k].data.shape) > 1 for k in fixed) and not self.packs(nodes[0], name, fixed):
            wanted[PACKED] = False
        if not wanted:
            return call
        program = self.pinned_program(name, Attrs(wanted), nodes[0])
        return call.replace(args=(program, *call.args[1:]))

    def pinned(self, name: str, nodes: Sequence[str]) -> dict[str, Any]:
        """The decisions that are asked for at the nodes of a kernel, those by a very name before those by a pattern; recorded."""
        found = [(p == n, p, n, d) for p, d in self.choosing.before.pins for n in nodes if p == n or fnmatchcase(n, p)]
        wanted: dict[str, Any] = {}
        for _, pattern, node, decisions in sorted(found, key=lambda one: one[0]):
            self.met.add(pattern)
            taken = ", ".join(f"{n}={v}" for n, v in decisions.items())
            self.choosing.record(Choice(node, f"kernel {name}", taken, Attrs({taken: None}), kind="pin"))
            wanted |= decisions
        return wanted

    def packs(self, node: str, name: str, constants: tuple[int, ...]) -> bool:
        """Whether the constants of a kernel, at these positions, may be laid out as its schedule wants them; recorded."""
        func, setting = self.mod[name], self.setting
        assert isinstance(func, tir.PrimFunc)
        times = {way: Later(lambda way=way: expected(func, setting, constants, packed=way == AS_SCHEDULED)) for way in (AS_SCHEDULED, AS_GIVEN)}
        return self.choosing.decide(node, f"weights of kernel {name}", times if func.root_block is not None else dict.fromkeys(times), AS_SCHEDULED,
                                    "packing", self.choosing.programs(func, *constants)) == AS_SCHEDULED

    def pinned_program(self, name: str, wanted: Attrs, node: str) -> graph.GlobalVar:
        """A copy of the program with these decisions."""
        if (name, wanted) not in self.made:
            func = self.mod[name]
            assert isinstance(func, tir.PrimFunc)
            decisions = {**(func.attrs.get("decisions") or {}), **wanted}
            marked = func.replace(attrs=func.attrs | {"decisions": decisions, PINNED_AT: f"node {node!r}"})
            self.made[name, wanted] = self.add_function(name, marked)
        return self.made[name, wanted]
