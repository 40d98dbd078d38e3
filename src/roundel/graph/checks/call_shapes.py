# SPDX-License-Identifier: Apache-2.0
"""Calls of the tensor programs that a module comes with: as many tensors as the program has buffers, of their shapes and types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir import graph, tir
from ...ir.errors import LowerError
from ...ir.module import IRModule
from ...ir.op import CALL_TIR, CALL_TIR_WITH_GRAD
from ...ir.visit import substitute, walk
from ...passes import pass_


@pass_("call_shapes")
def call_shapes(mod: IRModule) -> IRModule:
    """The module as it is. Raises LowerError for an ``R.call_tir`` whose operands or result cannot be the buffers of its program; a kernel would
    read or write other memory, or leave a part of the result unwritten."""
    if any(isinstance(f, tir.PrimFunc) for _, f in mod.items()):
        for name, func in mod.items():
            for binding in walk(func) if isinstance(func, graph.Function) else ():
                if isinstance(binding, graph.VarBinding) and getattr(binding.value, "op", None) in (CALL_TIR, CALL_TIR_WITH_GRAD):
                    _check(mod, binding.value, str(binding.span or name))
    return mod


def _check(mod: IRModule, call: Any, where: str) -> None:
    callee = call.args[0].name
    func = mod.functions.get(callee)
    if func is None:
        raise LowerError(f"R.call_tir names {callee}, which the module does not have", where=where, why=f"it has {', '.join(mod)}")
    if not isinstance(func, tir.PrimFunc):
        raise LowerError(f"R.call_tir names {callee}, which is a graph function", where=where, hint=f"call it: cls.{callee}(x, ...)")
    operands, results = list(_flat(call.args[1].sinfo)), list(_flat(call.sinfo_args[0]))
    if not all(isinstance(i, graph.TensorInfo) for i in (*operands, *results)):
        return
    buffers = func.buffer_params
    if len(buffers) != len(operands) + len(results):
        raise LowerError(f"{callee} has {len(buffers)} buffers ({', '.join(b.name for b in buffers)})", where=where,
                         why=f"R.call_tir gives {len(operands)} operands and {len(results)} results",
                         hint="operands are the buffers that it reads, results (out_sinfo) those that it writes, in the order of its parameters")
    sizes: dict[tir.Var, tir.Expr] = {}
    for buffer, info in zip(buffers, (*operands, *results), strict=True):
        if info.dtype not in (None, buffer.dtype) or info.ndim not in (-1, buffer.ndim):
            raise _mismatch(callee, buffer, info, where)
        for dim, size in zip(buffer.shape, info.shape or (), strict=False):
            if isinstance(dim, tir.Var):
                sizes.setdefault(dim, size)
    for buffer, info in zip(buffers, (*operands, *results), strict=True):
        for dim, size in zip(buffer.shape, info.shape or (), strict=False):
            wanted = substitute(dim, sizes)
            if isinstance(wanted, tir.IntImm) and isinstance(size, tir.IntImm) and wanted.value != size.value:
                raise _mismatch(callee, buffer, info, where)


def _flat(info: Any) -> Iterator[Any]:
    if isinstance(info, graph.TupleInfo):
        for f in info.fields:
            yield from _flat(f)
    else:
        yield info


def _mismatch(callee: str, buffer: tir.Buffer, info: graph.TensorInfo, where: str) -> LowerError:
    shape = ", ".join(map(str, buffer.shape))
    return LowerError(f"buffer {buffer.name} of {callee} does not fit what R.call_tir gives for it", where=where,
                      why=f"the buffer is {buffer.dtype} ({shape}), given is {info!r}")
