# SPDX-License-Identifier: Apache-2.0
"""The tensor programs of operators' calls: a pass that asks what an algorithm would take and the one that legalizes it share what they make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ..ir import graph
from ..ir.attrs import Attrs
from .emit_te import Program, make_program

_made: ContextVar[dict[Any, tuple[Program, list[int]]] | None] = ContextVar("made", default=None)


@contextmanager
def shared_programs() -> Iterator[None]:
    """Within, equal calls of operators get one program. (For longer, what was compiled before would decide on the names in it.)"""
    token = _made.set({})
    try:
        yield
    finally:
        _made.reset(token)


def operator_program(call: graph.Call) -> Program:
    """The program of the call of an operator that has a tensor expression."""
    known = _made.get()
    operands: list[graph.GraphExpr] = []
    key = call_signature(call, operands)
    if known is not None and key in known:
        program, positions = known[key]
        return replace(program, args=tuple(operands[k] for k in positions))
    program = make_program(lambda *args, **attrs: call.op.compute(args, Attrs(attrs)), call.args, dict(call.attrs))
    if known is not None and all(any(a is o for o in operands) for a in program.args):
        known[key] = replace(program, args=()), [next(k for k, o in enumerate(operands) if o is a) for a in program.args]
    return program


def call_signature(call: graph.Call, operands: list[graph.GraphExpr]) -> Any:
    """What a call means for its program: equal signatures give equal programs. Tensors are collected as ``operands``."""
    return call.op.name, call.attrs, tuple(_signature(a, operands) for a in call.args)


def _signature(value: Any, operands: list[graph.GraphExpr]) -> Any:
    if isinstance(value, graph.Tuple):
        return tuple(_signature(v, operands) for v in value.fields)
    if isinstance(value, graph.ShapeExpr):
        return value.values
    if isinstance(value, graph.PrimValue | graph.StringValue | graph.DTypeValue):
        return value.value
    if not isinstance(value.sinfo, graph.TensorInfo):
        return value
    scalar = isinstance(value, graph.Constant) and all(n == 1 for n in value.data.shape)  # becomes a literal
    if not any(o is value for o in operands):
        operands.append(value)
    return next(k for k, o in enumerate(operands) if o is value), value.sinfo, value.data if scalar else None
