# SPDX-License-Identifier: Apache-2.0
"""What may be copied: only where loops and sizes tell what a block touches is a copy of it the same, and only what is all stored is copied back."""

from __future__ import annotations

import pytest

from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import parse

from .test_irregular import BOX, nest, program
from .test_moved_and_copied import accepts


def block(store: str, *around: str, axes: str = 'v, w = T.axis.remap("SS", [i, j])', name: str = "C", where: str = "") -> str:
    """A block of one statement, or several, in loops."""
    lines = [f'with T.sblock("{name}"):', f"    {axes}", *([f"    T.where({where})"] if where else []), *(f"    {s}" for s in store.splitlines())]
    return nest("\n".join(lines), *around)


STEPS_BACK = {
    "cache_write": lambda sch: sch.cache_write("C", 0, "global"),
    "write_at": lambda sch: sch.write_at(sch.get_loops("C")[0], "C", 0, "global"),
    "reindex": lambda sch: sch.reindex("C", ("write", 0)),
    "reindex_cache_write": lambda sch: sch.reindex_cache_write("C", 0, "global", lambda v, w: (w, v)),
}
PLAIN = block("C[v, w] = A[v, w] + 1", *BOX)
SOMETIMES = {
    "memory tells the place": block("C[v, I[w] % 4] = A[v, w]", *BOX),
    "memory tells which instance": block("C[v, w] = A[v, w]", *BOX, axes="v = T.axis.spatial(4, i)\n    w = T.axis.spatial(4, I[j] % 4)"),
    "memory tells whether": block("C[v, w] = A[v, w]", *BOX, where="A[i, j] > 0"),
    "a condition within": block("if A[v, w] > 0:\n    C[v, w] = A[v, w]", *BOX),
    "a triangle": block("C[v, w] = A[v, w]", "for o in range(1):", "for i in range(4):", "for j in range(i + 1):"),
    "every second": block("C[v, w] = A[v, w]", "for i in range(4):", "for j in range(2):", axes="v = T.axis.spatial(4, i)\n    w = T.axis.spatial(4, j * 2)"),
    "both ends": block("C[v, w] = A[v, w]\nC[v, w + 3] = A[v, w]", "for i in range(4):", "for j in range(1):"),
    "a triangle within": block("for k in range(v + 1):\n    C[v, k] = A[v, w]", "for o in range(1):", "for i in range(4):", "for j in range(1):"),
}


@pytest.mark.parametrize("name", STEPS_BACK)
def test_all_of_a_box_is_copied_back(name):
    assert accepts(program(PLAIN), STEPS_BACK[name])


@pytest.mark.parametrize("what", SOMETIMES)
@pytest.mark.parametrize("name", STEPS_BACK)
def test_what_is_not_surely_stored_is_not_copied_back(name, what):
    """(Each instance of "every second" has an element in the stage of reindex, which is as right.)"""
    assert not accepts(program(SOMETIMES[what]), STEPS_BACK[name]) or what == "every second"


@pytest.mark.parametrize("step", [STEPS_BACK["reindex"], STEPS_BACK["reindex_cache_write"]])
def test_results_are_not_told_apart_by_what_is_reduced_over(step):
    """Instances of different k add to one element."""
    func = program(block("with T.init():\n    C[v, k % 2] = 0\nC[v, k % 2] = C[v, k % 2] + A[v, k]", *BOX, axes='v, k = T.axis.remap("SR", [i, j])'))
    assert not accepts(func, step)


def test_a_result_is_not_read_for_another():
    """Each instance adds what the first one holds: the stage of reindex_cache_write has one place for an instance alone."""
    func = program(block("with T.init():\n    S[v] = 1\nS[v] = S[v] + S[0]", *BOX, axes='v, k = T.axis.remap("SR", [i, j])'))
    assert not accepts(func, lambda sch: sch.reindex_cache_write("C", 0, "global", lambda v, k: (v,)))


STEPS_BEFORE = [
    lambda sch: sch.reindex("C", "A"),
    lambda sch: sch.reindex_cache_read("C", "A", "global", lambda v, w: (w, v)),
    lambda sch: sch.cache_read("C", "A", "global"),
    lambda sch: sch.read_at(sch.get_loops("C")[0], "C", "A", "global"),
]
MADE = block("B[v, w] = A[v, w]", *BOX, name="B")


@pytest.mark.parametrize("step", STEPS_BEFORE)
@pytest.mark.parametrize("places", ["v, w", "T.Cast('int64', B[v, w]) % 4, w"])
def test_an_index_that_memory_tells_is_not_read_before(step, places):
    """(cache_read and read_at copy all that may be read.)"""
    taken = step in STEPS_BEFORE[2:] or places == "v, w"
    assert accepts(program(MADE + block(f"C[v, w] = A[{places}]", *BOX)), step) == taken


def test_a_condition_that_memory_tells_is_not_asked_before():
    """The loop of B and the loop of C are one, so that the copy would stand in front of both."""
    rows = "with T.sblock('B'):\n    v = T.axis.spatial(4, i)\n    B[v, 0] = A[v, 1]\n"
    read = "with T.sblock('C'):\n    v = T.axis.spatial(4, i)\n    T.where(B[i, 0] > 0)\n    S[v] = A[v, 0]\n"
    func = program(nest(rows + read, "for i in range(4):"))
    assert not accepts(func, lambda sch: sch.reindex_cache_read("C", "A", "global", lambda v: (v,)))


def in_place(store: str, kind: str) -> str:
    """A change in place by a block in a block, in rows that run in some way."""
    return f"""
for i in {kind}:
    with T.sblock("outer"):
        v = T.axis.spatial(4, i)
        with T.sblock("C"):
            {store}
"""


@pytest.mark.parametrize("kind", ["range(4)", "T.parallel(4)", "T.thread_binding(4, thread='blockIdx.x')"])
@pytest.mark.parametrize("store, whole", [("S[v] = S[v] + 1", True), ("S[v] = S[v] + T.if_then_else(v < 2, S[3 - v], 0)", False)])
def test_what_others_store_is_not_copied_back(kind, store, whole):
    """The second reads elements that other iterations store, which a copy back would overwrite."""
    if whole or kind == "range(4)":
        assert accepts(program(in_place(store, kind)), lambda sch: sch.cache_inplace("C", 0, "global"))


def test_what_is_only_read_is_not_copied_back():
    sch = Schedule(program(block("S[v] = S[v] + S[v + 1]", "for i in range(3):", axes="v = T.axis.spatial(3, i)")))
    copied, back = sch.cache_inplace("C", 0, "global")
    assert [sch.get(sch.get_loops(b)[-1]).extent.value for b in (copied, back)] == [2, 1]


ALIASES = """
for i in range(4):
    with T.sblock("rows"):
        v = T.axis.spatial(4, i)
        row = T.match_buffer(C[v, 0:4], (4,), "int32")
        for j in range(4):
            with T.sblock("B"):
                w = T.axis.spatial(4, j)
                row[w] = A[v, w]
        for j in range(4):
            with T.sblock("D"):
                w = T.axis.spatial(4, j)
                A[v, w] = {read} * 2
"""


@pytest.mark.parametrize("step", [
    lambda sch: sch.cache_read("D", 0, "global"),
    lambda sch: sch.reindex("D", ("read", 0)),
    lambda sch: sch.cache_write("B", 0, "global"),
    lambda sch: sch.read_at(sch.get_loops("D")[0], "D", 0, "global"),
    lambda sch: sch.reindex_cache_read("D", 0, "global", lambda w: (w,)),
])  # fmt: skip
@pytest.mark.parametrize("read, taken", [("row[w]", True), ("C[v, w]", False)])
def test_memory_under_two_names_is_not_copied_under_one(step, read, taken):
    """What D reads of C is what B stored in the view of it."""
    assert accepts(program(ALIASES.format(read=read)), step) == taken


def sums(value: str, dtype: str) -> str:
    """Rows of three times five numbers are added up."""
    return f"""
from roundel.script import tir as T

@T.prim_func
def f(X: T.Buffer((3, 5), "{dtype}"), V: T.Buffer((3,), "{dtype}"), U: T.Buffer((5,), "{dtype}"), Z: T.Buffer((3,), "{dtype}")):
    for i, k in T.grid(3, 5):
        with T.sblock("Z"):
            v, w = T.axis.remap("SR", [i, k])
            with T.init():
                Z[v] = T.{dtype}(0)
            Z[v] = {value}
"""


@pytest.mark.parametrize("value, dtype, taken", [
    ("Z[v] + X[v, w] * U[w]", "float32", True),
    ("Z[v] + X[v, w]", "float32", True),
    ("Z[v] + X[v, w] * T.float32(2)", "float32", True),
    ("Z[v] + X[v, w] * V[v]", "float32", False),  # 0 * inf
    ("Z[v] + X[v, w] * V[v]", "int32", True),
    ("Z[v] + X[v, w] * (10 // U[w])", "int32", False),  # division by 0
    ("Z[v] + X[v, w] * U[w] * 2", "int32", True),
])  # fmt: skip
def test_padded_sums_add_zeros(value, dtype, taken):
    assert accepts(parse(sums(value, dtype)), lambda sch: sch.pad_einsum("Z", [2, 4])) == taken


LAST = """
from roundel.script import tir as T

@T.prim_func
def f(V: T.Buffer((1,), "int32"), Z: T.Buffer((5,), "int32")):
    for i, j in T.grid(1, 5):
        with T.sblock("Z"):
            v, w = T.axis.remap("SS", [i, j])
            Z[w] = V[v]
"""


@pytest.mark.parametrize("padding, taken", [([1, 4], True), ([4, 1], False), ([4, 4], False)])
def test_padding_does_not_come_into_results(padding, taken):
    """The first axis, of one iteration, tells no result apart: with more, each would be that of the last."""
    assert accepts(parse(LAST), lambda sch: sch.pad_einsum("Z", padding)) == taken


def test_an_element_that_two_variables_find_is_one_element():
    """The consumer takes the element (0, 0) alone of what has four rows."""
    func = program(MADE + block("S[v] = B[v, v] + 1", "for i in range(1):", axes="v = T.axis.spatial(1, i)"))
    assert accepts(func, lambda sch: sch.reverse_compute_inline("C"))
    diagonal = program(MADE + block("S[v] = B[v, v] + 1", "for i in range(4):", axes="v = T.axis.spatial(4, i)"))
    accepts(diagonal, lambda sch: sch.reverse_compute_inline("C"))


PADDED = "B[v, w] = T.if_then_else(v < 3, A[v, w], 0)"


@pytest.mark.parametrize("around, taken", [(BOX, True), ((BOX[0], "if S[0] > 0:", BOX[1]), False)])
def test_padding_is_filled_where_the_block_runs(around, taken):
    func = program(block(PADDED.replace("B[", "C["), *around, name="B"))
    assert accepts(func, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0])) == taken


@pytest.mark.parametrize("row, taken", [("v", True), ("(v + 1) % 4", False)])
def test_padding_is_not_filled_before_what_was_there_is_read(row, taken):
    """The second block of the loop reads a row that was padded, or the next one, which is not yet."""
    make = block(PADDED.replace("B[", "C["), BOX[1], name="B").splitlines()
    read = block(f"S[v] = C[{row}, 0]", axes="v = T.axis.spatial(4, i)").splitlines()
    func = program("\n".join([BOX[0], *(f"    {line}" for line in (*make, *read))]))
    assert accepts(func, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0])) == taken


def test_a_layout_with_padding_needs_a_block_that_stores():
    func = program("for i, j in T.grid(4, 4):\n    B[i, j] = A[i, j]\n" + block("C[v, w] = B[v, w]", *BOX))
    with pytest.raises(ScheduleError, match="no block stores it"):
        Schedule(func).transform_layout("C", ("read", 0), lambda i, j: (i, j // 3, j % 3), pad_value=0)


def test_domains_that_loops_tell_are_not_shapes():
    """A block whose second variable runs to i + 1."""
    func = program(block("C[v, w] = A[v, w]", BOX[0], "for j in range(i + 1):", axes="v, w = T.axis.spatial(4, i), T.axis.spatial(i + 1, j)"))
    for step in (*STEPS_BACK.values(), STEPS_BEFORE[0], STEPS_BEFORE[1]):
        accepts(func, step)


@pytest.mark.parametrize("step", [
    lambda sch: sch.parallel(sch.get_loops("D")[0]),
    lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("D")[0]),
])  # fmt: skip
@pytest.mark.parametrize("read, taken", [("row[(w + 1) % 4]", False), ("C[v, (w + 1) % 4]", False), ("A[v, 3 - w]", True)])
def test_iterations_share_memory_under_two_names(step, read, taken):
    """D stores in the view what its next iteration, or B, has under the other name."""
    text = ALIASES.format(read=read).replace("A[v, w] =", "row[w] =")
    assert accepts(program(text), step) == taken


@pytest.mark.parametrize("kind, taken", [("range(4)", True), ("T.parallel(4)", False)])
def test_padding_is_filled_in_the_memory_of_each_iteration(kind, taken):
    """One row of B serves all iterations, each of which has its own where they run at the same time."""
    make = block("B[0, w] = T.if_then_else(w < 3, S[w], 0)", f"for i in {kind}:", BOX[1], axes="w = T.axis.spatial(4, j)", name="B")
    read = block("C[v, w] = B[0, w] * 2", BOX[1])
    func = program(make + "".join(f"    {line}\n" for line in read.splitlines()))
    assert accepts(func, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[1]))
    assert accepts(func, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0])) == taken
