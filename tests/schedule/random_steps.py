# SPDX-License-Identifier: Apache-2.0
"""Random primitives with random arguments; what is not legal raises ScheduleError and is skipped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

from roundel.ir import PrimFunc, tir, walk
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Block, IterKind
from roundel.schedule import OPEN, Schedule


class Steps:
    """Picks blocks and loops of a schedule at random and does something to them."""

    def __init__(self, func: PrimFunc, seed: int) -> None:
        self.random = Random(seed)
        self.sch = Schedule(func, seed=seed)

    def blocks(self) -> list:
        """All blocks but the root."""
        blocks, stack = [], [self.sch.get_block("root")]
        while stack:
            found = self.sch.get_child_blocks(stack.pop())
            blocks += found
            stack += found
        return blocks

    def block(self, fits: Callable[[Block], bool] = lambda block: True):
        """One of the blocks that fit, seldom any block."""
        blocks = self.blocks()
        found = [b for b in blocks if fits(self.sch.get(b))] if self.random.random() < 0.9 else blocks
        if not found:
            raise ScheduleError("no blocks")
        return self.random.choice(found)

    def maker(self):
        """A block that stores into a buffer made in the program."""
        parameters = set(self.sch.func.buffer_params)
        return self.block(lambda block: any(r.buffer not in parameters for r in block.writes))

    def loop_of(self, blocks: list, but=None):
        """A loop around one of some blocks and not around block ``but``; seldom any loop."""
        if not blocks or self.random.random() < 0.1:
            return self.loop()
        around = [] if but is None else [self.sch.get(x) for x in self.sch.get_loops(but)]
        found = [x for x in self.sch.get_loops(self.random.choice(blocks)) if self.sch.get(x) not in around]
        if not found:
            raise ScheduleError("no loops")
        return self.random.choice(found)

    def loops_beside(self):
        """The outermost loops of neighbouring blocks that are not around both, as many iterations in each where there are such."""
        blocks = self.blocks()
        pairs = []
        for a, b in pairwise(blocks):
            chains = [self.sch.get_loops(x) for x in (a, b)]
            nodes = [[self.sch.get(x) for x in c] for c in chains]
            own = [next((k for k, n in enumerate(nodes[z]) if n not in nodes[1 - z]), None) for z in (0, 1)]
            if own[0] is not None and own[0] == own[1]:
                alike = nodes[0][own[0]].extent is nodes[1][own[0]].extent
                pairs += [tuple(c[own[0]] for c in chains)] * (9 if alike else 1)
        if not pairs:
            raise ScheduleError("no loops side by side")
        return self.random.choice(pairs)

    def loop(self, block=None):
        loops = self.sch.get_loops(block if block is not None else self.block())
        if not loops:
            raise ScheduleError("no loops")
        return self.random.choice(loops)

    def pick(self, *options):
        return self.random.choice(options)

    def step(self) -> str:
        """One attempt; gives back the name of the primitive, or "" when it was refused."""
        name = self.random.choice(NAMES)
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
    block = s.maker()
    which = (s.pick("write", "write", "read"), s.pick(0, 0, 1))
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
    sch.transform_layout(block, which, maps[buffer.ndim], pad_value=s.pick(0, 0, 3, None, lambda *at: 7))


def _changes_in_place(block: Block) -> bool:
    return bool({r.buffer for r in block.reads} & {r.buffer for r in block.writes})


def _readers(s: Steps) -> list | None:
    """Some blocks that may read a copy, or what the primitive takes itself."""
    return None if s.random.random() < 0.6 else [s.block() for _ in range(s.pick(1, 2))]


def _moved(s: Steps, sch: Schedule, down: bool) -> None:
    """A block under a loop of a block that reads what it makes, or the other way round."""
    block = s.maker() if down else s.block()
    others = sch.get_consumers(block) if down else sch.get_producers(block)
    move = sch.compute_at if down else sch.reverse_compute_at
    move(block, s.loop_of(others, block), s.pick(False, True), s.pick(-1, -1, -2, 0, 1))


def _rolled(s: Steps, sch: Schedule) -> None:
    """A buffer that is made in a loop of its reader keeps what the next iteration reads again."""
    block = s.maker()
    if s.random.random() < 0.8:
        sch.compute_at(block, s.loop_of(sch.get_consumers(block), block), True)
    sch.rolling_buffer(block, 0)


def _epilogue(s: Steps, sch: Schedule) -> None:
    block = s.block(lambda block: block.init is not None)
    sch.fuse_reduction_epilogue(block, s.random.choice(sch.get_consumers(block) or s.blocks()))


def _decomposed(s: Steps, sch: Schedule) -> None:
    block = s.block(lambda block: block.init is not None)
    sch.decompose_reduction(block, s.loop(block))


def _padding_apart(s: Steps, sch: Schedule) -> None:
    block = s.block(lambda block: any(type(n) is tir.IfThenElse for n in walk(block.body)))
    if s.random.random() < 0.8:
        sch.decompose_padding(block, s.loop(block))
    else:
        sch.compute_inline(block)


def _reordered_variables(s: Steps, sch: Schedule) -> None:
    block = s.block()
    count = len(sch.get(block).iter_vars)
    sch.reorder_block_iter_var(block, s.random.sample(range(count), count))


def _reindexed_copy(s: Steps, sch: Schedule) -> None:
    block = s.block()
    order = list(range(len(sch.get(block).iter_vars)))
    s.random.shuffle(order)
    copy = s.pick(sch.reindex_cache_read, sch.reindex_cache_write)
    copy(block, s.random.randrange(2), s.pick("local", "global"), lambda *i: tuple(i[k] for k in order))


STEPS: dict[str, Callable[[Steps, Schedule], object]] = {
    "split": lambda s, sch: sch.split(s.loop(), s.pick([None, 2], [None, 4], [3, None], [None, 2, 3], [2, None, 2], [None, 5])),
    "split_without_units": lambda s, sch: sch.split(s.loop(), s.pick([None, 1, 4], [1, None]), preserve_unit_iters=False),
    "balanced": lambda s, sch: sch.split(s.loop(), [None, s.pick(2, 4, 6)], mode="balanced"),
    "loop_partition": lambda s, sch: sch.loop_partition(s.loop(), s.pick([1, None], [None, 2], [2, None, 1])),
    "fuse": lambda s, sch: sch.fuse(*s.neighbours(), preserve_unit_iters=s.pick(True, True, False)),
    "reorder": lambda s, sch: sch.reorder(*s.some_loops(s.pick(2, 3))),
    "merge": lambda s, sch: sch.merge(*s.loops_beside()),
    "merge_online": lambda s, sch: sch.merge_online(*s.loops_beside()),
    "add_unit_loop": lambda s, sch: sch.add_unit_loop(s.pick(s.block(), s.loop())),
    "parallel": lambda s, sch: sch.parallel(s.loop()),
    "vectorize": lambda s, sch: sch.vectorize(s.loop()),
    "bind": lambda s, sch: sch.bind(s.loop(), s.pick("threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread.x")),
    "vectorize_sums": lambda s, sch: sch.vectorize(s.loop(), reassociate=True),
    "unroll": lambda s, sch: sch.unroll(s.loop()),
    "cache_read": lambda s, sch: sch.cache_read(s.block(), s.random.randrange(3), s.pick("local", "global", "shared"), _readers(s)),
    "cache_write": lambda s, sch: sch.cache_write(s.block(), s.pick(0, 0, 0, 1), s.pick("local", "global", "shared"), _readers(s)),
    "cache_inplace": lambda s, sch: sch.cache_inplace(s.block(_changes_in_place), s.random.randrange(2), s.pick("local", "global")),
    "cache_index": lambda s, sch: sch.cache_index(s.block(), s.pick("local", "global"), s.pick(0, 2)),
    "reindex": lambda s, sch: sch.reindex(s.block(), (s.pick("read", "write"), s.random.randrange(2))),
    "reindex_cache": _reindexed_copy,
    "compute_at": lambda s, sch: _moved(s, sch, down=True),
    "reverse_compute_at": lambda s, sch: _moved(s, sch, down=False),
    "sampled_location": lambda s, sch: (lambda b: sch.compute_at(b, sch.sample_compute_location(b), s.pick(False, True)))(s.block()),
    "rolling_buffer": _rolled,
    "set_axis_separator": lambda s, sch: sch.set_axis_separator(s.block(), (s.pick("read", "write"), 0), [s.pick(0, 1)]),
    "storage_align": lambda s, sch: sch.storage_align(s.block(), 0, s.pick(0, -1), s.pick(4, 8), s.pick(0, 1)),
    "compute_inline": lambda s, sch: sch.compute_inline(s.maker()),
    "reverse_compute_inline": lambda s, sch: sch.reverse_compute_inline(s.block(lambda block: block.init is None)),
    "decompose_reduction": _decomposed,
    "fuse_reduction_epilogue": _epilogue,
    "drop_neutral": lambda s, sch: (lambda b: sch.drop_neutral(b, s.loop(b)))(s.block()),
    "drop_unused": lambda s, sch: sch.drop_unused(s.loop()),
    "skip_zeros": lambda s, sch: sch.skip_zeros(s.block()),
    "only_where_chosen": lambda s, sch: sch.only_where_chosen(s.block()),
    "run_once": lambda s, sch: (lambda b: sch.run_once(b, s.loop(b)))(s.block()),
    "rfactor": lambda s, sch: sch.rfactor(s.loop(s.block(lambda b: any(iv.kind is IterKind.REDUCE for iv in b.iter_vars))), s.pick(0, 1, -1)),
    "blockize": lambda s, sch: sch.blockize(s.pick(s.loop(), s.loop(), s.block()), s.pick(True, True, False)),
    "blockize_together": lambda s, sch: sch.blockize([s.block() for _ in range(s.pick(1, 2, 2, 3))], s.pick(False, True)),
    "read_at": lambda s, sch: (lambda b: sch.read_at(s.loop(b), b, s.random.randrange(2), s.pick("local", "global", "shared")))(s.block()),
    "write_at": lambda s, sch: (lambda b: sch.write_at(s.loop(b), b, s.pick(0, 0, 1), s.pick("local", "global", "shared")))(s.block()),
    "transform_layout": _layout,
    "transform_block_layout": _block_layout,
    "pad_einsum": lambda s, sch: (lambda b: sch.pad_einsum(b, [s.pick(1, 1, 2, 4, 5) for _ in sch.get(b).iter_vars]))(s.block()),
    "decompose_padding": _padding_apart,
    "reorder_block_iter_var": _reordered_variables,
    "set_scope": lambda s, sch: sch.set_scope(s.maker(), s.pick(0, 0, 1), s.pick("local", "shared")),
}

_DRAWN_MORE = (
    "compute_at reverse_compute_at compute_inline reverse_compute_inline merge rolling_buffer cache_read cache_write cache_inplace transform_layout reindex "
    "rfactor decompose_reduction fuse_reduction_epilogue pad_einsum decompose_padding blockize blockize_together read_at write_at transform_block_layout"
).split()
NAMES = [*STEPS, *_DRAWN_MORE, *_DRAWN_MORE]  # as they are drawn: what changes more of a program is tried more often, since it is refused more often
