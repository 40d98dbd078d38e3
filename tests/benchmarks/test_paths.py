# SPDX-License-Identifier: Apache-2.0
"""The race of all paths against generated code alone: which cases there are, what counts, and that nothing is measured twice."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

pytestmark = pytest.mark.peers

from benchmarks.measure import Timing  # noqa: E402

from benchmarks import paths  # noqa: E402

ENTRY = {"case": "resnet18", "condition": "own", "threads": 1, "ratio": 1.0, "quartiles": [0.99, 1.01], "won": [], "compared": 4, "relative_difference": 1e-6,
         "seconds": 3.0}


def test_all_models_once_and_one_on_a_machine_that_is_described_badly():
    names = [(case.name, condition) for case, condition in paths.chosen(["all"])]
    assert len(names) == 10 and names[-1] == ("mobilenetv2", "sse") and len({c for c, condition in names if condition == "own"}) == 9
    assert [c.name for c, _ in paths.chosen(["gpt2", "bad"])] == ["gpt2", "mobilenetv2"]


@pytest.mark.parametrize(("change", "right"), [({}, True), ({"ratio": 1.019}, True), ({"ratio": 1.03}, False), ({"relative_difference": 0.1}, False),
                                               ({"condition": "sse", "ratio": 0.97}, False), ({"condition": "sse", "ratio": 0.5}, True)])
def test_what_was_promised(change, right):
    entry = ENTRY | change
    assert paths.holds(entry) == right and ("missed" in paths.line(entry)) != right


def test_ratios_are_of_pairs_of_blocks():
    best, generated = (Timing([s] * 12, cpu=[s * slow for slow in (1, 9, 1, 1)]) for s in (2.0, 4.0))
    for threads in (1, 2):
        assert paths.ratio(best, generated, threads)["ratio"] == 0.5


def test_sizes_are_those_of_the_inputs():
    class Info:
        name, shape = "x", ("batch", 3, "rows")

    assert paths.sizes_of([Info()], {"x": np.zeros((2, 3, 5))}) == {"batch": 2, "rows": 5}


def test_what_is_measured_is_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    (tmp_path / "paths.json").write_text(json.dumps([ENTRY]))
    ran = []

    def process(command, **how):
        ran.append(command[command.index("paths-one") + 1])
        return subprocess.CompletedProcess(command, 1, "", "out of memory")

    monkeypatch.setattr(subprocess, "run", process)
    wanted = [c for c in paths.chosen(["resnet18", "vit_b16"])]
    first = paths.run_paths(wanted, 1, "onednn", 1, 1, 1)
    assert ran == ["vit_b16"] and "out of memory" in first[1]["failed"] and not paths.holds(first[1])
    paths.run_paths(wanted, 1, "onednn", 1, 1, 1)
    assert ran == ["vit_b16"] * 2, "what failed is tried again"
