# SPDX-License-Identifier: Apache-2.0
"""Concatenations of many tensors, and tensors cut into many parts, as copies of ranges of memory (graph/programs/range_copies says which)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.programs.range_copies import begins
from ..ir import graph, tir
from ..ir.dtype import HANDLE, INT64, VOID
from .host_builder import HostBuilder, unless_empty
from .host_memory import Tensor


def concat(host: HostBuilder, value: graph.Call, var: graph.Var) -> Tensor:
    """The operands' elements one after another."""
    given = [host.tensor(host.use(f)) for f in value.args[0].fields]
    made = host.fresh(var.sinfo, var.name)
    axis, at = value.attrs["axis"] % made.buffer.ndim, tir.index_const(0)
    for tensor in given:
        shape = tensor.shape
        _copy(host, made.buffer, {axis: at}, tensor.buffer, {}, shape, axis)
        at = host.an.simplify(at + shape[axis])
    return made


def part(host: HostBuilder, value: graph.Call, var: graph.Var) -> Tensor:
    """A part of a tensor: where its elements are, if nothing is between them, or else a copy."""
    source, where = host.tensor(host.use(value.args[0])), begins(value)
    assert where is not None
    shape, inner = var.sinfo.shape, max(where, default=0)
    if all(isinstance(n, tir.IntImm) and n.value == 1 for n in shape[:inner]):
        ahead = sum((tir.product_of(source.shape[a + 1:]) * first for a, first in where.items()), tir.index_const(0))
        return host.view(source, var.sinfo, var.name, host.an.simplify(ahead * (source.buffer.dtype.storage_bits // 8)))
    made = host.fresh(var.sinfo, var.name)
    _copy(host, made.buffer, {}, source.buffer, {a: tir.index_const(first) for a, first in where.items()}, shape, inner)
    return made


def _copy(host: HostBuilder, target: tir.Buffer, to: Mapping[int, tir.Expr], source: tir.Buffer, begin: Mapping[int, tir.Expr],
          shape: Sequence[tir.Expr], axis: int) -> None:
    """Copy a part of ``shape``, row by row: from ``axis`` on its elements lie together in both."""
    at = [tir.Var(f"i{k}", INT64) for k in range(axis)]
    rest = [tir.index_const(0)] * (len(shape) - axis)
    ends = [tir.Call("address_of", (tir.BufferLoad(buffer, tuple(i + first[k] if k in first else i for k, i in enumerate([*at, *rest]))),), HANDLE)
            for buffer, first in ((target, to), (source, begin))]
    nbytes = host.an.simplify(tir.product_of(shape[axis:]) * (target.dtype.storage_bits // 8))
    out: tir.Stmt = tir.Evaluate(tir.Call("copy_bytes", (*ends, nbytes), VOID))
    for i, n in zip(reversed(at), reversed(shape[:axis]), strict=True):
        out = tir.For(i, tir.index_const(0), n, tir.ForKind.SERIAL, out)
    host.emit(unless_empty(out, tuple(shape)))
