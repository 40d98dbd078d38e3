# SPDX-License-Identifier: Apache-2.0
"""Matrices that a batch of products shares are not repeated for each of them: ``matmul(x, broadcast_to(w))`` becomes ``matmul(x, w)``.

PyTorch decomposes a linear layer of operands that are not contiguous, as within recurrent layers, into products of copies. It is a pass of its own
before constants are folded, which would make the copies.
"""

from __future__ import annotations

from typing import Any

from ...ir import graph
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import static
from ...passes import pass_
from ..pattern import Match, PatternRewriter, is_op, wildcard
from ..rewriter import is_call, may_call

x, y = wildcard(), wildcard()
_product = is_op("matmul")(x, y)


@pass_("shared_operands")
def shared_operands(mod: IRModule) -> IRModule:
    """Right operands of products that are one matrix, repeated along dimensions of the left one's batch, become that matrix."""
    return PatternRewriter(mod, [(_product, _once)]).module() if may_call(mod, ["broadcast_to"]) else mod


def _once(m: Match) -> Any:
    call, left = m.call(_product), m[x].sinfo
    if left.shape is None or left.ndim < 3 or call.sinfo.shape is None or left.shape[:-2] != call.sinfo.shape[:-2]:
        return None
    matrix = _matrix(m, m[y])
    return None if matrix is None else make("matmul", m[x], matrix, **dict(call.attrs))


def _matrix(m: Match, value: Any) -> Any:
    """The matrix, of two dimensions, that the value repeats; None where it repeats none."""
    made = m.lookup(value)
    while is_call(made, "reshape") and made.args[0].sinfo.shape is not None and made.args[0].sinfo.shape[-2:] == value.sinfo.shape[-2:]:
        made = m.lookup(made.args[0])
    if not is_call(made, "broadcast_to"):
        return None
    narrow = made.args[0].sinfo
    if narrow.shape is None or narrow.ndim < 2 or narrow.shape[-2:] != value.sinfo.shape[-2:] or any(static(n) != 1 for n in narrow.shape[:-2]):
        return None
    if all(static(n) == 1 for n in value.sinfo.shape[:-2]):
        return None
    return made.args[0] if narrow.ndim == 2 else make("reshape", made.args[0], graph.ShapeExpr(tuple(narrow.shape[-2:])))
