# SPDX-License-Identifier: Apache-2.0
"""The chapters of the course run from their first cell to their last, and their pictures are there to see."""

import json
import linecache

import pytest

from roundel.frontend.torch import registry
from roundel.runtime.registry import remove_func

from .notebooks import COURSE, code_cells

CHAPTERS = sorted(COURSE.glob("*.ipynb"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda p: p.stem)
def test_chapter(chapter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "TABLE", dict(registry.TABLE))
    monkeypatch.setattr(registry, "OWN", set(registry.OWN))
    scope = {"__name__": "chapter"}
    for name, source in code_cells(chapter):
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # decorators of scripts read their source
        exec(compile(source, name, "exec"), scope)
    if "course.linear" in chapter.read_text():
        remove_func("course.linear")


def test_there_are_eight_chapters():
    assert [p.name[0] for p in CHAPTERS] == list("12345678")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_shows_what_its_cells_give(chapter):
    cells = json.loads(chapter.read_text())["cells"]
    outputs = [o for c in cells for o in c.get("outputs", ())]
    drawn = sum("picture(" in "".join(c["source"]).split("\n")[-1] for c in cells if c["cell_type"] == "code")
    assert outputs and sum("image/svg+xml" in o.get("data", {}) for o in outputs) == drawn
    assert not [o for o in outputs if o["output_type"] == "error"]
