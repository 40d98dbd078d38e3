# SPDX-License-Identifier: Apache-2.0
"""Pictures of tensor programs: what they show, as text and as SVG."""

from xml.etree import ElementTree

import pytest

from roundel.ir import IRModule
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule, picture
from roundel.script import tir as T


@T.prim_func
def total(A: T.Buffer((30, 7), "float32"), B: T.Buffer((30,), "float32")):
    for i, j in T.grid(30, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]


def test_the_text_names_loops_blocks_and_how_they_run():
    sch = Schedule(total)
    i, _ = sch.get_loops("B")
    outer, inner = sch.split(i, factors=[None, 8])
    sch.parallel(outer)
    sch.bind(inner, "threadIdx.x")
    shown = picture(total, sch.mod, titles=("before", "after"))
    text = repr(shown).splitlines()
    assert text[:4] == ["before:", "for i in 30", "  for j in 7", "    B: vi, vj (reduce)"]
    assert "for i_0 in 4 (parallel)" in text and "  for i_1 in 8 (threadIdx.x)" in text
    assert any("where i_0 * 8 + i_1 < 30" in line for line in text)


def test_the_svg_is_well_formed_and_keeps_boxes_inside(tmp_path):
    path = picture(total, titles=("<a> & b",)).save(tmp_path / "p.svg")
    root = ElementTree.parse(path).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = root.findall("{http://www.w3.org/2000/svg}rect")
    assert len(boxes) == 3  # two loops and a block
    for box in boxes:
        x, y, w, h = (float(box.get(k)) for k in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height


def test_what_has_no_loops_is_refused():
    with pytest.raises(ScheduleError, match="no tensor program"):
        picture(IRModule({}))
