# SPDX-License-Identifier: Apache-2.0
"""What memory decides: whether blocks run, how often, and where they store. Whoever makes, moves or drops that memory asks for it."""

from __future__ import annotations

import pytest

from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import parse

from .test_irregular import BOX, MADE, ROW, nest, program, reader
from .test_moved_and_copied import accepts

ONE = ("for i in range(4):",)
WAYS_TO_ASK = {  # a block that runs, or stores, where B says so
    "predicate": nest(ROW.replace("S[v]", "T.where(B[i, 1] > 0)\n    S[v]"), *ONE),
    "condition": nest(ROW, *ONE, "if B[i, 1] > 0:"),
    "bound": nest(ROW.replace("spatial(4, i)", "spatial(4, i + j * 0)"), *ONE, "for j in range(T.Cast('int64', B[i, 1]) % 2):"),
    "place": nest(ROW.replace("S[v]", "S[T.Cast('int64', B[v, 1]) % 4]"), *ONE),
}
TOTAL = """
with T.sblock("B"):
    v, w, k = T.axis.remap("SSR", [i, j, r])
    with T.init():
        B[v, w] = 0
    B[v, w] = B[v, w] + A[v, k]
"""
SUMMED = nest(TOTAL, *BOX, "for r in range(4):")


@pytest.mark.parametrize("ask", WAYS_TO_ASK)
def test_what_decides_is_not_moved_behind_the_question(ask):
    func = program(MADE + reader("B[v, w]") + WAYS_TO_ASK[ask])
    assert not accepts(func, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))
    before = program(MADE + WAYS_TO_ASK[ask] + reader("B[v, w]"))
    assert not accepts(before, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))


@pytest.mark.parametrize("ask", WAYS_TO_ASK)
def test_what_decides_is_not_dropped(ask):
    """The sum B becomes a part of C; but something else needs it."""
    func = program(SUMMED + reader("B[v, w] + A[w, v]") + WAYS_TO_ASK[ask])
    assert not accepts(func, lambda sch: sch.fuse_reduction_epilogue("B", "C"))
    assert accepts(program(SUMMED + reader("B[v, w] + A[w, v]")), lambda sch: sch.fuse_reduction_epilogue("B", "C"))


@pytest.mark.parametrize("ask", ["predicate", "condition", "place"])
def test_what_decides_is_all_computed(ask):
    """C uses B where A is positive; something else asks for the rest."""
    chosen = reader("T.if_then_else(A[v, w] > 0, B[v, w], 0)")
    assert not accepts(program(MADE + chosen + WAYS_TO_ASK[ask]), lambda sch: sch.only_where_chosen("B"))
    assert accepts(program(MADE + chosen), lambda sch: sch.only_where_chosen("B"))


@pytest.mark.parametrize("choice, taken", [("A[v, w]", True), ("A[v, w // 4]", True), ("A[v, w + I[0]]", False)])
def test_what_is_chosen_can_be_asked_everywhere(choice, taken):
    """(I[0] may be anything where C does not run.)"""
    func = program(MADE + reader(f"T.if_then_else({choice} > 0, B[v, w], 0)"))
    assert accepts(func, lambda sch: sch.only_where_chosen("B")) == taken or not taken


def test_a_result_does_not_choose_itself():
    func = program(MADE + reader("B[v, w]").replace("C[v, w] =", "T.where(B[0, 0] > 0)\n            C[v, w] ="))
    assert not accepts(func, lambda sch: sch.only_where_chosen("B"))


SUM = """
with T.sblock("S"):
    v = T.axis.spatial(4, i)
    k = T.axis.reduce(4, j)
    T.where({})
    with T.init():
        S[v] = 0
    S[v] = S[v] + A[v, k]
"""


def in_one_loop(*blocks: str) -> str:
    """Nests in a loop i of four iterations."""
    return ONE[0] + "\n" + "".join(f"    {line}\n" for block in blocks for line in block.strip().splitlines())


STORE_A = 'with T.sblock("D"):\n    v = T.axis.spatial(4, i)\n    A[v, 0] = 0 - A[v, 0]\n'


@pytest.mark.parametrize("start, condition, taken", [
    ("T.int32(0)", "", True),
    ("A[v, 1]", "", False),
    ("T.int32(0)", "T.where(A[0, 0] > 0)", False),
])  # fmt: skip
def test_an_init_is_not_before_what_it_asks(start, condition, taken):
    """Another block of the loop stores A: the reduction adds rows of C."""
    block = f"""
for j in range(4):
    with T.sblock("S"):
        v = T.axis.spatial(4, i)
        k = T.axis.reduce(4, j)
        {condition or 'T.where(i < 4)'}
        with T.init():
            S[v] = {start}
        S[v] = S[v] + C[v, k]
"""
    func = program(in_one_loop(STORE_A, block))
    assert accepts(func, lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[0])) == taken
    assert accepts(func, lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[1]))


PLACE = 'with T.sblock("D"):\n    v = T.axis.spatial(4, i)\n    I[{0}] = T.Cast("int64", v)\n'
THERE = 'with T.sblock("E"):\n    v = T.axis.spatial(4, i)\n    C[T.Cast("int64", I[0]) % 4, {1}] = A[v, 0]\n'


@pytest.mark.parametrize("at, taken", [("0", False), ("v", False)])
def test_a_place_that_changes_is_anywhere(at, taken):
    """Every iteration stores into C where I[0] says, and changes it (or its own I)."""
    func = program(in_one_loop(PLACE.format(at), THERE.replace("{1}", "v")))
    assert accepts(func, lambda sch: sch.parallel(sch.get_loops("E")[0])) == taken
    steady = program(in_one_loop(THERE.replace("{1}", "v")))
    assert accepts(steady, lambda sch: sch.parallel(sch.get_loops("E")[0]))


@pytest.mark.parametrize("axes, value, taken", [('v, w = T.axis.remap("SS", [i, j])', "A[v, 0]", False), ("w = T.axis.spatial(4, j)", "A[w, 0]", True)])
def test_a_block_runs_when_what_it_reads_is_there_to_stay(axes, value, taken):
    """Each iteration stores the whole of S again: C reads of it what the last one stores."""
    make = f"""
for j in range(4):
    with T.sblock("B"):
        v, w = T.axis.remap("SS", [i, j])
        B[v, w] = A[v, w] + 1
for j in range(4):
    with T.sblock("S"):
        {axes}
        S[w] = {value}
"""
    func = program(in_one_loop(make) + reader("B[v, w] + S[w]"))
    assert accepts(func, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])) == taken


COPY_ONCE = 'with T.sblock("B"):\n    v, w = T.axis.remap("SS", [i, j])\n    B[{0}, w] = A[v, w]\n'
USED = 'with T.sblock("C"):\n    v, w = T.axis.remap("SS", [i, j])\n    C[v, w] = C[v, w] + B[{0}, w]\n'


def repeated(*around: str, last: str = "for j in range(4):", at: str = "v", kind: str = "") -> str:
    """B, and C that reads it, in a loop t that repeats them."""
    lines = ["for t in range(2):", *around]
    depth = len(lines)
    text = "".join(f"{'    ' * k}{line}\n" for k, line in enumerate(lines))
    for block in (COPY_ONCE.format(at), USED.format(at)):
        text += "".join(f"{'    ' * depth}{line}\n" for line in [last, *(f"    {x}" for x in block.strip().splitlines())])
    return text


@pytest.mark.parametrize("text, taken", [
    (repeated("for i in range(4):"), True),
    (repeated("for i in range(4):", at="0"), False),
    (repeated("for i in range(4):", last="for j in range(t + 1):"), False),
    (repeated("for i in T.parallel(4):"), False),
    (repeated("for i in range(4):", "if C[0, 0] > 0:"), False),
])  # fmt: skip
def test_what_runs_once_lasts(text, taken):
    """In t's first iteration: not where another i stores the same row, t says how long a row is, each i has a B of its own, or a condition decides."""
    assert accepts(program(text), lambda sch: sch.run_once("B", sch.get_loops("B")[0])) == taken


@pytest.mark.parametrize("text, taken", [
    (nest(ROW.replace("S[v]", "T.where(S[i] > 0)\n    S[v]"), "for t in range(5):", "for i in range(4):"), True),
    (nest(ROW.replace("S[v]", "T.where(S[i] > 0)\n    S[v]"), "for t in range(4):", "for i in range(t, t + 1):"), True),
    (nest(ROW.replace("S[v]", "T.where(S[i] > 0)\n    S[v]"), "for t in range(4):", "for i in range(t + 1):"), True),
    (nest(ROW, "for t in range(4):", "for i in range(T.Cast('int64', S[t]) % 4):"), True),
])  # fmt: skip
def test_a_loop_is_not_split_where_more_would_be_asked(text, taken):
    """t by 2, which divides 4 and not 5; by 3 S would be asked for its fifth element, but where t does not decide."""
    func = program(text)
    assert accepts(func, lambda sch: sch.split(sch.get_loops("S")[0], [None, 2])) == taken
    assert accepts(func, lambda sch: sch.split(sch.get_loops("S")[0], [None, 3])) == ("range(5)" in text)


@pytest.mark.parametrize("condition, loops, taken", [
    ("j * 2 + i < 8", BOX, True),
    ("(i + j * 3) // 3 < 3", ("for i in range(4):", 'for u in T.thread_binding(1, thread="threadIdx.x"):', "for j in range(3):"), True),
    ("j < 4", ("for i in range(4):", "for j in range(i + 1):"), False),
    ("S[j] > 0", BOX, False),
])  # fmt: skip
def test_partial_results_have_the_conditions_of_their_variables(condition, loops, taken):
    func = program(nest(SUM.format(condition), *loops))
    assert accepts(func, lambda sch: sch.rfactor(sch.get_loops("S")[-1], 0)) == taken


def test_a_condition_on_a_loop_around_other_statements_too():
    """The sum of S knows of i by v alone; its condition asks for i."""
    func = program(in_one_loop(STORE_A, "for j in range(3):\n" + "".join(f"    {line}\n" for line in SUM.format("j + i < 6").strip().splitlines())))
    accepts(func, lambda sch: sch.rfactor(sch.get_loops("S")[1], 0))  # (taken or not, its result is what it was)


def test_loops_under_a_condition_merge_or_say_why_not():
    """The condition asks for what the other loop stores."""
    first = nest(ROW, "for i in range(4):", "if C[i, 0] > 0:")
    second = nest(ROW.replace('"S"', '"D"').replace("S[v] = A[v, 0]", "C[v, 1] = A[v, 2]"), "for i in range(4):")
    for text, order in ((first + second, ("S", "D")), (second + first, ("D", "S"))):
        accepts(program(text), lambda sch, order=order: sch.merge(*(sch.get_loops(name)[0] for name in order)))


TOLD = "for i in range(T.Cast('int64', {}[0]) % 3 + 1):"
RESTRUCTURED = {
    "split": lambda sch: sch.split(sch.get_loops("S")[1], [None, 2]),
    "split without a rest": lambda sch: sch.split(sch.get_loops("S")[1], [None, 1]),
    "reorder": lambda sch: sch.reorder(*sch.get_loops("S")[::-1]),
    "fuse": lambda sch: sch.fuse(*sch.get_loops("S")),
    "decompose_reduction": lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[1]),
}


@pytest.mark.parametrize("name", RESTRUCTURED)
@pytest.mark.parametrize("told", ["S", "J"])
def test_how_far_a_loop_runs_is_asked_once(name, told):
    """S says it, where the loop stores S: its first element is 0 after the init, and a sum after that."""
    block = 'with T.sblock("S"):\n    v = T.axis.spatial(4, i)\n    k = T.axis.reduce(4, j)\n    with T.init():\n        S[v] = 0\n    S[v] = S[v] + A[v, k]\n'
    loops = [TOLD.format(told), "for j in range(4):"] if name in ("fuse", "reorder") else ["for t in range(1):", TOLD.format(told), "for j in range(4):"]
    func = program(nest(block, *loops))
    assert accepts(func, RESTRUCTURED[name]) == (told == "J")


SUMS_OF_ROWS = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A, B = T.match_buffer(a, (n, 4)), T.match_buffer(b, (4,))
    for j, i in T.grid(4, ROWS):
        with T.sblock("B"):
            v, k = T.axis.remap("SR", [j, i])
            with T.init():
                B[v] = T.float32(0)
            B[v] = B[v] + A[k, v]
"""


@pytest.mark.parametrize("step", [lambda sch: sch.blockize(sch.get_loops("B")[1]), lambda sch: sch.blockize(sch.get_loops("B")[0]),
                                  lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1])], ids=["tile", "all", "init"])
def test_an_init_stays_where_a_loop_may_have_no_iteration(step):
    """Each size may be taken to be 1 or more; what is computed of it may not."""
    step(Schedule(parse(SUMS_OF_ROWS.replace("ROWS", "n"))))
    with pytest.raises(ScheduleError, match="may have no iteration"):
        step(Schedule(parse(SUMS_OF_ROWS.replace("ROWS", "n % 2"))))
