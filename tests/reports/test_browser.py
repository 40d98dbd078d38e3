# SPDX-License-Identifier: Apache-2.0
"""A report in a browser: nothing in it keeps anybody from using it, it is worked by keys alone, fits small and large windows, and stays fluid with
5,000 nodes. Where AXE names axe-core's ``axe.min.js``, that is asked too."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from roundel.reports.page import page

from ..browser import FOUND, Browser

pytestmark = [pytest.mark.skipif(FOUND is None, reason="there is no browser"), pytest.mark.slow]
AUDIT = (Path(__file__).parent.parent / "accessibility.js").read_text()
SIZES = ((390, 800), (1024, 768), (1920, 1080))


def node(k: int, modules: int) -> dict:
    return {"name": f"/m{k % modules}/n{k}", "op": "add", "kind": "node", "path": [f"m{k % modules}"], "out": "float32[8]", "kernels": ["fused_add"]}


def report(nodes: int = 30) -> dict:
    """Data of a page: two kernels, one of which was tuned, and a chain of nodes in modules."""
    modules = max(2, nodes // 50)
    trials = [{"rule": "rows" if k % 3 else "columns", "decisions": {"rows": k % 7}, "ms": None if k == 5 else 1 / (1 + k % 11), "error": "",
               "expected_ms": 0.1 + k % 11} for k in range(40)]
    stages = [{"name": "program", "text": "a\nb", "against": None}, {"name": "scheduled", "text": "a\nc", "against": 0}]
    kernel = {"kernel": "fused_add", "calls": nodes, "rule": "rows", "decisions": {"rows": 4}, "mflop": 2.0, "mbytes": 1.0, "intensity": 2.0, "limit": "memory",
              "bound_ms": 0.1, "predicted_ms": 0.2, "measured_ms": 0.3, "roofline": 0.33, "passed_over": {"columns": "too few"}, "schedule": "sch.vectorize()",
              "candidates": 12, "modelled_ms": 0.2, "alternatives": [[{"rows": 2}, 0.25]], "nodes": ["/m0/n0"], "pin_at": "n0", "pin": {}, "space": {},
              "reason": "expected", "pinned": {}, "record": None, "stages": stages, "tuning": {"untuned": 1.2, "trials": trials, "left_out": 0}}
    other = kernel | {"kernel": "mean", "tuning": None, "limit": "compute", "nodes": ["/m1/n1"], "calls": 1}
    tensors = [{"name": "lv", "offset": 0, "nbytes": 4096, "first": 0, "last": 1}]
    choice = {"site": "/m0/n0", "kind": "algorithm", "subject": "add", "taken": "plain", "condition": "", "reason": "expected",
              "expected_ms": {"plain": 1.0, "other": 1.2}, "why_not": {"third": "too small"}}
    return {
        "format": 1, "roundel": "0", "made": "today", "model": "chain", "target": "llvm -mcpu=cpu -mtriple=a-b", "threads": 2, "sizes": {"n": 2},
        "symbolic": ["n"], "roofs": {"gflops": 100, "levels": [{"nbytes": 1 << 15, "gbs": 200}, {"nbytes": None, "gbs": 20}]},
        "inputs": [{"name": "x", "type": "float32[n]"}], "output": "float32[n]", "prepared_s": 0.5, "choices": [choice], "kernels": [kernel, other],
        "passes": [{"name": "fuse", "ms": 1.0, "changed": True, "operators": 3, "programs": 2}],
        "weights_nbytes": 1024, "memory": {"steps": ["fused_add", "mean"], "tensors": tensors, "nbytes": 4096},
        "graph": {"nodes": [node(k, modules) for k in range(nodes)], "edges": [[k, k + 1] for k in range(nodes - 1)]}}


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The page of one report, of two compared, and of a large graph."""
    folder = tmp_path_factory.mktemp("pages")
    for name, made in (("one", page(report())), ("two", page(report(), before=report())), ("large", page(report(5000)))):
        (folder / f"{name}.html").write_text(made)
    return folder


def opened(browser: Browser, path: Path, **how) -> Browser:
    """With everything shown that opens."""
    browser.messages.clear()
    browser.open(path, **how)
    browser.run("document.querySelectorAll('button[aria-expanded=false], details:not([open]) > summary').forEach((b) => b.click())")
    return browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["one", "two"])
def test_everybody_can_use_it(browser, pages, name, dark):
    opened(browser, pages / f"{name}.html", dark=dark)
    assert browser.run(AUDIT) == [] and browser.messages == []
    if axe := os.environ.get("AXE"):
        browser.run(Path(axe).read_text() + ";0")
        assert browser.run("axe.run().then((found) => found.violations.map((v) => `${v.id}: ${v.nodes[0].html}`))") == []


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_windows_of_all_sizes(browser, pages, size):
    """Nothing makes the page wider than the window: what is wide scrolls by itself."""
    opened(browser, pages / "two.html", size=size)
    assert browser.run("document.documentElement.scrollWidth") <= size[0]


def test_the_tab_key_goes_through_everything_in_order_and_shows_where_it_is(browser, pages):
    browser.open(pages / "one.html")
    place = """(() => {
      const e = document.activeElement;
      return [[...document.querySelectorAll("*")].indexOf(e), getComputedStyle(e).outlineStyle, e.tagName];
    })()"""
    count = browser.run("[...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')].filter((e) => e.checkVisibility()).length")
    seen = []
    for _ in range(count):
        browser.press("Tab")
        seen.append(browser.run(place))
    orders = [k for k, _, _ in seen]
    assert orders == sorted(set(orders)) and len(orders) == count
    assert all(outline != "none" for _, outline, tag in seen if tag != "g")  # nodes of the graph have a frame of their own


def test_a_kernel_is_opened_by_keys(browser, pages):
    """From the row of its name to the curve of its tuning and the stages of its program."""
    browser.open(pages / "one.html")
    browser.run("document.querySelector('#kernel-fused_add button').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('#kernel-fused_add button').getAttribute('aria-expanded')") == "true"
    assert browser.run("document.querySelectorAll('#kernels td.detail svg[role=img]').length") == 2
    browser.run("document.querySelector('#kernels [role=tab]').focus()")
    browser.press("ArrowRight")
    assert browser.run("document.activeElement.textContent") == "scheduled"
    browser.run("document.querySelector('#kernels td.detail input[type=checkbox]').focus()")
    browser.press(" ")
    assert browser.run("[...document.querySelectorAll('#kernels pre .added')].map((e) => e.textContent)") == ["+ c"]


def test_a_module_of_the_graph_is_opened_by_keys(browser, pages):
    browser.open(pages / "one.html")
    browser.run("document.querySelector('.graph .group').focus()")
    before = browser.run("document.querySelectorAll('.graph .node').length")
    browser.press("Enter")
    browser.run("new Promise((done) => setTimeout(done, 100))")
    assert browser.run("document.querySelectorAll('.graph .node').length") > before


def test_five_thousand_nodes_stay_fluid(browser, pages):
    """Opening all modules, and each step of a movement, take no longer than a person takes for an answer (a slow machine allowed for)."""
    browser.open(pages / "large.html")
    begun = time.monotonic()
    browser.run("[...document.querySelectorAll('#graph button')].find((b) => b.textContent === 'Open one level').click()")
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert time.monotonic() - begun < 5
    frames = browser.run("""(async () => {
      const graph = document.querySelector(".graph"), times = [];
      graph.focus();
      for (let k = 0; k < 20; k++) {
        const begun = performance.now();
        graph.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        times.push(performance.now() - begun);
      }
      return times.sort((a, b) => a - b)[10];
    })()""")
    assert frames < 250, frames
    assert browser.run("document.querySelector('#graph p').textContent") == "5000 nodes, 5000 boxes"
