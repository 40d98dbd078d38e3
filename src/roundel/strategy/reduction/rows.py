# SPDX-License-Identifier: Apache-2.0
"""The strategy for reductions along the contiguous axis: sums and means of rows, softmax, normalisations.

The leading axes that all stages of the program have in common are its rows. All stages are computed for one row, in vectors along it, before
the next row begins, so that the row stays in the first-level cache and its sums in registers. Rows are computed in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.visit import free_vars, walk
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates
from ..match.accesses import Access, BlockInfo, blocks_of, extent_of, product, vector_lanes
from ..parallelism import loop_extent, parallelize
from ..partial import partial_results
from ..pointwise.streams import fetch_ahead, stream
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .stage_cycles import Stages, along, one_by_one

CHAINS = (4, 8, 2, 1)  # vectors that a reduction may accumulate side by side, to hide the latency of an addition


@rule
def rows(program: Program) -> Iterator[Sketch]:
    """Fits programs of plain blocks, some of them reductions, whose stages share leading axes."""
    if program.reductions and program.is_plain:
        yield from sketch_of_rows("rows", program.with_cheap_inlined, program.target, program.target.l2_bytes)


def sketch_of_rows(name: str, start: Schedule, target: Target, far: int, inside: int = 0) -> Iterator[Sketch]:
    """The sketch of a program of which producers are inlined already, where its stages share leading axes. ``far``: an input of so many bytes
    is taken to come from beyond the second-level cache. ``inside``: how many of the last of the shared loops run inside of the one that is
    parallel."""
    infos = blocks_of(start.func)
    outputs = [i for i in infos if any(a.buffer in start.func.buffer_params for a in i.stores)]
    if len(outputs) != 1 or outputs[0] is not infos[-1]:
        return
    count = shared_axes(infos)
    if count == 0:
        return
    sch = start.fork(seed=0)
    if infos[-1].reduce and _is_scalar(infos[-1], count):  # one number for a row, which is made in a register
        sch.cache_write(sch.get_block(infos[-1].name), 0, "local")
        infos = blocks_of(sch.func)
    yield Sketch(name, sch, partial(_scheduled, infos=infos, count=count, target=target, far=far, inside=inside), _candidates(infos, count, target))


def _scheduled(sch: Schedule, choice: dict[str, int], infos: list[BlockInfo], count: int, target: Target, far: int, inside: int) -> Applied:
    """The steps for one choice; ``count`` of the leading axes are shared by all stages."""
    out = sch.get_block(infos[-1].name)
    after = len(infos[-1].spatial) - 1 - list(infos[-1].spatial).index(long_axes(infos[-1])[count - 1])
    loops = sch.get_loops(out)
    around = loops[: len(loops) - after - inside]
    whole = sch.fuse(*around) if len(around) > 1 else around[0]
    within = loops[len(around) : len(loops) - after]
    row = within[-1] if within else whole
    for info in reversed(infos[:-1]):
        block = sch.get_block(info.name)
        sch.set_scope(block, 0, "local" if _fits_registers(info, count, target) else "global")
        sch.compute_at(block, row)
    work, pending = 0.0, None
    for info, following in zip(infos, [*infos[1:], None], strict=True):
        work += info.cost * product([extent_of(a) for a in [*long_axes(info)[count:], *info.reduce]], 512) / 4
        with_it = following if following is not None and _sums_up(following, info) else None
        pending = in_vectors(sch, info, target, _position(sch, info, row), with_it, pending, choice.get("chains"))
    fetch_ahead(sch, infos, far, target)
    stream(sch, infos[-1], row, target)
    grain = parallelize(sch, whole, work * product([loop_extent(sch, x) for x in within], 1), target)
    return Applied(sch, decisions=choice | grain)


def _candidates(infos: list[BlockInfo], count: int, target: Target) -> Candidates:
    """``chains``: how many vectors the reductions along contiguous rows accumulate side by side; cycles of all stages."""
    shared = {i.name: tuple(i.block.iter_vars.index(a) for a in long_axes(i)[:count]) for i in infos}
    stages = Stages(infos, shared, {i.stores[0].buffer for i in infos[:-1] if _fits_registers(i, count, target)})
    ways = [len(i.block.iter_vars) - 1 not in shared[i.name] and _in_vectors(i, target) for i in infos]
    reduced = [(vector_lanes(i, target), extent_of(i.block.iter_vars[-1])) for i, way in zip(infos, ways, strict=True) if way and i.reduce]
    chains = _chains(reduced) if reduced else np.ones(1, int)
    times = [along(stages, i, vector_lanes(i, target), chains, target) if way else one_by_one(stages, i, target) for i, way in zip(infos, ways, strict=True)]
    cycles = np.maximum(np.broadcast_to(sum(times), chains.shape), 1.0).astype(float)  # nothing at all where an extent is 0
    return Candidates({"chains": chains} if len(chains) > 1 else {}, cycles)


def _in_vectors(info: BlockInfo, target: Target) -> bool:
    """Whether a stage runs in vectors along its last axis: it is long enough, and contiguous in every access that moves along it."""
    axis, lanes = info.block.iter_vars[-1], vector_lanes(info, target)
    extent = extent_of(axis)
    if lanes == 1 or (extent is not None and extent < lanes // 2) or (not info.reduce and not info.stores[0].steps(axis.var, 1)):
        return False
    return all(a.steps(axis.var, 0) or a.steps(axis.var, 1) for a in info.accesses) and any(a.steps(axis.var, 1) for a in info.accesses)


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
    return [i for i in info.spatial if extent_of(i) != 1]


def _is_scalar(info: BlockInfo, count: int) -> bool:
    return len(long_axes(info)) <= count


def _fits_registers(info: BlockInfo, count: int, target: Target) -> bool:
    """Whether what a stage makes of a row is so short that half of the registers hold it."""
    length = product([extent_of(a) for a in long_axes(info)[count:]], 1 << 20)
    return length <= 1 or length <= vector_lanes(info, target) * target.vector_registers // 2


def _position(sch: Schedule, info: BlockInfo, row: Any) -> int:
    """How many loops of a block are outside the row."""
    loops = sch.get_loops(sch.get_block(info.name))
    token = sch.get(row).token
    return next(k for k, loop in enumerate(loops) if sch.get(loop).token is token) + 1


def _sums_up(info: BlockInfo, stage: BlockInfo) -> bool:
    """Whether a reduction takes in, in order, just the row that the stage before makes: both run in one loop then."""
    if stage.reduce or len(info.reduce) != 1 or not _same_extent(info.block.iter_vars[-1], stage.block.iter_vars[-1]):
        return False
    made = stage.stores[0]
    reads = [a for a in info.loads if a.buffer is made.buffer]
    return len(reads) == 1 and reads[0].indices[-1] is info.reduce[0].var and made.indices[-1] is stage.block.iter_vars[-1].var


def _same_extent(a: tir.IterVar, b: tir.IterVar) -> bool:
    return a.dom.extent is b.dom.extent


def in_vectors(sch: Schedule, info: BlockInfo, target: Target, outside: int, following: BlockInfo | None, pending: Any,
               chains: int | None = None) -> Any:
    """Vectors inside a row. A stage that the reduction ``following`` sums up is cut as that is; its loop over vectors comes back,
    and is ``pending`` when it is the reduction's turn. ``chains``: vectors side by side (default: the best for this stage)."""
    block = sch.get_block(info.name)
    loops = sch.get_loops(block)[outside:]
    lanes = vector_lanes(info, target)
    if not loops or not _in_vectors(info, target):
        return None
    if not info.reduce:
        width = lanes if following is None else lanes * (chains or chains_of(following, target))
        chunk, vector = sch.split(loops[-1], [None, width])
        sch.vectorize(vector)
        return (chunk, width) if following is not None else None
    width = pending[1] if pending is not None else lanes * (chains or chains_of(info, target))
    _partial_sums(sch, block, loops[-1], width, pending[0] if pending is not None else None)
    return None


def chains_of(info: BlockInfo, target: Target) -> int:
    """How many vectors a reduction accumulates side by side along its last axis: the model's choice for this block alone."""
    if extent_of(info.block.iter_vars[-1]) is None:
        return CHAINS[0]
    lanes, stages = vector_lanes(info, target), Stages((info,), {info.name: ()}, ())
    chains = _chains([(lanes, extent_of(info.block.iter_vars[-1]))])
    return int(chains[np.argmin(np.broadcast_to(along(stages, info, lanes, chains, target), chains.shape))])


def _chains(reduced: Sequence[tuple[int, int | None]]) -> np.ndarray:
    """What ``chains`` may be for reductions with so many lanes of such a length: one vector at least, or no more than are full."""
    return np.array([c for c in CHAINS if c == 1 or all(n is None or c * lanes <= n for lanes, n in reduced)])


def _partial_sums(sch: Schedule, block: Any, loop: Any, width: int, chunk: Any) -> None:
    """Reduce into ``width`` partial results, in the loop ``chunk`` where there is one, then across them."""
    inner = sch.split(loop, [None, width])[1]
    partial = partial_results(sch, block, inner)
    sch.set_scope(partial, 0, "local")
    steps = next(x for x in sch.get_loops(partial) if _reduces(sch, partial, x))
    if chunk is not None:
        steps = sch.merge(chunk, steps)
    init = sch.decompose_reduction(partial, steps)
    for b in (init, partial):
        sch.vectorize(sch.get_loops(b)[-1])
    sch.vectorize(sch.get_loops(block)[-1], reassociate=True)


def _reduces(sch: Schedule, block: Any, loop: Any) -> bool:
    node = sch.get(block)
    realize_vars = {i.var for i in node.iter_vars if i.kind is tir.IterKind.REDUCE}
    var = sch.get(loop).loop_var
    for r in _realizes(sch.func.body, node):
        return any(var in free_vars(v) for i, v in zip(node.iter_vars, r.iter_values, strict=True) if i.var in realize_vars)
    return False


def _realizes(body: tir.Stmt, block: tir.Block) -> list[tir.BlockRealize]:
    return [n for n in walk(body) if type(n) is tir.BlockRealize and n.block is block]
