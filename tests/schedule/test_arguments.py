# SPDX-License-Identifier: Apache-2.0
"""Arguments of primitives: what is of the wrong kind is refused in words, whatever the primitive, and leaves the schedule as it was."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import roundel as rd
from roundel.ir import DType
from roundel.ir.errors import RoundelError, ScheduleError
from roundel.schedule import Schedule
from roundel.schedule.primitive import PRIMITIVES
from roundel.script import tir as T


@T.prim_func
def two_stages(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    B = T.alloc_buffer((8, 8), "int32")
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * 2


GOOD = {
    "BlockToken": lambda b, loop: b,
    "Loop": lambda b, loop: loop,
    "Place": lambda b, loop: loop,
    "Target": lambda b, loop: loop,
    "Target | Sequence[BlockToken]": lambda b, loop: loop,
    "Sequence[BlockToken] | None": lambda b, loop: None,
    "int": lambda b, loop: 1,
    "int | str": lambda b, loop: 0,
    "Sequence[int]": lambda b, loop: [1, 1],
    "Sequence[Sequence[int]]": lambda b, loop: [[0, 1, 1, 1]],
    "Sequence[float]": lambda b, loop: [0.5, 0.5],
    "Sequence[Factor]": lambda b, loop: [2, None],
    "bool": lambda b, loop: True,
    "str": lambda b, loop: "local",
    "str | None": lambda b, loop: None,
    "BufferName": lambda b, loop: ("write", 0),
    "Map": lambda b, loop: lambda i, j: (j, i),
    "Fill": lambda b, loop: 0,
    "Printable": lambda b, loop: 1,
    "Choice": lambda b, loop: 0,
    "Tile": lambda b, loop: [8],
    "Random | None": lambda b, loop: None,
}
BAD = [
    None, "nosuch", "", -1, 3, 10**20, 2.5, float("nan"), float("inf"), object(), [], [None, None], ["x"], [2.5, 4], [-1, 0], {}, {1: 2}, b"x", 1j,
    DType("int8"), ("read", None), ("read", 9), ("nosuch", 0), (2.5, 0), int, max, lambda: 0, lambda i: (i,), lambda i, j: None, lambda i, j: "text",
    lambda i, j: (2.5, j),
    lambda i, j: (i, object()), lambda i, j, k: (i, j, k), lambda i, *, k: (k,), lambda i, j, *, k: (i, j, k), lambda i, j: [(i,), (j, 1)], two_stages,
]  # fmt: skip


def parameters() -> list[tuple[str, str]]:
    """Every parameter of every primitive."""
    return [(p.name, name) for p in PRIMITIVES.values() for name in list(p.signature.parameters)[1:]]


@pytest.mark.parametrize(("primitive", "parameter"), parameters())
def test_any_argument_is_taken_or_refused_in_words(primitive: str, parameter: str):
    found = PRIMITIVES[primitive].signature.parameters
    for bad in BAD:
        sch = Schedule(two_stages, seed=0)
        block = sch.get_block("B")
        loop = sch.get_loops(block)[0]
        before = sch.mod
        arguments: list[Any] = []
        named: dict[str, Any] = {}
        for name, p in list(found.items())[1:]:
            value = bad if name == parameter else GOOD[p.annotation](block, loop)
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                arguments.append(value)
            elif name == parameter or p.default is p.empty:
                named[name] = value
        try:
            getattr(sch, primitive)(*arguments, **named)
        except RoundelError:
            assert sch.mod is before
        else:
            assert rd.ir.structural_equal(rd.script.parse(sch.mod.script()), sch.mod)


@pytest.mark.parametrize(("primitive", "parameter"), parameters())
@pytest.mark.parametrize("bad", [object(), {"a": object()}])
def test_an_object_is_no_argument(primitive: str, parameter: str, bad: Any):
    p = PRIMITIVES[primitive].signature.parameters[parameter]
    many = p.kind is p.VAR_POSITIONAL
    given, decision = ({}, bad) if parameter == "decision" else ({parameter: [bad] if many else bad}, None)
    with pytest.raises(ScheduleError, match=f"{primitive} cannot take .* as {parameter}"):
        Schedule(two_stages).perform(primitive, given, {}, decision)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s, b, l: s.split(None, [2, 4]), "split cannot take None"),
        (lambda s, b, l: s.unroll(b), "loop is a loop"),
        (lambda s, b, l: s.parallel("nosuch"), "loop is a loop"),
        (lambda s, b, l: s.split(l, "abc"), "a list of integers"),
        (lambda s, b, l: s.split(l, [2.5, 4]), "a list of integers"),
        (lambda s, b, l: s.split(l, [4.0, 2]), "a list of integers"),
        (lambda s, b, l: s.tensorize(b, 3), "tensor_intrin is a text"),
        (lambda s, b, l: s.transform_layout(b, ("write", 0), lambda i: (i,)), "1 indices where there are 2"),
        (lambda s, b, l: s.transform_layout(b, ("write", 0), lambda i, j, k: (i, j, k)), "3 indices where there are 2"),
        (lambda s, b, l: s.transform_layout(b, ("write", 0), lambda i, j: None), "not None"),
        (lambda s, b, l: s.transform_layout(b, ("write", 0), lambda i, j: "abc"), "not the text 'abc'"),
        (lambda s, b, l: s.transform_layout(b, ("write", 0), "abc"), "a function of indices"),
        (lambda s, b, l: s.transform_block_layout(b, lambda i: (i,)), "1 indices where there are 2"),
        (lambda s, b, l: s.annotate(b, "x", object()), "which script can show"),
        (lambda s, b, l: s.annotate(b, "x", [1, {"y": two_stages}]), "which script can show"),
        (lambda s, b, l: s.sample_categorical([1, 2], [0.0, 0.0]), "probabilities"),
        (lambda s, b, l: s.sample_perfect_tile(l, 0), "1 to 64 factors"),
    ],
)
def test_the_refusal_says_what_is_wrong(call: Any, said: str):
    sch = Schedule(two_stages)
    block = sch.get_block("B")
    with pytest.raises(ScheduleError, match=said):
        call(sch, block, sch.get_loops(block)[0])


@pytest.mark.parametrize("value", [None, True, 1, 1.5, float("nan"), float("-inf"), 'x"\n\x1b', [1, "a", [float("nan")]], {"a": {"b": [None]}}, DType("int8")])
def test_annotations_survive_printing_and_parsing(value: Any):
    sch = Schedule(two_stages)
    sch.annotate(sch.get_block("B"), "x", value)
    again = rd.script.parse(sch.mod.script())
    assert rd.ir.structural_equal(again, sch.mod)
    assert rd.ir.structural_hash(again) == rd.ir.structural_hash(sch.mod)
