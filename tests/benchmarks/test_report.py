# SPDX-License-Identifier: Apache-2.0
"""Tables from results."""

from __future__ import annotations

import pytest
from benchmarks.goals import best_peer

from benchmarks import report


def timing(ms, **more):
    return {"ms": ms, "min_ms": 0.9 * ms, "cpu_ms": ms, "quiet": True, **more}


MODELS = [
    {"case": "a", "batch": 1, "threads": 1, "engines": {"roundel": timing(2.0), "ort": timing(4.0), "openvino": {**timing(3.0), "quiet": False}}},
    {"case": "b", "batch": 1, "threads": 1, "engines": {"roundel": timing(4.0), "ort": timing(2.0), "tvm": {"skipped": "not here"}}},
]


def test_models():
    table = report.models_table(MODELS).splitlines()
    assert table[0] == "| model | threads | roundel ms | ort | openvino | best peer / roundel | by CPU time |"
    assert table[2] == "| a | 1 | **2.00** | 4.00 | 3.00° | **1.50** | 1.50 |"
    narrow = {**MODELS[0], "engines": {**MODELS[0]["engines"], "roundel-f16": timing(1.5)}}
    assert report.models_table([narrow]).splitlines()[2] == "| a | 1 | **2.00** | 1.50 | 4.00 | 3.00° | **1.50** | 1.50 |"
    assert best_peer(narrow) == ("openvino", 3.0)
    assert "geometric mean 0.87 over 2 cases, lowest 0.50" in report.models_summary(MODELS)


def test_two_machines_side_by_side():
    """A column for each; who was measured on one only has an empty cell."""
    machines = [{"cpu": cpu, "cores": 2} for cpu in ("one", "two")]
    entries = [{**MODELS[0], "machine": machines[0]}, {**MODELS[1], "machine": machines[0]}, {**MODELS[0], "machine": machines[1]}]
    assert report.side_by_side(entries).splitlines()[2:] == [
        "| model | threads | one, 2 cores | two, 2 cores |", "| --- | --- | --- | --- |", "| a | 1 | 1.50 | 1.50 |", "| b | 1 | 0.50 |  |"]
    assert report.side_by_side(entries[:2]) == ""


def test_kernels():
    layer = {"family": "gemm", "name": "64x64x64", "flops": 2e6, "bytes": 1e5, "threads": 1,
             "engines": {"roundel": timing(0.02, kernel_ms=0.01), "ort": timing(0.03)}}
    assert report.kernels_table([layer], 250.0).splitlines()[2] == "| gemm | 64x64x64 | 20 | 10 | 200 | 80% | ort 30 | **1.50** (2.70) |"
    assert "| gemm | 1 | 1.50 | 1.50 | 2.70 | 2.70 | 1 of 1 |" in report.kernels_summary([layer], 250.0)


def test_insert(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.insert(page, "new")
    assert page.read_text() == f"before\n{report.BEGIN}\n\nnew\n{report.END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="marks"):
        report.insert(page, "new")


def test_goals_name_the_layers_that_miss_them():
    from benchmarks.goals import Machine, goals_rows

    from roundel.target import Target
    from roundel.target.profile import Profile

    machine = Machine(Profile(100.0, 400.0, 200.0, 100.0, 40.0), 30.0, Target.host())
    entry = lambda family, name, ms, flops=0.0, nbytes=0.0: {"family": family, "name": name, "threads": 1, "flops": flops, "bytes": nbytes, "engines": {
        "roundel": {"ms": ms, "min_ms": ms}, "ort": {"ms": 1.0, "min_ms": 1.0}}}
    read = entry("gemv", "read at 50", 1.0, 0.0, 46e6)
    read["engines"]["roundel"]["read_gbs"] = 50.0
    found = {row[0].split(":")[0]: row for row in goals_rows([
        read, entry("gemm", "slow", 1.0, 80e6), entry("gemm", "fast", 1.0, 95e6), entry("softmax", "large", 10.0, 0.0, 1e12),
        entry("resnet18", "64->64 56x56 k3 s1", 0.4), entry("resnet18", "64->64 7x7 k3 s1", 2.0)], machine)}
    assert found["matrix products"][2:4] == ["**1.00**", "2 of 2"]  # the last of the three
    assert found["matrix-vector products"][2] == "**0.92**"
    assert found["convolutions"][2:] == ["0.50", "1 of 2", "64->64 7x7 k3 s1 (0.50)"]
    assert found["3x3 convolutions of stride 1, 12x12 and more"][2:4] == ["**2.50**", "1 of 1"]
    assert found["softmax, layer norm beyond the caches"][3] == "1 of 1"


def test_operators():
    entry = lambda name, ours, threads=1: {"name": name, "threads": threads, "engines": {"roundel": timing(ours), "ort": timing(1.0), "eager": {"skipped": ""}}}
    text = report.operators_summary([entry("good", 0.5), entry("bad", 4.0), entry("other", 1.0, 2)])
    assert "1 thread: 2 operators, best peer's time / ours: geometric mean 0.71, median 1.12, 1 at least 1, 1 at least 0.8" in text
    assert text.index("| bad | 4000 | 1000 |  | **0.25** |") < text.index("| good |")


def test_random_layers_by_seed():
    layers = [{"seed": seed, "name": f"layer {k}", "candidates": 10 * k, "chosen": "a", "best": "b", "chosen_us": 100.0 + k, "best_us": 100.0}
              for seed in (3, 4) for k in range(1, 11)]
    text = report.random_summary(layers)
    assert "- seed 3: 10 random layers, 10 to 100 candidates each (median 55): the chosen decisions are 5.5% behind" in text
    assert "at most 9.0% for nine in ten, 10% at worst" in text and "| 4 | layer 10 | 100 | a | 110 | b | 100 | 10% |" in text
