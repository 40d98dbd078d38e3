# SPDX-License-Identifier: Apache-2.0
"""A scalar that an exported tensor program returns becomes a buffer without dimensions behind its parameters.

Native kernels return nothing; whoever calls the compiled function gives memory for the scalar and takes it from there. A program that others in
the module call keeps its return.
"""

from __future__ import annotations

from roundel.ir import IRModule, PrimFunc, Rewriter, Var, on, tir
from roundel.ir.dtype import HANDLE, VOID
from roundel.ir.errors import LowerError
from roundel.ir.graph import GlobalVar
from roundel.ir.visit import statements, walk
from roundel.passes import pass_

from .kernel_pass import is_kernel


@pass_("returned_values")
def returned_values(mod: IRModule) -> IRModule:
    """Exported programs that return a scalar store it instead; the attribute ``returns`` says so."""
    found = {n: f for n, f in mod.items() if is_kernel(f) and (f.ret_dtype is not VOID or "global_symbol" in f.attrs) and _returns(f)}
    if not found:
        return mod
    called = {n.op.name for f in mod.functions.values() for n in walk(f) if isinstance(n, tir.Call) and isinstance(n.op, GlobalVar)}
    return mod.with_functions({n: _stored(f, n) for n, f in found.items() if n not in called})


def _is_return(s: object) -> bool:
    return isinstance(s, tir.Evaluate) and isinstance(s.value, tir.Call) and s.value.op == "ret" and bool(s.value.args)


def _returns(func: PrimFunc) -> bool:
    return any(map(_is_return, statements(func.body)))


def _stored(func: PrimFunc, name: str) -> PrimFunc:
    values = [s.value.args[0] for s in statements(func.body) if isinstance(s, tir.Evaluate) and _is_return(s) and isinstance(s.value, tir.Call)]
    dtypes = {v.dtype for v in values} if func.ret_dtype is VOID else {func.ret_dtype}
    if len(dtypes) > 1:
        raise LowerError(f"{name} returns values of types {', '.join(sorted(dtypes))}", hint="say which it returns: def f(...) -> T.int32")
    result, handle = tir.decl_buffer((), dtypes.pop(), "result"), Var("result", HANDLE)
    body = _Storing(result).rewrite(func.body)
    return func.replace(
        params=(*func.params, handle), buffer_map=(*func.buffer_map, (handle, result)), body=body, ret_dtype=VOID, attrs=func.attrs | {"returns": True}
    )


class _Storing(Rewriter):
    def __init__(self, result: tir.Buffer) -> None:
        self.result = result

    @on(tir.Evaluate)
    def _evaluate(self, s: tir.Evaluate) -> tir.Stmt:
        if not _is_return(s) or not isinstance(s.value, tir.Call):
            return s
        value = tir.cast(s.value.args[0], self.result.dtype)
        return tir.seq(tir.BufferStore(self.result, value, (), None, s.span), tir.Evaluate(tir.Call("ret", (), VOID)))
