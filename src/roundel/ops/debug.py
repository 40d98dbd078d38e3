# SPDX-License-Identifier: Apache-2.0
"""Operators for looking inside a running model: print, assert_op; and values that stand for nothing or for another device."""

from __future__ import annotations

from typing import Any

from roundel import te
from roundel.ir import graph
from roundel.ir.attrs import Attrs
from roundel.ir.errors import InterpretError
from roundel.ir.op import FuseKind, OpDef, register

PRINT = "roundel.print"  # `runtime.printing`, in compiled modules; programs in C register one of their own
NOTHING = graph.TupleInfo(())


def _fields(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@register
class Print(OpDef):
    """Prints values, in the places of ``format`` marked ``{}`` or one after another."""

    name = "print"
    operands = ("*values",)
    attributes = {"format": ""}
    pure = False

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return NOTHING

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        values = _fields(args[0])
        print(attrs["format"].format(*values) if attrs["format"] else " ".join(map(str, values)))
        return ()

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        values = args[0].fields if isinstance(args[0], graph.Tuple) else (args[0],)
        return graph.Call(graph.ExternFunc(PRINT), (graph.StringValue(attrs["format"]), *values), sinfo_args=(NOTHING,), sinfo=NOTHING)


@register
class AssertOp(OpDef):
    """Fails the call when the scalar ``condition`` is false; the message shows values in the interpreter only."""

    name = "assert_op"
    operands = ("condition", "*format_args?")
    attributes = {"format": ""}
    pure = False

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return NOTHING

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        if not bool(args[0]):
            values = _fields(args[1]) if len(args) > 1 else ()
            raise InterpretError("Assertion Failed: " + attrs["format"].format(*values) if attrs["format"] else "Assertion Failed")
        return ()


@register
class NullValue(OpDef):
    """A value that is none."""

    name = "null_value"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return graph.ObjectInfo()

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return None


@register
class ToVDevice(OpDef):
    """The tensor on another virtual device."""

    name = "to_vdevice"
    operands = ("data",)
    attributes = {"dst_vdevice": ...}
    kind = FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return args[0].replace(vdevice=attrs["dst_vdevice"])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return args[0]

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return te.compute(args[0].shape, lambda *i: args[0](*i), "moved")
