# SPDX-License-Identifier: Apache-2.0
"""Nests that are no boxes: triangles of loops, conditions around blocks, indices that memory tells. Legal steps compute what the program did."""

from __future__ import annotations

import pytest

from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import parse

from .test_moved_and_copied import accepts

HEAD = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((4, 4), "int32"), I: T.Buffer((4,), "int64"), J: T.Buffer((3,), "int64"), C: T.Buffer((4, 4), "int32"), S: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4, 4), "int32")
"""


def program(text: str):
    return parse(HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines()))


def nest(block: str, *around: str) -> str:
    """A block in loops and conditions."""
    lines = [*(line for line in around if line), *block.strip().splitlines()]
    depth = len([line for line in around if line])
    return "".join(f"{'    ' * min(k, depth)}{line}\n" for k, line in enumerate(lines))


def summed(outer: str, inner: str, domain: str = "4", value: str = "S[v] + A[v, k]", condition: str = "", start: str = "T.int32(0)") -> str:
    """A sum of the rows of A whose loops, v's and k's, run as is said."""
    block = f"""
with T.sblock("S"):
    v = T.axis.spatial(4, i)
    k = T.axis.reduce({domain}, j)
    with T.init():
        S[v] = {start}
    S[v] = {value}
"""
    return nest(block, outer, condition, inner)


BOX = ("for i in range(4):", "for j in range(4):")
LONGER_ROWS = ("for i in range(4):", "for j in range(i + 1):")
EMPTY_ROW = ("for i in range(4):", "for j in range(i):")
SHORTER_COLUMNS = ("for j in range(4):", "for i in range(j + 1):")
FROM_ONE = ("for i in range(4):", "for j in range(1, 4):", "(1, 4)")
WITHOUT_START = ("for i in range(4):", "for j in range(1, 4):", "4")
INITS = [(BOX, True), (LONGER_ROWS, True), (EMPTY_ROW, False), (SHORTER_COLUMNS, False), (FROM_ONE, True), (WITHOUT_START, False)]


@pytest.mark.parametrize("loops, taken", INITS)
def test_an_init_of_its_own_runs_where_the_reduction_did(loops, taken):
    """It does not where no iteration reduces, and has no loop that a loop of the reduction tells the end of."""
    assert accepts(program(summed(*loops)), lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[0])) == taken


@pytest.mark.parametrize("loops, taken", [(BOX, True), (LONGER_ROWS, False), (SHORTER_COLUMNS, False), (FROM_ONE, True), (WITHOUT_START, False)])
def test_a_triangle_with_an_init_is_no_tile(loops, taken):
    assert accepts(program(summed(*loops)), lambda sch: sch.blockize(sch.get_loops("S")[0])) == taken


@pytest.mark.parametrize("loops, taken", [(BOX, True), (LONGER_ROWS, False), (FROM_ONE, True), (WITHOUT_START, False)])
def test_partial_results_are_as_many_as_iterations(loops, taken):
    """Their number counts from where the loop starts, and is the same in all iterations of the loops around."""
    assert accepts(program(summed(*loops)), lambda sch: sch.rfactor(sch.get_loops("S")[1], 0)) == taken


STEPS_WITH_AN_INIT = [
    lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[0]),
    lambda sch: sch.blockize(sch.get_loops("S")[0]),
    lambda sch: sch.cache_write("S", 0, "global"),
]


@pytest.mark.parametrize("step", STEPS_WITH_AN_INIT)
def test_an_init_does_not_come_before_another_instance_reads_the_result(step):
    """Each row's sum adds what the row after it holds from before."""
    func = program(summed(*BOX, value="S[v] + A[v, k] * S[(v + 1) % 4]"))
    assert not accepts(func, step)


def test_an_init_reads_what_is_padded():
    """A, I and S grow, and so does what the init reads."""
    func = program(summed(*BOX, start="A[v, v]"))
    assert not accepts(func, lambda sch: sch.pad_einsum("S", [3, 1]))  # (two rows of A at once)
    assert accepts(program(summed(*BOX, start="T.Cast('int32', I[v])")), lambda sch: sch.pad_einsum("S", [3, 1]))


@pytest.mark.parametrize("depth, taken", [(0, False), (1, True)])
def test_an_init_stays_under_the_condition_around_the_reduction(depth, taken):
    """Depth 0 is the loop around the condition, depth 1 the one in it."""
    func = program(summed(*BOX, condition="if A[i, 0] > 0:"))
    assert accepts(func, lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[depth])) == taken


COPY = """
with T.sblock("C"):
    v, w = T.axis.remap("SS", [i, j])
    C[v, w] = A[v, w] + 1
"""
COPIES_BACK = {
    "cache_write": lambda sch: sch.cache_write("C", 0, "global"),
    "write_at": lambda sch: sch.write_at(sch.get_loops("C")[0], "C", 0, "global"),
    "reindex": lambda sch: sch.reindex("C", ("write", 0)),
}


@pytest.mark.parametrize("name", COPIES_BACK)
@pytest.mark.parametrize("loops, condition, taken", [(BOX, "", True), (LONGER_ROWS, "", False), (BOX, "if A[i, 0] > 0:", False)])
def test_what_a_triangle_or_a_condition_leaves_out_is_not_copied_back(name, loops, condition, taken):
    """(An iteration of write_at's loop stores a whole row of the triangle.)"""
    whole = name == "write_at" and loops is LONGER_ROWS
    assert accepts(program(nest(COPY, loops[0], condition, loops[1])), COPIES_BACK[name]) == (taken or whole)


MADE = nest(COPY.replace("C", "B"), *BOX)
ROW = """
with T.sblock("S"):
    v = T.axis.spatial(4, i)
    S[v] = A[v, 0]
"""


def reader(index: str, condition: str = "", within: str = "") -> str:
    """A block that reads B, or A, under a condition around it or within."""
    store = f"    C[v, w] = {index}"
    block = COPY.strip().splitlines()[:-1] + ([f"    {within}", f"    {store}"] if within else [store])
    return nest("\n".join(block), *BOX, condition)


@pytest.mark.parametrize("step", [
    lambda sch: sch.read_at(sch.get_loops("C")[1], "C", "A", "global"),
    lambda sch: sch.compute_at(sch.cache_read("C", "A", "global"), sch.get_loops("C")[1]),
])  # fmt: skip
@pytest.mark.parametrize("text, taken", [
    (reader("A[I[v] % 4, w]"), True),
    (reader("A[J[v] % 4, w]", condition="if i < 3:"), False),
    (reader("A[J[v] % 4, w]", within="if v < 3:"), False),
    (reader("T.if_then_else(v < 3, A[J[v] % 4, w], 0)"), False),
    (reader("A[T.Cast('int64', C[v, (w + 1) % 4]) % 4, w]"), False),
])  # fmt: skip
def test_what_says_where_a_copy_is_can_be_read_before(step, text, taken):
    """I has four elements, J three; the last program changes what it reads the place from."""
    assert accepts(program(text), step) == taken


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("condition", ["", "if i > 1:", "if A[i, 0] > 0:"])
def test_a_block_leaves_no_condition_behind(depth, condition):
    """Block B, under a condition of its own, does not move out of it."""
    func = program(nest(COPY.replace("C", "B"), BOX[0], condition, BOX[1]) + reader("B[v, w]"))
    assert accepts(func, lambda sch: sch.compute_at("B", sch.get_loops("C")[depth])) == (not condition)


@pytest.mark.parametrize("asked, taken", [("A[0, 0] > 0", True), ("C[0, 3] > 0", False)])
def test_loops_beside_a_condition_merge_where_it_does_not_change(asked, taken):
    """The condition in the first loop asks for what the second loop stores."""
    first = nest(ROW, "for i in range(4):", f"if {asked}:")
    second = nest(ROW.replace("S[v] = A[v, 0]", "C[v, 3] = A[v, 1]").replace('"S"', '"C"'), "for i in range(4):")
    assert accepts(program(first + second), lambda sch: sch.merge(sch.get_loops("S")[0], sch.get_loops("C")[0])) == taken


@pytest.mark.parametrize("around, taken", [(["for i in range(4):"], True), (["for i in range(4):", "if B[0, 0] > 0:"], False)])
def test_a_value_that_a_statement_outside_of_blocks_asks_for_stays(around, taken):
    func = program(MADE + reader("B[v, w]") + nest(ROW, *around))
    assert accepts(func, lambda sch: sch.reverse_compute_inline("C")) == taken


def test_blocks_that_are_to_read_a_copy_read_the_buffer():
    sch = Schedule(program(MADE + reader("B[v, w] + S[w]") + summed(*BOX)))
    with pytest.raises(ScheduleError, match="none of B reads it"):
        sch.cache_read("C", "B", "global", consumer_blocks=["B"])
    with pytest.raises(ScheduleError, match="not stored there before"):
        sch.cache_write("S", 0, "global", consumer_blocks=["C"])


def test_a_domain_that_a_replaced_loop_tells_is_not_transformed():
    """A block whose second variable runs to i + 1, in the loops i and j."""
    func = program(nest(COPY.replace('T.axis.remap("SS", [i, j])', "T.axis.spatial(4, i), T.axis.spatial(i + 1, j)"), *LONGER_ROWS))
    assert not accepts(func, lambda sch: sch.transform_block_layout("C", lambda v, w: (w, v)))
    assert accepts(program(nest(COPY, *BOX)), lambda sch: sch.transform_block_layout("C", lambda v, w: (w, v)))


def test_padding_is_a_number_of_the_type():
    sch = Schedule(program(MADE + reader("B[v, w]")))
    with pytest.raises(ScheduleError, match="no number of B's type"):
        sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 3, j % 3), pad_value=2**40)


def totals(at: str, start: str = "0") -> str:
    """Sums of the rows of A into places of S."""
    block = f"""
with T.sblock("S"):
    v = T.axis.spatial(4, i)
    k = T.axis.reduce(4, j)
    with T.init():
        S[{at}] = {start}
    S[{at}] = S[{at}] + A[v, k]
"""
    return nest(block, *BOX)


STARTING_APART = {
    "decompose_reduction": lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[0]),
    "blockize": lambda sch: sch.blockize(sch.get_loops("S")[0]),
    "reorder": lambda sch: sch.reorder(*sch.get_loops("S")[::-1]),
    "rfactor": lambda sch: sch.rfactor(sch.get_loops("S")[1], 0),
    "fuse": lambda sch: sch.fuse(*sch.get_loops("S")),
    "parallel": lambda sch: sch.parallel(sch.get_loops("S")[0]),
    "cache_write": lambda sch: sch.cache_write("S", 0, "local"),
}


@pytest.mark.parametrize("name", STARTING_APART)
@pytest.mark.parametrize("at, own", [("v", True), ("3 - v", True), ("0", False), ("v // 2", False), ("v % 2", False), ("I[v] % 4", False)])
def test_an_init_starts_no_other_rows_sum(name, at, own):
    """The place of a sum is its row's own, or several rows store into it one after another; then only what keeps their order is taken."""
    taken = accepts(program(totals(at)), STARTING_APART[name])
    assert taken or not own or name == "cache_write"
    assert own or not taken or name in ("fuse", "cache_write")


def test_a_reduction_that_does_not_begin_at_its_start_keeps_its_init():
    """Memory says which part of the sum an instance adds: whether it is the first, with the init, is not known."""
    func = program(nest(totals("v").split("\n", 2)[2].replace("reduce(4, j)", "reduce(4, I[i] % 4)"), BOX[0]))
    assert not accepts(func, lambda sch: sch.blockize([sch.get_block("S")]))
    assert not accepts(func, lambda sch: sch.blockize(sch.get_loops("S")[0]))


def test_statements_outside_of_blocks_are_copied_too():
    """Each part of a partitioned loop has its own: what is asked of one is not answered for the other."""

    def step(sch):
        for part in sch.loop_partition(sch.get_loops("S")[1], [1, None]):
            sch.vectorize(part)

    func = program(nest(ROW, "for t in range(2):", "for i in range(4):", "if A[i, 0] > 0:") + "        else:\n            C[t, i] = 5\n")
    assert accepts(func, step)


@pytest.mark.parametrize("loops", [("for r in range(4):", "for i in range(r + 1):"), ("for i in range(4):", "for r in range(i):")], ids=["rows", "sums"])
@pytest.mark.parametrize("step", [lambda sch: sch.cache_write("S", 0, "local"), lambda sch: sch.decompose_reduction("S", sch.get_loops("S")[0]),
                                  lambda sch: sch.blockize(sch.get_loops("S")[0])], ids=["cache", "init", "tile"])
def test_results_of_a_triangle_may_have_no_init(loops, step):
    """Then they go on from what their memory held."""
    body = """
with T.sblock("S"):
    v, k = T.axis.remap("SR", [i, r])
    with T.init():
        S[v] = 0
    S[v] = S[v] * 2 + A[v, k]
"""
    assert not accepts(program(nest(body, *loops)), step)
    assert accepts(program(nest(body, "for i in range(4):", "for r in range(4):")), step)


@pytest.mark.parametrize("rows, taken", [("n", True), ("T.min(n, 7)", True), ("T.min(T.Select(6 <= n, n - 3, 0) * 4, 7)", False)])
def test_a_new_domain_is_as_large_as_the_old_one(rows, taken):
    """An upper bound of it would be too much: the block would run for variables that it never had."""
    text = f"""
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int64()
    A, B = T.match_buffer(a, (n, n)), T.match_buffer(b, (n, n))
    for i, j in T.grid({rows}, {rows.replace("7", "5")}):
        with T.sblock("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w]
"""
    sch = Schedule(parse(text))
    columns = sch.get(sch.get_block("B")).iter_vars[1].dom.extent
    if taken:
        sch.transform_block_layout("B", lambda i, j: i * columns + j)
    else:
        with pytest.raises(ScheduleError, match="not known exactly"):
            sch.transform_block_layout("B", lambda i, j: i * columns + j)
