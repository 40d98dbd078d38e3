# SPDX-License-Identifier: Apache-2.0
"""Random primitives with random arguments; what is not legal raises ScheduleError and is skipped."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from roundel.ir import PrimFunc
from roundel.ir.errors import ScheduleError
from roundel.schedule import OPEN, Schedule


class Steps:
    """Picks blocks and loops of a schedule at random and does something to them."""

    def __init__(self, func: PrimFunc, seed: int) -> None:
        self.random = Random(seed)
        self.sch = Schedule(func, seed=seed)

    def block(self):
        blocks = []
        stack = [self.sch.get_block("root")]
        while stack:
            found = self.sch.get_child_blocks(stack.pop())
            blocks += found
            stack += found
        if not blocks:
            raise ScheduleError("no blocks")
        return self.random.choice(blocks)

    def loop(self, block=None):
        loops = self.sch.get_loops(block if block is not None else self.block())
        if not loops:
            raise ScheduleError("no loops")
        return self.random.choice(loops)

    def pick(self, *options):
        return self.random.choice(options)

    def step(self) -> str:
        """One attempt; gives back the name of the primitive, or "" when it was refused."""
        name = self.random.choice(list(STEPS))
        try:
            STEPS[name](self, self.sch)
        except ScheduleError:
            return ""
        return name

    def open_split(self) -> None:
        """A split by factors that stay open, where it is legal."""
        try:
            loop = self.loop()
            if self.random.random() < 0.5:
                self.sch.split(loop, self.sch.sample_perfect_tile(loop, 2, self.pick(3, 8), decision=OPEN))
            else:
                self.sch.split(loop, [None, self.sch.sample_categorical([2, 3, 4], [1, 1, 1], decision=OPEN)])
        except ScheduleError:
            return

    def some_loops(self, count: int):
        loops = self.sch.get_loops(self.block())
        return self.random.sample(loops, min(count, len(loops)))

    def neighbours(self):
        loops = self.sch.get_loops(self.block())
        if len(loops) < 2:
            raise ScheduleError("too few loops")
        k = self.random.randrange(len(loops) - 1)
        return loops[k : k + 2]


def _block_layout(s: Steps, sch: Schedule) -> None:
    block = s.block()
    ivs = sch.get(block).iter_vars
    if len(ivs) < 2:
        raise ScheduleError("too few variables")
    k = s.random.randrange(len(ivs) - 1)
    n = ivs[k + 1].dom.extent
    sch.transform_block_layout(block, lambda *v: (*v[:k], v[k] * n + v[k + 1], *v[k + 2 :]))


def _layout(s: Steps, sch: Schedule) -> None:
    block = s.block()
    which = (s.pick("read", "write"), s.random.randrange(2))
    f = s.pick(2, 4, 8)
    maps = {
        1: lambda i: (i // f, i % f),
        2: s.pick(lambda i, j: (j, i), lambda i, j: (j // f, i, j % f)),
        3: s.pick(lambda i, j, k: (i, k, j), lambda i, j, k: (i // f, j, k, i % f)),
        4: lambda i, j, k, m: (i // f, j, k, m, i % f),
    }
    regions = sch.get(block).reads if which[0] == "read" else sch.get(block).writes
    if which[1] >= len(regions):
        raise ScheduleError("no such buffer")
    buffer = regions[which[1]].buffer
    if buffer.ndim not in maps or buffer in sch.func.buffer_params:
        raise ScheduleError("a parameter keeps its layout here")
    sch.transform_layout(block, which, maps[buffer.ndim], pad_value=0.0)


def _reindexed_copy(s: Steps, sch: Schedule) -> None:
    block = s.block()
    order = list(range(len(sch.get(block).iter_vars)))
    s.random.shuffle(order)
    copy = s.pick(sch.reindex_cache_read, sch.reindex_cache_write)
    copy(block, s.random.randrange(2), s.pick("local", "global"), lambda *i: tuple(i[k] for k in order))


STEPS: dict[str, Callable[[Steps, Schedule], object]] = {
    "split": lambda s, sch: sch.split(s.loop(), s.pick([None, 2], [None, 4], [3, None], [None, 2, 3], [None, 5])),
    "split_without_units": lambda s, sch: sch.split(s.loop(), s.pick([None, 1, 4], [1, None]), preserve_unit_iters=False),
    "balanced": lambda s, sch: sch.split(s.loop(), [None, s.pick(2, 4, 6)], mode="balanced"),
    "loop_partition": lambda s, sch: sch.loop_partition(s.loop(), s.pick([1, None], [None, 2], [2, None, 1])),
    "fuse": lambda s, sch: sch.fuse(*s.neighbours()),
    "reorder": lambda s, sch: sch.reorder(*s.some_loops(s.pick(2, 3))),
    "merge": lambda s, sch: sch.merge(s.loop(), s.loop()),
    "merge_online": lambda s, sch: sch.merge_online(s.loop(), s.loop()),
    "add_unit_loop": lambda s, sch: sch.add_unit_loop(s.pick(s.block(), s.loop())),
    "parallel": lambda s, sch: sch.parallel(s.loop()),
    "vectorize": lambda s, sch: sch.vectorize(s.loop()),
    "bind": lambda s, sch: sch.bind(s.loop(), s.pick("threadIdx.x", "blockIdx.x", "vthread.x")),
    "vectorize_sums": lambda s, sch: sch.vectorize(s.loop(), reassociate=True),
    "unroll": lambda s, sch: sch.unroll(s.loop()),
    "cache_read": lambda s, sch: sch.cache_read(s.block(), s.random.randrange(2), s.pick("local", "global")),
    "cache_write": lambda s, sch: sch.cache_write(s.block(), 0, s.pick("local", "global")),
    "cache_inplace": lambda s, sch: sch.cache_inplace(s.block(), s.random.randrange(2), s.pick("local", "global")),
    "cache_index": lambda s, sch: sch.cache_index(s.block(), s.pick("local", "global"), s.pick(0, 2)),
    "reindex": lambda s, sch: sch.reindex(s.block(), (s.pick("read", "write"), s.random.randrange(2))),
    "reindex_cache": lambda s, sch: _reindexed_copy(s, sch),
    "compute_at": lambda s, sch: sch.compute_at(s.block(), s.loop(), s.pick(False, True), s.pick(-1, -2)),
    "reverse_compute_at": lambda s, sch: sch.reverse_compute_at(s.block(), s.loop(), s.pick(False, True), s.pick(-1, -2)),
    "rolling_buffer": lambda s, sch: sch.rolling_buffer(s.block(), 0),
    "set_axis_separator": lambda s, sch: sch.set_axis_separator(s.block(), (s.pick("read", "write"), 0), [s.pick(0, 1)]),
    "compute_inline": lambda s, sch: sch.compute_inline(s.block()),
    "reverse_compute_inline": lambda s, sch: sch.reverse_compute_inline(s.block()),
    "decompose_reduction": lambda s, sch: (lambda b: sch.decompose_reduction(b, s.loop(b)))(s.block()),
    "fuse_reduction_epilogue": lambda s, sch: sch.fuse_reduction_epilogue(s.block(), s.block()),
    "drop_neutral": lambda s, sch: (lambda b: sch.drop_neutral(b, s.loop(b)))(s.block()),
    "rfactor": lambda s, sch: sch.rfactor(s.loop(), s.pick(0, 1, -1)),
    "blockize": lambda s, sch: sch.blockize(s.pick(s.loop(), s.block())),
    "blockize_together": lambda s, sch: sch.blockize([s.block() for _ in range(s.pick(1, 2, 2, 3))], s.pick(False, True)),
    "read_at": lambda s, sch: (lambda b: sch.read_at(s.loop(b), b, s.random.randrange(2), s.pick("local", "global", "shared")))(s.block()),
    "write_at": lambda s, sch: (lambda b: sch.write_at(s.loop(b), b, 0, s.pick("local", "global", "shared")))(s.block()),
    "transform_layout": lambda s, sch: _layout(s, sch),
    "transform_block_layout": lambda s, sch: _block_layout(s, sch),
    "pad_einsum": lambda s, sch: (lambda b: sch.pad_einsum(b, [s.pick(1, 2, 4) for _ in sch.get(b).iter_vars]))(s.block()),
    "decompose_padding": lambda s, sch: (lambda b: sch.decompose_padding(b, s.loop(b)))(s.block()),
    "set_scope": lambda s, sch: sch.set_scope(s.block(), 0, "local"),
}
