# SPDX-License-Identifier: Apache-2.0
"""Candidates of a layer are compiled into a file and raced from there."""

from __future__ import annotations

import numpy as np
from benchmarks.decisions import load, pick
from benchmarks.layers import matmul
from benchmarks.race import build, race


def test_candidates_are_kept_and_raced(tmp_path):
    layer, path = matmul(9, 40, 24), tmp_path / "layer.pickle"
    assert build(layer, 4, 0, path) == 4
    rule, found, functions = load(path)
    x, (weight,) = layer.arrays()
    assert rule == "contraction" and len({c.text for c in found}) == 4
    for function in functions:
        np.testing.assert_allclose(function(x), x @ weight, rtol=1e-4, atol=1e-4)
    entry, runners = race(layer, path)
    assert entry["chosen"] == found[0].text and entry["best_us"] <= entry["chosen_us"]
    assert all(0 < r.seconds < 1 for r in runners)


def test_picked_are_favourites_and_some_others():
    ranking = np.arange(100)[::-1]
    picked = pick(ranking, 10, seed=3)
    assert picked[:6] == [99, 98, 97, 96, 95, 94] and len(set(picked)) == 10
    assert pick(ranking, 1000, seed=3) == ranking.tolist()
