# SPDX-License-Identifier: Apache-2.0
"""Without a thread hierarchy, thread-bound loops run one after another, and those over blocks of threads in parallel.

A program with barriers needs its threads at the same time, which this pass refuses.
"""

from __future__ import annotations

from roundel.ir import on, tir
from roundel.ir.errors import LowerError

from .kernel_pass import kernel_pass
from .statements import StatementRewriter

_BARRIERS = ("storage_sync", "tvm_storage_sync")


class _SerialThreads(StatementRewriter):
    def __init__(self) -> None:
        self.inside = False

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        if loop.kind is not tir.ForKind.THREAD_BINDING:
            return self.generic(loop)
        parallel = (loop.thread or "").startswith("blockIdx") and not self.inside
        self.inside, outside = True, self.inside
        body = self.rewrite(loop.body)
        self.inside = outside
        return loop.replace(kind=tir.ForKind.PARALLEL if parallel else tir.ForKind.SERIAL, thread=None, body=body)

    @on(tir.Evaluate)
    def _evaluate(self, stmt: tir.Evaluate) -> tir.Stmt:
        if type(stmt.value) is tir.Call and stmt.value.op in _BARRIERS:
            raise LowerError(
                "a barrier among threads cannot be lowered for a processor without a thread hierarchy",
                where=stmt.span,
                hint="schedule the program for the CPU (parallel loops instead of thread bindings)",
            )
        return stmt


@kernel_pass("serial_threads")
def serial_threads(func: tir.PrimFunc) -> tir.PrimFunc:
    """Thread-bound loops become serial and parallel loops."""
    return func.replace(body=_SerialThreads().rewrite(func.body))
