# SPDX-License-Identifier: Apache-2.0
"""Which buffers of scope ``local`` are register tiles: those whose every index is constant.

Others are private memory: they get scope ``global``, and the reason is noted on their Allocate (``not_registers``). A
function with the attribute ``register_tiles`` insists, and gets an error that names the offending index instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from roundel.ir import Var, on, tir
from roundel.ir.annotations import NOT_REGISTERS
from roundel.ir.errors import LowerError
from roundel.ir.visit import OnceVisitor, statements, substitute

from .kernel_pass import kernel_pass
from .statements import StatementRewriter


class _Offences(OnceVisitor):
    """For each data pointer, why its memory cannot live in registers; each expression is visited once."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Var, str] = {}

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: tir.BufferLoad | tir.BufferStore) -> None:
        if access.buffer.scope == "local":
            for k, i in enumerate(access.indices):
                if not _constant(i):
                    self.found.setdefault(
                        access.buffer.data, f"index {k} of {access.buffer.name} is {i.script()}, which is not constant"
                    )
        self.generic(access)

    @on(tir.Call)
    def _call(self, call: tir.Call) -> None:
        if call.op == "address_of":
            buffer = call.args[0].buffer
            self.found.setdefault(buffer.data, f"the address of {buffer.name} is taken")
        self.generic(call)

    @on(Var)
    def _var(self, v: Var) -> None:
        self.found.setdefault(v, f"the pointer {v.name} is used")


def _constant(index: tir.Expr) -> bool:
    if type(index) is tir.Ramp:
        return _constant(index.base) and _constant(index.stride)
    return type(index) is tir.IntImm or (type(index) is tir.Broadcast and _constant(index.value))


def why_not_registers(alloc: tir.Allocate, found: Mapping[Var, str]) -> str:
    """Why the buffer cannot live in registers; empty when it can."""
    for k, dim in enumerate(alloc.buffer.shape):
        if type(dim) is not tir.IntImm:
            return f"dimension {k} of {alloc.buffer.name} is {dim.script()}, which is not constant"
    return found.get(alloc.buffer.data, "")


class _RegisterTiles(StatementRewriter):
    def __init__(self, insist: bool, found: Mapping[Var, str]) -> None:
        self.insist, self.found = insist, found

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        alloc = self.generic(alloc)
        if alloc.buffer.scope != "local":
            return alloc
        reason = why_not_registers(alloc, self.found)
        if not reason:
            return alloc
        if self.insist:
            raise LowerError(
                f"buffer {alloc.buffer.name} of scope local cannot live in registers",
                where=alloc.span,
                why=reason,
                hint="unroll the loop over that index (sch.unroll), or vectorize it, or give the buffer scope global",
            )
        data = Var(alloc.buffer.data.name, alloc.buffer.data.dtype)
        memory = alloc.buffer.replace(scope="global", data=data)
        body = substitute(alloc.body, {alloc.buffer.data: data}, {alloc.buffer: memory})
        return tir.Allocate(memory, body, alloc.annotations | {NOT_REGISTERS: reason}, alloc.span)


@kernel_pass("register_tiles")
def register_tiles(func: tir.PrimFunc) -> tir.PrimFunc:
    """Local buffers with other than constant indices become private memory, or an error where the function insists."""
    if not any(type(s) is tir.Allocate and s.buffer.scope == "local" for s in statements(func.body)):
        return func
    offences = _Offences()
    offences.visit(func.body)
    return func.replace(body=_RegisterTiles(bool(func.attrs.get("register_tiles")), offences.found).rewrite(func.body))
