# SPDX-License-Identifier: Apache-2.0
"""The blocks of attention by role: a product, elementwise blocks, the stages of a softmax, a product, elementwise blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import tir
from ...ir.dataclass import dataclass
from ..match.accesses import Access, BlockInfo


@dataclass(frozen=True)
class Stages:
    """The blocks; operands of the two products; the axes of the first that move rows and keys and its reduction, of the second that moves
    columns; the axes of the result that are rows and columns. ``store`` is what the maximum reads (``scores`` if nothing is between)."""

    scores: BlockInfo
    store: BlockInfo
    top: BlockInfo
    exps: BlockInfo
    total: BlockInfo
    share: BlockInfo
    weighted: BlockInfo
    result: BlockInfo
    queries: Access
    keys: Access
    values: Access
    row: tir.IterVar
    key: tir.IterVar
    inner: tir.IterVar
    column: tir.IterVar
    result_row: tir.IterVar
    result_column: tir.IterVar

    @property
    def causal(self) -> bool:
        """Whether each row attends only to the keys up to a limit that depends on the row: a condition makes the exponentials of the others zero."""
        value = self.exps.block.body.value
        return type(value) is tir.Select and value.condition.is_index and type(value.false_value) is tir.FloatImm and value.false_value.value == 0


def _makers(infos: Sequence[BlockInfo]) -> dict[tir.Buffer, BlockInfo]:
    return {a.buffer: i for i in infos for a in i.stores}


def kept(infos: Sequence[BlockInfo]) -> list[str] | None:
    """Names of the blocks without a reduction that are not inlined: scores, their exponentials, reciprocals of the sums. None where the program is
    not attention."""
    if not all(i.is_plain for i in infos) or [len(i.reduce) for i in infos if i.reduce] != [1, 1, 1, 1]:
        return None
    makers = _makers(infos)
    _, top, total, weighted = (i for i in infos if i.reduce)
    store, exps = (next((makers[a.buffer] for a in i.loads if a.buffer in makers), None) for i in (top, total))
    if store is None or exps is None or exps.reduce or not _reads(weighted, exps) or not _reads(exps, top):
        return None
    share = next((i for i in infos if not i.reduce and _reads(i, total)), None)
    return None if share is None else [i.name for i in (store, exps, share)]


def _reads(info: BlockInfo, made: BlockInfo) -> bool:
    return any(a.buffer is made.stores[0].buffer for a in info.loads)


def find(infos: list[BlockInfo]) -> Stages | None:
    """The stages, once all other blocks are inlined; None where other stages are left."""
    scores, top, total, weighted = (i for i in infos if i.reduce)
    makers, result = _makers(infos), infos[-1]
    store, exps = makers.get(top.loads[0].buffer), makers.get(total.loads[0].buffer)
    share = next((i for i in infos if not i.reduce and _reads(i, total)), None)
    if store is None or exps is None or share is None or not _reads(result, weighted) or not _reads(result, share) or result is share:
        return None
    if len(infos) != len({i.name for i in (scores, store, top, exps, total, share, weighted, result)}):
        return None
    first, second = _roles(scores), _roles(weighted)
    if first is None or second is None or second.left.buffer is not exps.stores[0].buffer:
        return None
    made = next(a for a in result.loads if a.buffer is weighted.stores[0].buffer)
    axes = {a.var: a for a in result.spatial}
    row, column = (axes.get(i) for i in made.indices[-2:])
    for access, axes in ((first.left, (first.row, first.inner)), (first.right, (first.column, first.inner)), (second.right, (second.inner, second.column))):
        if not all(a.var in access.indices for a in axes):
            return None
    if row is None or column is None or not result.stores[0].steps(column.var, 1):
        return None
    if not second.right.steps(second.column.var, 1):
        return None  # keys may lie in any order: they are read one by one
    return Stages(scores, store, top, exps, total, share, weighted, result, first.right, first.left, second.right,
                  first.column, first.row, first.inner, second.column, row, column)


@dataclass(frozen=True)
class _Roles:
    """The roles of a product's operands and axes."""

    left: Access
    right: Access
    row: tir.IterVar
    column: tir.IterVar
    inner: tir.IterVar


def _roles(info: BlockInfo) -> _Roles | None:
    """A product of which the last two axes of the result are rows, which move one operand, and columns, which move the other."""
    value, loads, store = info.block.body.value, info.loads, info.stores[0]
    if type(value) is not tir.Add or len(loads) != 2 or len(store.indices) < 2:
        return None
    term = value.b if type(value.a) is tir.BufferLoad and value.a.buffer is store.buffer else value.a
    axes = {a.var: a for a in info.spatial}
    row, column = (axes.get(i) for i in store.indices[-2:])
    if type(term) is not tir.Mul or row is None or column is None:
        return None
    for left, right in (loads, loads[::-1]):
        if left.steps(column.var, 0) and right.steps(row.var, 0) and not left.steps(row.var, 0) and not right.steps(column.var, 0):
            return _Roles(left, right, row, column, info.reduce[0])
    return None
