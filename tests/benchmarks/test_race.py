# SPDX-License-Identifier: Apache-2.0
"""Candidates of a layer are compiled into a file and raced from there."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import onnx
import pytest
from benchmarks.decisions import load, pick
from benchmarks.layers import Layer, matmul
from benchmarks.race import build, race

from benchmarks import random_layers
from roundel.frontend.onnx import from_onnx
from roundel.ir import tir


def test_candidates_are_kept_and_raced(tmp_path):
    layer, path = matmul(9, 40, 24), tmp_path / "layer.pickle"
    count = build(layer, 4, 0, path)
    rule, found, functions = load(path)
    x, (weight,) = layer.arrays()
    assert rule == "contraction" and len({c.text for c in found}) == len(found) == count
    sketches = [c.text.split()[0] for c in found]
    assert sketches[:4] == ["contraction"] * 4 and {"windows", "columns", "generic"} <= set(sketches[4:])  # the reference is the best of all
    for function in functions:
        np.testing.assert_allclose(function(x), x @ weight, rtol=1e-4, atol=1e-4)
    entry, runners = race(layer, [path, path])  # the second: what another version of the compiler made
    assert entry["chosen"] == found[0].text and len(runners) == 2 * count and entry["best_us"] <= entry["chosen_us"]
    assert all(0 < r.seconds < 1 for r in runners)


def test_one_drawing_has_layers_of_all_kinds():
    kinds = len(random_layers.KINDS)
    families = [layer.family for layer in islice(random_layers.draw(random.Random(5)), 2 * kinds)]
    assert sorted(set(families[:kinds])) == sorted(set(families[kinds:])) and len(set(families)) > 9


def test_picked_are_favourites_and_some_others():
    ranking = np.arange(100)[::-1]
    picked = pick(ranking, 10, seed=3)
    assert picked[:6] == [99, 98, 97, 96, 95, 94] and len(set(picked)) == 10
    assert pick(ranking, 1000, seed=3) == ranking.tolist()


def test_a_transposition_is_raced_against_random_nests(tmp_path):
    layer = Layer("transpose", "", "Transpose", (24, 40), (40, 24), (), (("perm", (1, 0)),), 960.0)
    count = build(layer, 3, 0, tmp_path / "layer.pickle", "avx2")
    rule, found, functions = load(tmp_path / "layer.pickle", threads=2)
    assert rule == "transposition" and count == len(found) > 1
    x = layer.arrays()[0]
    for function in functions:
        np.testing.assert_array_equal(function(x), x.T)


@pytest.mark.parametrize("kind", sorted(random_layers.KINDS))
def test_every_kind_of_random_layer_is_a_model(kind, tmp_path):
    layer = random_layers.KINDS[kind](random.Random(1))
    layer.save(tmp_path / "layer.onnx")
    main = from_onnx(onnx.load(tmp_path / "layer.onnx"))["main"]
    shape = main.ret_sinfo.shape
    assert [n.value for n in shape[layer.is_symbolic:]] == list(layer.out[layer.is_symbolic:])
    assert layer.is_symbolic == isinstance(shape[0], tir.Var)
