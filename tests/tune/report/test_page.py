# SPDX-License-Identifier: Apache-2.0
"""The page that tells what tuning found opens without anything else, and holds what was measured."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import roundel as rd
from roundel.strategy.cost import expected_cycles
from roundel.target import Target
from roundel.tune.report import page

from ...browser import FOUND, Browser
from ..programs import FakeBuilder, FakeRunner, doubled, product


def tuned(tmp_path, model, runner=None, trials=24):
    return rd.tune(model, threads=1, db=tmp_path / "tuned.jsonl", runner=runner or FakeRunner(lambda f: expected_cycles(f, Target.host(), cores=1) * 1e-9),
                   builder=FakeBuilder(), trials=trials)


def tree(text):
    """The page read as XML, which says that every element ends and every text is escaped."""
    return ElementTree.fromstring(re.sub(r'<meta [^>]*>|<br>|<!doctype html>', "", text).replace("details open", "details"))


@pytest.fixture
def result(tmp_path):
    return tuned(tmp_path, product(name="a<b>&c"))


def test_it_is_one_file_with_everything_in_it(result):
    text = page(result, "layer.onnx <1>")
    found = tree(text)
    assert "Tuning of layer.onnx <1>" in [e.text for e in found.iter("h1")]
    assert not re.search(r"(src|href)=|http|@import|<script|<link", text)


def test_each_task_has_its_row_and_its_charts(result):
    found, (row,) = tree(page(result)), result.rows
    cells = [c.text or "" for c in found.findall(".//table/tr")[1]]
    assert cells[0] == row.name and cells[2] == str(row.trials) and cells[-1].startswith(row.sketch)
    names = [e.text for e in found.iter("text") if e.get("class") == "name"]
    assert names[0] == "fastest so far" and names[1].startswith("measured over expected, in order ") and any(re.match(r"\w+: \w+", n) for n in names[2:])


def test_every_candidate_is_a_point_with_its_decisions(result):
    (attempt,) = result.attempts
    measured = [s for s in attempt.search.times.values() if s is not None]
    svg = next(s for s in tree(page(result)).iter("svg") if any("measured over expected" in (t.text or "") for t in s.iter("text")))
    assert len(list(svg.iter("circle"))) == len(measured)
    best = min(measured) * 1e3
    assert any(f"{best:.4f} ms" in t.text for t in svg.iter("title"))


def test_points_lie_in_their_charts(result):
    for svg in tree(page(result)).iter("svg"):
        _, _, width, height = map(float, svg.get("viewBox").split())
        for circle in svg.iter("circle"):
            assert 0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height
        assert len(list(svg.iter("text"))) >= 5  # ticks too


def test_tasks_with_nothing_to_show(tmp_path):
    """One of which every candidate fails, one that has few, and one that cannot be measured at all."""

    class Refuses(FakeRunner):
        def race(self, *args, **named):
            raise RuntimeError("no such machine")

    assert "nothing but the untuned schedule" in page(tuned(tmp_path, doubled(), trials=1)) or "fastest so far" in page(tuned(tmp_path, doubled(), trials=1))
    assert "no such machine" in page(tuned(tmp_path / "other", product(), Refuses()))


def test_it_is_written(result, tmp_path):
    result.report(tmp_path / "out.html", "m")
    assert tree((tmp_path / "out.html").read_text(encoding="utf-8")) is not None
    with pytest.raises(rd.RoundelError, match="cannot be written"):
        result.report(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(FOUND is None, reason="there is no browser")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everybody_can_use_it(result, tmp_path, dark):
    """Names, heads, contrast and reach of the keyboard; no window is too narrow."""
    (tmp_path / "page.html").write_text(page(result, "layer"))
    with Browser() as browser:
        browser.open(tmp_path / "page.html", size=(390, 800), dark=dark)
        assert browser.run((Path(__file__).parents[2] / "accessibility.js").read_text()) == [] and browser.messages == []
        assert browser.run("document.documentElement.scrollWidth") <= 390
