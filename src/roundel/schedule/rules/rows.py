# SPDX-License-Identifier: Apache-2.0
"""Reductions along rows: sums, means, softmax, normalisations. All stages of a row run together, each in vectors.

The leading axes that all stages share are the rows; one row after another stays in the first-level cache (its reductions
in registers), and rows run in parallel.
"""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.errors import ScheduleError
from ...ir.visit import free_vars, walk
from .accesses import Access, BlockInfo, blocks_of, extent_of, product
from .applied import Applied
from .elementwise import vector_lanes
from .parallelism import parallelize

CHAINS = 4  # vectors that a reduction accumulates side by side, to hide the latency of an addition


def rows(sch: Any, target: Any) -> Applied | None:
    """Fits programs of plain blocks, some of them reductions, whose stages share leading axes."""
    infos = blocks_of(sch.func)
    if not all(i.is_plain for i in infos) or not any(i.reduce for i in infos):
        return None
    _inline_cheap(sch)
    infos = blocks_of(sch.func)
    outputs = [i for i in infos if any(a.buffer in sch.func.buffer_params for a in i.stores)]
    if len(outputs) != 1 or outputs[0] is not infos[-1]:
        return None
    count = shared_axes(infos)
    if count == 0:
        return None
    if infos[-1].reduce and _is_scalar(infos[-1], count):  # one number for a row, which is made in a register
        sch.cache_write(sch.get_block(infos[-1].name), 0, "local")
        infos = blocks_of(sch.func)
    out = sch.get_block(infos[-1].name)
    last = list(infos[-1].spatial).index(long_axes(infos[-1])[count - 1])
    loops = sch.get_loops(out)[: last + 1]
    row = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    for info in reversed(infos[:-1]):
        block = sch.get_block(info.name)
        sch.set_scope(block, 0, "local" if _is_scalar(info, count) else "global")
        sch.compute_at(block, row)
    work = 0.0
    for info in infos:
        work += info.cost * product([extent_of(a) for a in [*long_axes(info)[count:], *info.reduce]], 512) / 4
        _inside(sch, info, target, _position(sch, info, row))
    parallelize(sch, row, work)
    return Applied()


def _inline_cheap(sch: Any) -> None:
    """Inline spatial blocks that are read over their own domain, when they are cheap or read once."""
    for info in blocks_of(sch.func):
        if info.reduce or any(a.buffer in sch.func.buffer_params for a in info.stores):
            continue
        block = sch.get_block(info.name)
        users = [BlockInfo(sch.get(b)) for b in sch.get_consumers(block)]
        same = all(_volume(u) == _volume(info) for u in users)
        if users and same and (len(users) == 1 or info.cost < 4):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                continue  # stays a stage of its own


def _volume(info: BlockInfo) -> Any:
    return tuple(a.dom.extent for a in info.block.iter_vars if not _is_unit(a))


def _is_unit(axis: tir.IterVar) -> bool:
    return extent_of(axis) == 1


def shared_axes(infos: list[BlockInfo]) -> int:
    """How many leading spatial axes (those of extent 1 aside) all blocks have in common, with intermediate buffers indexed by just them."""
    axes = [long_axes(i) for i in infos]
    made = {a.buffer for i in infos for a in i.stores}
    count = min(map(len, axes))
    for k in range(count):
        if len({own[k].dom.extent for own in axes}) > 1:
            return k
        if not all(_leads(a, k, own[k].var) for i, own in zip(infos, axes, strict=True) for a in i.accesses if a.buffer in made):
            return k
    return count


def _leads(access: Access, k: int, var: tir.Var) -> bool:
    """Whether the buffer's dimension ``k``, not counting those of extent 1, is indexed by ``var``."""
    long = [i for i, n in zip(access.indices, access.buffer.shape, strict=True) if not (isinstance(n, tir.IntImm) and n.value == 1)]
    return len(long) > k and long[k] is var


def long_axes(info: BlockInfo) -> list[tir.IterVar]:
    """Spatial axes that are not of extent 1."""
    return [i for i in info.spatial if not _is_unit(i)]


def _is_scalar(info: BlockInfo, count: int) -> bool:
    return len(long_axes(info)) <= count


def _position(sch: Any, info: BlockInfo, row: Any) -> int:
    """How many loops of a block are outside the row."""
    loops = sch.get_loops(sch.get_block(info.name))
    token = sch.get(row).token
    return next(k for k, loop in enumerate(loops) if sch.get(loop).token is token) + 1


def _inside(sch: Any, info: BlockInfo, target: Any, outside: int) -> None:
    """Vectors inside a row."""
    block = sch.get_block(info.name)
    loops = sch.get_loops(block)[outside:]
    lanes = vector_lanes(info, target)
    if not loops or lanes == 1:
        return
    axis = info.block.iter_vars[-1]
    contiguous = all(a.steps(axis.var, 0) or a.steps(axis.var, 1) for a in info.accesses) and any(a.steps(axis.var, 1) for a in info.accesses)
    extent = extent_of(axis)
    if not contiguous or (extent is not None and extent < lanes // 2):
        return
    if not info.reduce:
        if info.stores[0].steps(axis.var, 1):
            sch.vectorize(sch.split(loops[-1], [None, lanes])[1])
        return
    wide = lanes * CHAINS
    width = wide if extent is None or extent % wide == 0 or extent >= 2 * wide else lanes
    _partial_sums(sch, block, loops[-1], width)


def _partial_sums(sch: Any, block: Any, loop: Any, width: int) -> None:
    """Reduce into ``width`` partial results, then across them."""
    inner = sch.split(loop, [None, width])[1]
    partial = sch.rfactor(inner, 0)
    sch.set_scope(partial, 0, "local")
    steps = next(x for x in sch.get_loops(partial) if _reduces(sch, partial, x))
    init = sch.decompose_reduction(partial, steps)
    for b in (init, partial):
        sch.vectorize(sch.get_loops(b)[-1])
    sch.vectorize(sch.get_loops(block)[-1], reassociate=True)


def _reduces(sch: Any, block: Any, loop: Any) -> bool:
    node = sch.get(block)
    realize_vars = {i.var for i in node.iter_vars if i.kind is tir.IterKind.REDUCE}
    var = sch.get(loop).loop_var
    for r in _realizes(sch.func.body, node):
        return any(var in free_vars(v) for i, v in zip(node.iter_vars, r.iter_values, strict=True) if i.var in realize_vars)
    return False


def _realizes(body: tir.Stmt, block: tir.Block) -> list[tir.BlockRealize]:
    return [n for n in walk(body) if type(n) is tir.BlockRealize and n.block is block]
