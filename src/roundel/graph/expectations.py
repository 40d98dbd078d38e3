# SPDX-License-Identifier: Apache-2.0
"""What calls of operators are expected to take: the tensor programs that they lead to are made, and strategy says what it expects of these.

It is how a pass compares algorithms and layouts. Equal programs are asked about once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..builder import make_program
from ..ir import graph
from ..ir.attrs import Attrs
from ..ir.equal import StructuralMap
from ..ir.module import IRModule
from ..strategy.expected import Setting, expected
from ..target import Target
from .constant_bytes import constant_bytes


class Expectations:
    """The answers for one model on one machine."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._of_programs = StructuralMap()
        self._of_calls: dict[Any, float] = {}

    @staticmethod
    def of(mod: IRModule) -> Expectations:
        """For the calls of a module: its target, and what its constants leave of the caches."""
        return Expectations(Setting(mod.attrs.get("target") or Target.host(), constant_bytes(mod)))

    def cycles(self, call: graph.Call, constants: Sequence[int] = ()) -> float:
        """Cycles of one core of a call whose operands are tensors of known sizes, those at the positions ``constants`` known at compile time.
        Operands may be any that have the right types (``stand_in``)."""
        fixed = tuple(constants)
        key = (call.op.name, call.attrs, tuple(a.sinfo for a in call.args), fixed)
        if key not in self._of_calls:
            program = make_program(lambda *args, **attrs: call.op.compute(args, Attrs(attrs)), call.args, dict(call.attrs))
            positions = tuple(k for k, a in enumerate(program.args) if any(a is call.args[c] for c in fixed))
            func = program.func.with_attr("constant_params", positions)  # what is constant makes a program another one
            self._of_calls[key] = self._of_programs.setdefault(func, lambda: expected(program.func, self.setting, positions))
        return self._of_calls[key]


def stand_in(shape: Sequence[int], dtype: Any = "float32") -> graph.Var:
    """An operand of this type, for calls that are only asked about."""
    return graph.Var("x", graph.TensorInfo(tuple(shape), dtype))
