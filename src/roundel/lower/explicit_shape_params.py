# SPDX-License-Identifier: Apache-2.0
"""Shape variables that only the buffers' shapes bind become explicit trailing int64 parameters.

    def f(A: T.Buffer((n, 4 * m), ...), B: ...)   ->   def f(A, B, n: int64, m: int64)

Callers hand over compact tensors, so free variables of the parameters' strides and offsets get their compact values.
"""

from __future__ import annotations

from roundel.ir import Var, free_vars, tir
from roundel.ir.visit import substitute

from .kernel_pass import kernel_pass


def shape_params(func: tir.PrimFunc) -> tuple[Var, ...]:
    """The parameters that the pass appends, in order of first appearance in the buffers' shapes (then in the body)."""
    found: dict[Var, None] = {}
    known = set(func.params)
    for buffer in func.buffer_params:
        for dim in buffer.shape:
            for v in sorted(free_vars(dim) - known, key=lambda v: v.name):
                found[v] = None
    return tuple(found)


def _compact(buffer: tir.Buffer) -> dict[Var, tir.Expr]:
    """Values of the stride and offset variables of a compact tensor."""
    values: dict[Var, tir.Expr] = {}
    for k, stride in enumerate(buffer.strides):
        if type(stride) is Var:
            values[stride] = tir.product_of(buffer.shape[k + 1 :])
    if type(buffer.elem_offset) is Var:
        values[buffer.elem_offset] = tir.index_const(0)
    return values


def as_sizes(func: tir.PrimFunc, variables: tuple[Var, ...]) -> tir.PrimFunc:
    """The function with these variables marked as sizes, which ``te.var`` does not do."""
    plain = {v: Var(v.name, v.dtype, True) for v in variables if not v.size}
    return substitute(func, plain) if plain else func


@kernel_pass("explicit_shape_params")
def explicit_shape_params(func: tir.PrimFunc) -> tir.PrimFunc:
    """``f(A[n, m])`` becomes ``f(A[n, m], n, m)``."""
    own = set(func.params) | set(shape_params(func))
    layout = {v: e for b in func.buffer_params for v, e in _compact(b).items() if v not in own}
    if layout:
        func = substitute(func, layout)
    func = as_sizes(func, shape_params(func))
    extra = shape_params(func)
    return func.replace(params=(*func.params, *extra)) if extra else func
