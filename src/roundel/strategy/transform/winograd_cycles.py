# SPDX-License-Identifier: Apache-2.0
"""What a Winograd convolution is expected to take, before it is scheduled: each of its stages as the body that its loops will have.

The transforms are straight code for a tile and a vector of channels, the products a register tile; what is computed directly instead of
a tile is rare and counts for nothing. It is the same model that judges scheduled programs (``cost.py``), so both agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir import tir
from ...target import Target
from ...target.target import L2, MEMORY
from ..cost import capacities, together, traffic, traffic_cycles, working
from ..match.accesses import BlockInfo, extent_of
from ..statements import LANES, UNROLLED, Loop, Statement, in_registers, statement_of
from .winograd_stages import Blocking, Stages, between


def winograd_cycles(infos: Sequence[BlockInfo], stages: Stages, blocking: Blocking, target: Target) -> float:
    """Cycles of one core; ``infos`` are all blocks of the program."""
    images, outer, down, across = (extent_of(a) or 1 for a in stages.result.spatial[:4])
    blocks = extent_of(stages.data.spatial[3]) or 1
    tiles = images * down * across
    before = [_straight(stages.data_columns, (0, 4), {4: stages.edge}, target), _straight(stages.data, (0, 1), {}, target)]
    before += [_straight(i, (0,), {}, target) for i in infos if i.name == stages.test[0]]
    after = [_straight(stages.result_columns, (0, 5), {}, target), _straight(stages.result, (4, 5), {}, target)]
    transforms = _repeated(before, tiles * blocks, target) + _repeated(after, tiles * outer, target) + images * down * test_cycles(stages)
    padding = [_straight(i, (), {}, target) for i in infos if i.name == stages.padding]
    transforms += _repeated(padding, images * blocks * down * stages.edge * (across * stages.tile + 2), target) if padding else 0.0
    read, made = (_bytes(a.buffer) for a in (stages.data_columns.loads[0], stages.store.stores[0]))
    weights = _bytes(stages.products.vector.buffer)
    touched = read + made + weights + between(stages, blocking)[-1]
    moved = [(read + 2 * made) * (touched > room) for room in capacities(target)]  # what is written is read before
    transforms = together(target, transforms, *traffic_cycles(target, moved))
    return float(transforms + _passed_on(stages, blocking, target) + _products(stages, blocking, images, target) + _read_again(stages, blocking, target))


def comes_again(stages: Stages, blocking: Blocking, target: Target) -> bool:
    """Whether transformed data that each step of result channels reads comes from memory every time: with the weights of a step it is more than the last cache
    keeps of what every step reads."""
    data = between(stages, blocking)[0]
    images, outer = (extent_of(stages.result.spatial[k]) or 1 for k in (0, 1))
    weights = _bytes(stages.products.vector.buffer) * blocking.channels / outer
    data //= images if blocking.apart else 1
    return blocking.first and data > target.l2_bytes and data + weights > target.l3_room * target.l3_bytes


def _read_again(stages: Stages, blocking: Blocking, target: Target) -> float:
    """Of waiting for such data in all steps but the first: short rows of lines here and there, which nothing fetches ahead."""
    if not comes_again(stages, blocking, target):
        return 0.0
    steps = -(-(extent_of(stages.result.spatial[1]) or 1) // blocking.channels)
    late = target.strided_exposed / (target.scattered_share * target.bytes_per_cycle(MEMORY))
    return (steps - 1) * between(stages, blocking)[0] * late


def _passed_on(stages: Stages, blocking: Blocking, target: Target) -> float:
    """Of waiting for lines as data and products pass from stage to stage: those that leave the first or the second cache are written to the next one,
    and those of products are read from there (what reads data again is counted with the products)."""
    data, products, block = between(stages, blocking)
    streamed = block + _bytes(stages.products.vector.buffer) * blocking.channels / (extent_of(stages.result.spatial[1]) or 1)
    beyond = target.level_of(max(block, target.l2_bytes + 1))
    spent = 0.0
    for lines, passed, is_read in ((data, block, False), (products, streamed, True)):
        far = max(0.0, 1.0 - target.l2_bytes / passed)
        near = max(0.0, 1.0 - target.l1_bytes / passed) - far
        for share, level in ((near, L2), (far, beyond)):
            spent += lines * share / target.stored_per_cycle(level)
            if is_read:
                spent += lines * share / target.bytes_per_cycle(level)
    return spent


def test_cycles(stages: Stages) -> float:
    """Of the last steps of the test of a row of tiles."""
    blocks, across = (extent_of(a) or 8 for a in (stages.data.spatial[3], stages.result.spatial[3]))
    return across * (3.0 * blocks + 40)


def _straight(info: BlockInfo, unrolled: Sequence[int], extents: Mapping[int, int], target: Target) -> Statement:
    """A block whose axes ``unrolled`` are written out and whose last one is a vector; ``extents``: of those that are cut."""
    axes = info.spatial
    loops = [Loop(k, extents.get(k) or extent_of(axes[k]) or 1, UNROLLED) for k in unrolled]
    made = _statement(info, target)
    private = {info.stores[0].buffer} if len(axes) > 6 else set()
    touches = tuple(replace(t, register=t.buffer in private) for t in made.touches)
    return replace(made, loops=(*loops, Loop(len(axes) - 1, extent_of(axes[-1]) or 1, LANES)), touches=touches)


def _statement(info: BlockInfo, target: Target) -> Statement:
    return statement_of(info.block, len(info.spatial) - 1, target)  # the axes of the result stand first


def _repeated(beside: Sequence[Statement], times: int, target: Target) -> float:
    loop = Loop("tiles", times)
    return float(working(target, [replace(s, loops=(loop, *s.loops)) for s in beside]))


def _products(stages: Stages, b: Blocking, images: int, target: Target) -> float:
    """Of the matrix products of all positions."""
    info = stages.products.info
    x, y, n, k, p, lane, rk, rc = range(8)
    outer, count = extent_of(info.spatial[3]) or 1, extent_of(info.spatial[4]) or 1
    down, across = (extent_of(a) or 1 for a in stages.result.spatial[2:4])
    rows, unroll = min(b.rows * across, count), b.unroll(stages)
    steps, panels = Loop(k, -(-outer // b.channels)), Loop(k, -(-b.channels // b.tile.vectors))
    positions, over = [Loop(x, stages.edge), Loop(y, stages.edge)], Loop(n, images)
    blocks = Loop(p, down // b.rows)
    outside = [steps, *positions, panels, over] if b.together else [over, blocks, steps, *positions, panels]
    tiles = [Loop(p, math.ceil(rows / b.tile.rows)), Loop(rk, extent_of(info.reduce[0]) or 1), Loop(rc, (extent_of(info.reduce[1]) or 1) // unroll)]
    body = [Loop(rc, unroll, UNROLLED), Loop(p, b.tile.rows, UNROLLED), Loop(k, b.tile.vectors, UNROLLED), Loop(lane, b.tile.lanes, LANES)]
    packed = lambda x: replace(x, operand=replace(x.operand, is_packed=True))  # panels of weights, and data whose positions are an odd number of lines apart
    made = in_registers(_statement(info, target))
    made = replace(made, loops=(*outside, *tiles, *body), touches=tuple(map(packed, made.touches)))
    moved = traffic(target, replace(made, result=None), gradual=True)  # (products are passed on)
    return float(together(target, working(target, [made]), *traffic_cycles(target, moved or [])))


def _bytes(buffer: tir.Buffer) -> float:
    return math.prod(n.value if isinstance(n, tir.IntImm) else 1 for n in buffer.shape) * buffer.dtype.storage_bits / 8
