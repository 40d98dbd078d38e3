# SPDX-License-Identifier: Apache-2.0
"""Annotations that lowering reads: what fits is said in one table, and the verifier asks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import roundel as rd
from roundel import te
from roundel.ir import tir
from roundel.ir.annotations import TABLE, Prefetch, PrefetchLines
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule

ROOM = Path(rd.__file__).parent
FITTING = {
    "grain": 4, "edge": True, "window": True, "streamed": True, "interleave": 1, "prefetch": Prefetch("A", 64, 16), "prefetch_pass": True,
    "prefetch_lines": PrefetchLines("A", 64), "pragma_import_llvm": "define void @f() { ret void }",
    "buffer_dim_align": ((0, 0, 16, 4),), "dim_align": ((0, 16, 4),),
    "not_registers": "it is too large", "arena": True, "ranges": True,
}
WRONG = {
    "grain": -1, "edge": "yes", "window": 3, "streamed": 0, "interleave": 2, "prefetch": ("A", 64, 0), "prefetch_pass": "all", "prefetch_lines": ("A",),
    "pragma_import_llvm": 3, "buffer_dim_align": ((0, 16, 4),), "dim_align": (0, 16, 4), "not_registers": True, "arena": "large", "ranges": 2,
}


def annotated(name, value):
    """A program with the annotation where it belongs."""
    place = TABLE[name].on
    a = te.placeholder((64,), "float32", "A")
    sch = Schedule(te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 2.0, "B")]))
    (loop,) = sch.get_loops("B")
    if "loop" in place:
        sch.annotate(loop, name, value)
    elif "block" in place:
        sch.annotate(sch.get_block("B"), name, value)
    else:
        func = sch.mod["main"]
        return rd.IRModule({"main": func.replace(body=tir.Allocate(tir.decl_buffer((4,), "float32", "c"), func.body, rd.ir.attrs.Attrs({name: value})))})
    return sch.mod


@pytest.mark.parametrize("name", TABLE)
def test_what_fits_is_well_formed_and_what_does_not_is_named(name):
    assert not well_formed(annotated(name, FITTING[name]))
    (problem,) = well_formed(annotated(name, WRONG[name]))
    assert f"annotation {name} is " in problem and TABLE[name].value in problem


def test_an_annotation_in_the_wrong_place_is_named():
    a = te.placeholder((64,), "float32", "A")
    sch = Schedule(te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 2.0, "B")]))
    sch.annotate(sch.get_block("B"), "grain", 4)
    assert well_formed(sch.mod) == ["main: block B: annotation grain stands on a block, and belongs on a parallel loop"]
    sch.annotate(sch.get_block("B"), "pragma_of_a_user", [1, "two"])
    assert len(well_formed(sch.mod)) == 1  # names that are not in the table belong to others


def test_every_annotation_is_written_and_read_by_its_name_in_the_table():
    """No file of a strategy or of lowering spells one as a string of its own."""
    names = "|".join(TABLE)
    spelled = re.compile(rf"""annotat\w*(?:\(.*|\[|\.get\(|\.without\(|.*\| \{{)"({names})"|"({names})" (?:not )?in \w+\.annotations""")
    found = [f"{p.relative_to(ROOM)}: {m[0]}" for p in ROOM.rglob("*.py") for m in spelled.finditer(p.read_text()) if "``" not in m[0]]
    assert not found


def test_the_page_of_the_architecture_has_them_all():
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert not [name for name in TABLE if f"| `{name}` |" not in text]
