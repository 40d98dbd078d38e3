# SPDX-License-Identifier: Apache-2.0
"""What calls of operators are expected to take: the tensor programs that they lead to are made, and strategy says what it expects of these.

It is how a pass compares algorithms and layouts. Equal calls are asked about once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..builder import call_signature, operator_program
from ..ir import graph
from ..ir.module import IRModule
from ..strategy.expected import Setting, expected
from ..target import Target
from .constant_bytes import constant_bytes

CLEARLY = 1.25
"""Times that an alternative must be expected to be faster than what is usually taken: what is fused around either is not in the sums, and where schedules of
different structure were measured, what the model expects of one in comparison with the other was up to a fifth wrong."""
LESS = 1.1
"""... where nothing is fused around either."""


def is_clearly_faster(other: float | None, usual: float | None, margin: float = CLEARLY) -> bool:
    """Whether an alternative is expected to be so many times faster than what is usually taken that it takes its place; not where nothing is
    expected of one of them."""
    return other is not None and usual is not None and margin * other < usual


def is_less(one: Any, other: Any) -> bool:
    """Whether something is expected of both, and less of the one by more than what differs between sums of like kernels (`LESS`)."""
    return isinstance(one, float) and isinstance(other, float) and LESS * one < other


class Expectations:
    """The answers for one model on one machine."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._known: dict[Any, float] = {}

    @staticmethod
    def of(mod: IRModule) -> Expectations:
        """For the calls of a module: its target, and what its constants leave of the caches."""
        return Expectations(setting_of(mod))

    def cycles(self, call: graph.Call, constants: Sequence[int] = ()) -> float:
        """Cycles of one core of a call whose operands are tensors of known sizes, those at the positions ``constants`` known at compile time.
        Operands may be any that have the right types (``stand_in``)."""
        fixed = tuple(constants)
        key = (call_signature(call, []), fixed)
        if key not in self._known:
            program = operator_program(call)
            positions = tuple(k for k, a in enumerate(program.args) if any(a is call.args[c] for c in fixed))
            self._known[key] = expected(program.func, self.setting, positions)
        return self._known[key]


def setting_of(mod: IRModule) -> Setting:
    """Where the programs of a module are to run: its target, and what its constants leave of the caches."""
    return Setting(mod.attrs.get("target") or Target.host(), constant_bytes(mod))


def stand_in(name: str, shape: Sequence[int], dtype: Any = "float32") -> graph.Var:
    """An operand of this type, for calls that are only asked about."""
    return graph.Var(name, graph.TensorInfo(tuple(shape), dtype))
