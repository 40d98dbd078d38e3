# SPDX-License-Identifier: Apache-2.0
"""Computes an operator from its own definition: what the interpreter does for operators without a NumPy definition."""

from __future__ import annotations

from typing import Any

from roundel.builder import BlockBuilder
from roundel.ir import IRModule, graph
from roundel.ir.attrs import Attrs
from roundel.ir.errors import InterpretError
from roundel.ir.op import OpDef


def expand(op: OpDef, infos: tuple[Any, ...], attrs: Attrs) -> IRModule:
    """A module whose ``main`` takes the operator's tensors, tuples spread, and runs ``decompose`` or ``compute``.

    ``infos`` are the operands' struct infos, None for absent ones; all dimensions are numbers.
    """
    params: list[graph.Var] = []
    operands = tuple(None if i is None else _operand(i, params) for i in infos)
    bb = BlockBuilder()
    with bb.function("main", params):
        if op.has("decompose"):
            bb.emit_func_output(op.decompose(bb, tuple(graph.ABSENT if a is None else a for a in operands), attrs))
        elif op.has("compute"):
            bb.emit_func_output(bb.emit_te(lambda *a: op.compute(a, attrs), *operands))
        else:
            raise InterpretError(f"R.{op.name} cannot be run", why="it has neither numpy nor compute nor decompose")
    return bb.finalize()


def _operand(info: graph.StructInfo, params: list[graph.Var]) -> Any:
    if isinstance(info, graph.TensorInfo):
        params.append(graph.Var(f"x{len(params)}", info))
        return params[-1]
    if isinstance(info, graph.TupleInfo):
        return graph.Tuple(tuple(_operand(f, params) for f in info.fields))
    if isinstance(info, graph.ShapeInfo):
        return graph.ShapeExpr(info.values or ())
    if isinstance(info, graph.PrimInfo) and info.value is not None:
        return graph.PrimValue(info.value)
    raise InterpretError(f"an operand of an operator cannot be {info!r}")
