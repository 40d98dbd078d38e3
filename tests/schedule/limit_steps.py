# SPDX-License-Identifier: Apache-2.0
"""Primitives with arguments at their limits, and those that need a program made for them: see ``random_steps``."""

from __future__ import annotations

from collections.abc import Callable

from roundel.intrinsics import TensorIntrin
from roundel.ir import substitute, tir, walk
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Block, IterKind
from roundel.schedule import Schedule
from roundel.script import tir as T

from .random_steps import STEPS, Steps

FACTORS = ([None], [1], [1, None], [None, 1, 1], [1, 1, None, 1], [None, None], [], [99, None], [None, 99], [0, None], [None, -2], [2, 3], [3, 1, 2],
           [2, None, 1], [6], [99], [4, 2])
PARTS = ([None], [1, None], [None, 1], [1, 1, None], [0, None], [99, None], [None, -1], [2, 2], [1], [2, None, 1], [None, None], [])


def _instruction(name: str, make: Callable) -> str:
    """An instruction that is implemented by what it does."""
    TensorIntrin.register(f"test.limits.{name}", make, make, override=True)
    return f"test.limits.{name}"


@T.prim_func
def _copy(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), "int32", offset_factor=1)
    C = T.match_buffer(c, (2,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:2])
        T.writes(C[0:2])
        for i in range(2):
            with T.sblock("u"):
                vi = T.axis.spatial(2, i)
                C[vi] = A[vi]


@T.prim_func
def _more(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), "int32", offset_factor=1)
    C = T.match_buffer(c, (2,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:2])
        T.writes(C[0:2])
        for i in range(2):
            with T.sblock("u"):
                vi = T.axis.spatial(2, i)
                C[vi] = A[vi] + 1


@T.prim_func
def _dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), "int32", offset_factor=1)
    B = T.match_buffer(b, (2,), "int32", offset_factor=1)
    C = T.match_buffer(c, (1,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:2], B[0:2], C[0:1])
        T.writes(C[0:1])
        for i in range(2):
            with T.sblock("u"):
                vi = T.axis.reduce(2, i)
                C[0] = C[0] + A[vi] * B[vi]


INSTRUCTIONS = [_instruction(f.__name__, f) for f in (_copy, _more, _dot)]


def _any_loop(s: Steps):
    """A loop of any block, or the same again."""
    return s.loop(s.block())


def _tensorized(s: Steps, sch: Schedule) -> None:
    """What fits one of the instructions, mostly after a split that makes it fit."""
    block, name = s.block(), s.pick(*INSTRUCTIONS)
    loop = sch.get_loops(block)[-1:]
    if not loop:
        raise ScheduleError("no loops")
    if s.random.random() < 0.8:
        loop = sch.split(loop[0], [None, 2])[1:]
    if name == INSTRUCTIONS[2] and sch.get(block).init is not None:
        sch.decompose_reduction(block, s.loop(block))
    sch.tensorize(s.pick(loop[0], loop[0], block), name)


def _tiled(s: Steps, sch: Schedule) -> None:
    block = s.block(lambda block: block.init is not None)
    f = s.pick(2, 3)
    count = len(sch.get(block).iter_vars)
    maps = {2: lambda i, k: (i // f, k, i % f), 3: lambda i, j, k: (i // f, j // 2, k, i % f, j % 2)}
    sch.tile_einsum(block, s.random.choice(sch.get_consumers(block) or s.blocks()), s.pick(0, 1, 2), maps.get(count, lambda *i: i))


def _slid(s: Steps, sch: Schedule) -> None:
    block = s.block(lambda block: block.init is not None)
    axes, f = sch.get(block).iter_vars, s.pick(2, 3)
    slide = (0, len(axes) - 1, s.pick(1, 2), s.pick(1, 2))
    sch.slide_einsum(block, s.random.choice(sch.get_consumers(block) or s.blocks()), s.pick(0, 1, 2), lambda i, *k: (i // f, *k, i % f),
                     lambda i, *k: (i, *k[:-1]), [slide])


def _annotated(s: Steps, sch: Schedule) -> None:
    place = s.pick(s.block(), s.loop())
    sch.annotate(place, "note", s.pick(1, "text", [1, 2]))
    if s.random.random() < 0.7:
        sch.unannotate(place, "note")


def _said(s: Steps, sch: Schedule) -> None:
    """The region of a buffer is said again, or the whole buffer is said to be read."""
    block = s.block()
    kind, node = s.pick("read", "write"), sch.get(block)
    regions = node.reads if kind == "read" else node.writes
    if not regions:
        raise ScheduleError("no buffers")
    k = s.random.randrange(len(regions))
    if kind == "read" and s.random.random() < 0.5:
        sch.annotate_buffer_access(block, k, kind, lambda *v: [(0, n) for n in regions[k].buffer.shape])
        return
    named = lambda v, e: substitute(e, dict(zip((iv.var for iv in node.iter_vars), v, strict=True)))
    sch.annotate_buffer_access(block, k, kind, lambda *v: [(named(v, r.min), named(v, r.min + r.extent)) for r in regions[k].region])


def _sampled(s: Steps, sch: Schedule) -> None:
    loop = s.loop()
    way = s.pick("tile", "categorical", "knob")
    if way == "tile":
        sch.split(loop, sch.sample_perfect_tile(loop, s.pick(1, 2, 3), s.pick(1, 2, 8)))
    elif way == "categorical":
        sch.split(loop, [None, sch.sample_categorical([1, 2, 3, 99], [1, 1, 1, 1])])
    else:
        sch.split(loop, [sch.knob("outer", [2, 3]), None])


def _moved(s: Steps, sch: Schedule) -> None:
    """To any loop, and at any position there."""
    s.pick(sch.compute_at, sch.reverse_compute_at)(s.block(), _any_loop(s), s.pick(False, True), s.pick(-1, -1, -2, -3, 0, 1, 5))


def _reduces(block: Block) -> bool:
    return block.init is None and any(iv.kind is IterKind.REDUCE for iv in block.iter_vars)


def _neutral(s: Steps, sch: Schedule) -> None:
    """Iterations of a loop that reduces, after it was perhaps split."""
    block = s.block(_reduces)
    loop = s.random.choice(sch.get_loops(block)[-2:] or [s.loop()])
    if s.random.random() < 0.3:
        loop, _ = sch.split(loop, [None, 2])
    sch.drop_neutral(block, loop, s.pick(1, 1, 2))
    if s.random.random() < 0.5:
        sch.drop_unused(loop)


def _border(s: Steps, sch: Schedule) -> None:
    sch.skip_zeros(s.block(lambda block: _reduces(block) and any(type(n) is tir.IfThenElse for n in walk(block.body))))


def _where_chosen(s: Steps, sch: Schedule) -> None:
    """What a block with a choice reads is made where it is chosen."""
    choice = s.block(lambda block: any(type(n) in (tir.IfThenElse, tir.Select) for n in walk(block.body)))
    sch.only_where_chosen(s.random.choice(sch.get_producers(choice) or s.blocks()))


def _first_time(s: Steps, sch: Schedule) -> None:
    block = s.maker()
    sch.run_once(block, sch.get_loops(block)[0] if sch.get_loops(block) else s.loop())


def _chain(s: Steps, sch: Schedule) -> list:
    loops = sch.get_loops(s.block())
    begin = s.random.randrange(len(loops)) if loops else 0
    return loops[begin : begin + s.pick(1, 2, 3, 4)]


def _sought(s: Steps, sch: Schedule) -> None:
    """What only looks, and copies of the schedule."""
    block = s.block()
    sch.get_producers(block), sch.get_consumers(block), sch.get_child_blocks(block), sch.get_output_blocks("root")
    sch.can_decompose_padding(block, s.loop(block))
    s.sch = s.pick(sch.fork, sch.copy)()


LIMITS: dict[str, Callable[[Steps, Schedule], object]] = {
    "split_at_limits": lambda s, sch: sch.split(s.loop(), s.pick(*FACTORS), preserve_unit_iters=s.pick(True, False)),
    "balanced_at_limits": lambda s, sch: sch.split(s.loop(), s.pick([None, 1], [None, 99], [None, 3], [2, None], [None, 0], [None]), mode="balanced"),
    "partition_at_limits": lambda s, sch: sch.loop_partition(s.loop(), s.pick(*PARTS), s.pick(True, False)),
    "fuse_chain": lambda s, sch: sch.fuse(*_chain(s, sch), preserve_unit_iters=s.pick(True, False)),
    "fuse_any": lambda s, sch: sch.fuse(*[_any_loop(s) for _ in range(s.pick(1, 2, 2, 3))]),
    "reorder_any": lambda s, sch: sch.reorder(*[_any_loop(s) for _ in range(s.pick(1, 2, 2, 3))]),
    "reorder_chain": lambda s, sch: sch.reorder(*_chain(s, sch)[::-1]),
    "merge_any": lambda s, sch: sch.merge(*[_any_loop(s) for _ in range(s.pick(1, 2, 2, 3))]),
    "moved_anywhere": _moved,
    "decomposed_anywhere": lambda s, sch: sch.decompose_reduction(s.block(lambda b: b.init is not None), _any_loop(s)),
    "rfactor_anywhere": lambda s, sch: sch.rfactor(_any_loop(s), s.pick(0, 1, 2, -1, -2, 9)),
    "copied_at_limits": lambda s, sch: s.pick(sch.cache_read, sch.cache_write)(s.block(), s.pick(-1, 0, 0, 1, 2, 9), s.pick("local", "global", "shared")),
    "padded_at_limits": lambda s, sch: (lambda b: sch.pad_einsum(b, [s.pick(1, 1, 0, 3, 7, 99) for _ in sch.get(b).iter_vars]))(s.block()),
    "aligned_at_limits": lambda s, sch: sch.storage_align(s.block(), s.pick(-1, 0, 9), s.pick(-9, -1, 0, 9), s.pick(1, 3, 0, -4), s.pick(0, 3, -1)),
    "blockize_any": lambda s, sch: sch.blockize([s.block() for _ in range(s.pick(1, 2, 3))], s.pick(False, True)),
    "tensorize": _tensorized,
    "tile_einsum": _tiled, "slide_einsum": _slid,
    "neutral": _neutral,
    "border": _border,
    "where_chosen": _where_chosen,
    "first_time": _first_time,
    "annotate": _annotated,
    "annotate_buffer_access": _said,
    "sampled_split": _sampled,
    "sought": _sought,
}
ALL = STEPS | LIMITS
