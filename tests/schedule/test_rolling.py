# SPDX-License-Identifier: Apache-2.0
"""rolling_buffer: tiles share what they have in common, in a buffer that goes round; results stay, and what would change them is refused."""

from random import Random

import numpy as np
import pytest

import roundel as rd
from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from roundel.script import parse


def cascade(n: int, m: int, steps: list[tuple[int, int]]) -> str:
    """Sums over windows, each of the one before: ``steps`` are their strides and widths, the last one first."""
    sizes = [(n, m)]
    for stride, width in steps:
        sizes.append(tuple((s - 1) * stride + width for s in sizes[-1]))
    names = ["C", *(f"B{k}" for k in range(len(steps) - 1)), "A"]
    lines = ["from roundel.script import tir as T", "@T.prim_func", f"def f(A: T.Buffer({sizes[-1]}, 'int32'), C: T.Buffer({sizes[0]}, 'int32')):"]
    lines += [f"    {names[k]} = T.alloc_buffer({sizes[k]}, 'int32')" for k in range(1, len(steps))]
    for k in reversed(range(len(steps))):
        stride, width = steps[k]
        source, target = names[k + 1], names[k]
        lines += [
            f"    for i, j, r in T.grid({sizes[k][0]}, {sizes[k][1]}, {width}):",
            f"        with T.sblock('{target}'):",
            "            vi, vj, vr = T.axis.remap('SSR', [i, j, r])",
            "            with T.init():",
            f"                {target}[vi, vj] = 0",
            f"            {target}[vi, vj] = {target}[vi, vj] + {source}[vi * {stride} + vr, vj * {stride} + vr] * (vr + 1)",
        ]
    return "\n".join(lines)


def same(func, scheduled) -> None:
    """Both programs compute the same, in the interpreter and compiled."""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(s) for s in b.shape]).astype("int32") for b in func.buffer_params]
    want, got, built = ([a.copy() for a in arrays] for _ in range(3))
    run_prim_func(func, want)
    run_prim_func(scheduled, got)
    rd.build(scheduled, target="x86-64-v3")(*built)
    for a, b, c in zip(want, got, built):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def rolled(source: str, tiles: tuple[int, int], blocks: list[str], first: bool = True):
    """The program and the schedule of it: the last block in tiles, the others computed there and rolled."""
    func = parse(source)
    sch = Schedule(func)
    i, j, _ = sch.get_loops("C")
    io, ii = sch.split(i, [None, tiles[0]])
    jo, ji = sch.split(j, [None, tiles[1]])
    sch.reorder(io, jo, ii, ji)
    for b in blocks:
        sch.compute_at(b, jo)
    for b in blocks if first else reversed(blocks):
        sch.rolling_buffer(b, 0)
    return func, sch


def test_what_is_new_in_a_tile_is_computed_once_and_the_buffer_is_as_long_as_a_tile():
    func, sch = rolled(cascade(8, 12, [(1, 3), (1, 2)]), (4, 12), ["B0"])
    text = sch.func.script()
    assert 'B0 = T.sblock_alloc_buffer((6, 14), "int32")' in text
    assert "T.axis.opaque" in text and "% 6" in text
    assert "< 1 or 2 <= " in text
    same(func, sch.func)
    assert len(sch.trace) and "rolling_buffer(block=" in str(sch.trace)
    again = Schedule(func)
    sch.trace.apply_to(again)
    assert again.func.script() == text


@pytest.mark.parametrize("seed", range(24))
def test_cascades_of_any_shape_compute_what_they_did(seed):
    random = Random(seed)
    steps = [(random.choice((1, 1, 2, 3)), random.choice((1, 2, 3, 4))) for _ in range(random.choice((2, 3)))]
    n, m = random.randrange(3, 14), random.randrange(3, 14)
    try:
        func, sch = rolled(cascade(n, m, steps), (random.randrange(1, 6), random.randrange(1, 6)), [f"B{k}" for k in range(len(steps) - 1)],
                           first=random.random() < 0.5)
    except ScheduleError as e:
        assert "cannot roll" in str(e)
        return
    assert not well_formed(sch.mod)
    same(func, sch.func)


def producer_and_consumer(between: str = "", index: str = "i * 4 + a", read: str = "t * 4 + k + r", more: str = "", kind: str = "range(3)") -> str:
    """A producer whose tiles overlap and its consumer, with variations."""
    return f"""
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((64,), "int32"), C: T.Buffer((16,), "int32"), D: T.Buffer((64,), "int32")):
    B = T.alloc_buffer((64,), "int32")
    for t in {kind}:
        for a in range(6):
            with T.sblock("B"):
                v = T.axis.spatial(64, {index.replace("i", "t")})
                {more}
                B[v] = A[v]
        {between}
        for k, r in T.grid(4, 3):
            with T.sblock("C"):
                v = T.axis.spatial(16, t * 4 + k)
                vr = T.axis.reduce(3, r)
                with T.init():
                    C[v] = 0
                C[v] = C[v] + B[{read.replace("t * 4 + k", "v").replace("r", "vr")}]
"""


def test_the_plain_case_is_taken():
    func = parse(producer_and_consumer())
    sch = Schedule(func)
    sch.rolling_buffer("B", 0)
    same(func, sch.func)


WRITES_INPUT = """with T.sblock("X"):
            vt = T.axis.spatial(3, t)
            A[vt * 4 + 5] = vt"""


@pytest.mark.parametrize(
    "source, why",
    [
        (producer_and_consumer(index="i * 8 + a"), "no dimension is tiled|may read what the tile does not have"),
        (producer_and_consumer(read="t * 4 + k + r * 3"), "may read what the tile does not have"),
        (producer_and_consumer(kind="T.parallel(3)"), "does not run in order"),
        (producer_and_consumer(between=WRITES_INPUT), "it reads A, which is stored in the same loops"),
        (producer_and_consumer(more="T.where(a < 5 or t == 1)"), "no limit of an element's place|may read"),
        (producer_and_consumer(index="(2 - i) * 4 + a", read="(2 - t) * 4 + k + r"), "steadily|read"),
    ],
    ids=["apart", "reads beyond", "parallel", "input changes", "condition", "backwards"],
)
def test_what_would_change_results_is_refused(source, why):
    with pytest.raises(ScheduleError, match=why):
        Schedule(parse(source)).rolling_buffer("B", 0)


def test_a_block_that_stands_alone_is_refused():
    sch = Schedule(parse(cascade(8, 8, [(1, 3), (1, 2)])))
    with pytest.raises(ScheduleError, match="no loop is around it and all of its consumers"):
        sch.rolling_buffer("B0", 0)
