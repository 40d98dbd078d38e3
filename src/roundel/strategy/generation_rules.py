# SPDX-License-Identifier: Apache-2.0
"""Generation rules to begin with (see ``generation``): each looks at one block and leaves to others what it has nothing to say about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..intrinsics import TensorIntrin
from ..ir import tir
from ..ir.errors import OptionError, ScheduleError
from ..ir.visit import statements
from ..schedule.schedule import Schedule
from .generation import Generation


def auto_inline(sch: Schedule, block: Any) -> Schedule | None:
    """An elementwise block becomes part of the blocks that read its result, or of the one that makes its only operand."""
    if _reduces(sch, block):
        return None
    for inline in (sch.compute_inline, sch.reverse_compute_inline):
        try:
            inline(block)
        except ScheduleError:
            continue
        return sch
    return None


def multi_level_tiling(structure: str = "SSRSRS", most_innermost: int = 64, write: bool = True, unroll: bool = True) -> Generation:
    """A reduction in tiles of several levels: in ``structure`` each S is a level of all its spatial loops, each R one of all its reduction loops,
    outermost first. With ``write`` the result of the tile below the second S is kept in registers and stored by a block of its own, with ``unroll`` all
    but the last loop of the last level are written out. The outermost loops run in parallel, the last one in vectors. Raises OptionError."""
    if set(structure) - set("SR") or not structure.startswith("SS") or "R" not in structure or not structure.endswith("S"):
        raise OptionError(f"tiling cannot have the structure {structure!r}", hint="S and R, beginning with SS and ending with S: SSRSRS")

    def tile(sch: Schedule, block: Any) -> Schedule | None:
        kinds = [iv.kind for iv in sch.get(block).iter_vars]
        loops = sch.get_loops(block)
        if not _reduces(sch, block) or len(loops) != len(kinds):
            return None
        levels: list[list[Any]] = [[] for _ in structure]
        for loop, kind in zip(loops, kinds, strict=True):
            own = [k for k, letter in enumerate(structure) if (letter == "R") == (kind is tir.IterKind.REDUCE)]
            factors = sch.sample_perfect_tile(loop, n=len(own), max_innermost_factor=most_innermost)
            for k, part in zip(own, sch.split(loop, factors), strict=True):
                levels[k].append(part)
        sch.reorder(*(x for level in levels for x in level))
        if write:
            _store_apart(sch, block, levels[1][-1])
        sch.parallel(sch.fuse(*levels[0]) if len(levels[0]) > 1 else levels[0][0])
        init = sch.decompose_reduction(block, next(level for level, letter in zip(levels, structure, strict=True) if letter == "R")[0])
        sch.vectorize(sch.get_loops(init)[-1])
        for loop in levels[-1][:-1] if unroll else ():
            sch.unroll(loop)
        sch.vectorize(levels[-1][-1])
        return sch

    return tile


def cache_write(scope: str = "local") -> Generation:
    """The result of a reduction goes to memory of ``scope`` first, and is copied from there once it is complete."""
    def cached(sch: Schedule, block: Any) -> Schedule | None:
        if not _reduces(sch, block):
            return None
        sch.cache_write(block, 0, scope)
        return sch

    return cached


def partial_sums(lanes: int = 0) -> Generation:
    """A reduction over its last loop in parts that are reduced side by side, then together: with ``lanes`` in so many lanes of vectors, else in
    parallel by several threads. The block as it was is a way to go, too."""
    def apart(sch: Schedule, block: Any) -> Iterator[Schedule]:
        kinds = [iv.kind for iv in sch.get(block).iter_vars]
        loops = sch.get_loops(block)
        if not _reduces(sch, block) or len(loops) != len(kinds) or kinds[-1] is not tir.IterKind.REDUCE:
            return
        yield sch.fork(seed=0)
        if lanes:
            _, part = sch.split(loops[-1], [None, lanes])
            made = sch.rfactor(part, len(loops) - kinds.count(tir.IterKind.REDUCE))
            sch.vectorize(sch.get_loops(made)[-1])
        else:
            part, _ = sch.split(loops[-1], sch.sample_perfect_tile(loops[-1], n=2, max_innermost_factor=1 << 20))
            made = sch.rfactor(part, 0)
            own = sch.get_loops(made)
            at = next(k for k, loop in enumerate(own) if sch.get(loop).loop_var is sch.get(part).loop_var)
            sch.reorder(own[at], *own[:at])
            sch.parallel(own[at])
        yield sch

    return apart


def packed_operand(buffer: int, width: int, axis: int = -1) -> Generation:
    """A copy of operand ``buffer`` (its position among those that a reduction reads) in panels: ``width`` neighbours along ``axis`` lie side by side,
    whatever the other dimensions are. The block as it was is a way to go, too."""
    def pack(sch: Schedule, block: Any) -> Iterator[Schedule]:
        if not _reduces(sch, block) or buffer >= len(sch.get(block).reads):
            return
        yield sch.fork(seed=0)
        rank = sch.get(block).reads[buffer].buffer.ndim
        at = axis % rank
        copy = sch.cache_read(block, buffer, "global")
        panels = tir.IndexMap.from_func(lambda *i: (i[at] // width, *(x for k, x in enumerate(i) if k != at), i[at] % width), rank)
        sch.transform_layout(copy, ("write", 0), panels, pad_value=0)
        yield sch

    return pack


def tensorized(intrinsic: str) -> Generation:
    """The innermost part of a reduction as an instruction, by its name: the last loops are cut to the extents of its description. Other blocks stay as
    they are. Raises OptionError for a name that is not registered."""
    description = TensorIntrin.get(intrinsic).desc
    extents = [loop.extent for loop in statements(description.body) if type(loop) is tir.For]

    def replaced(sch: Schedule, block: Any) -> Schedule | None:
        loops = sch.get_loops(block)
        if not _reduces(sch, block) or len(loops) < len(extents):
            return None
        outer, inner = loops[: len(loops) - len(extents)], list[Any]()
        for loop, extent in zip(loops[len(outer) :], extents, strict=True):
            around, part = sch.split(loop, [None, extent])
            outer, inner = [*outer, around], [*inner, part]
        sch.reorder(*outer, *inner)
        first = next(k for k, iv in enumerate(sch.get(block).iter_vars) if iv.kind is tir.IterKind.REDUCE)
        sch.decompose_reduction(block, outer[min(first, len(outer) - 1)])
        sch.tensorize(inner[0], intrinsic)
        return sch

    return replaced


def _reduces(sch: Schedule, block: Any) -> bool:
    return any(iv.kind is tir.IterKind.REDUCE for iv in sch.get(block).iter_vars)


def _store_apart(sch: Schedule, block: Any, at: Any) -> None:
    """Keep the result of a tile in registers: an elementwise block that reads it stores it, or else a copy does."""
    readers = sch.get_consumers(block)
    if len(readers) == 1 and not _reduces(sch, readers[0]):
        sch.set_scope(block, 0, "local")
        last = readers[0]
    else:
        last = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(last, at, preserve_unit_loops=True)  # so that all candidates have the same loops
    sch.vectorize(sch.get_loops(last)[-1])
