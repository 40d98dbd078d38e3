# SPDX-License-Identifier: Apache-2.0
"""Timing in turns, the choice of variants, results in files."""

from __future__ import annotations

import time

import numpy as np
import pytest
from benchmarks.models import Case, cases

from benchmarks import latency, measure, results


def test_interleave_orders_contenders(monkeypatch):
    monkeypatch.setattr(measure, "PAUSE", 0.0)
    found = measure.interleave({"slow": lambda: time.sleep(0.002), "fast": lambda: time.sleep(0.0005)}, budget=0.05, block=0.004)
    assert found["fast"].seconds < found["slow"].seconds
    assert set(found["fast"].summary()) == {"ms", "min_ms", "median_all_ms", "cpu_ms", "quiet", "calls", "quiet_calls"}


def test_median_of_quiet_calls_else_of_the_fastest_quarter():
    assert measure.Timing([9.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).seconds == 2.0
    noisy = measure.Timing([8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [8.0])
    assert noisy.seconds == 1.5 and not noisy.is_quiet


def test_fastest_variant_stands_for_its_engine():
    found = {"ort:spinning": {"ms": 2.0}, "ort:waiting": {"ms": 1.0}, "roundel": {"ms": 1.5}, "tvm": {"skipped": "no module"}}
    engines = latency.fastest_variants(found)
    assert engines["ort"] == {"ms": 1.0, "variant": "waiting", "variants": {"spinning": 2.0, "waiting": 1.0}}
    assert engines["roundel"] == {"ms": 1.5} and engines["tvm"] == {"skipped": "no module"}
    assert latency.ratio({"engines": engines}) == pytest.approx(1.0 / 1.5)


def test_difference():
    a = np.array([1.0, -4.0], np.float32)
    assert latency.difference(a, a + np.float32(1)) == {"max_difference": 1.0, "relative_difference": pytest.approx(1 / 3)}
    with pytest.raises(ValueError, match="shape"):
        latency.difference(a, a[:1])


def test_cases():
    assert [c.name for c in cases(["resnet18"], [1, 8])] == ["resnet18", "resnet18.b8"]
    assert [c.name for c in cases(["bert_dyn"], [1])] == ["bert_dyn@17", "bert_dyn@128", "bert_dyn@300"]
    assert Case("bert_dyn", 1, 300).onnx_stem == "bert_dyn"
    with pytest.raises(ValueError, match="no model"):
        cases(["resnet19"], [1])


def test_results_keep_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    results.merge("models", [{"case": "a", "threads": 1, "v": 1}, {"case": "a", "threads": 2, "v": 2}], ("case", "threads"))
    results.merge("models", [{"case": "a", "threads": 1, "v": 3}], ("case", "threads"))
    assert [(e["threads"], e["v"]) for e in results.read("models")] == [(1, 3), (2, 2)]


def test_results_of_another_machine_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    for cpu in ("znver5, 512-bit vectors", "haswell, 256-bit vectors"):
        results.merge("models", [{"case": "a", "threads": 1, "machine": {"cpu": cpu, "cores": 2}}], ("case", "threads"))
    assert list(results.by_machine(results.read("models"))) == ["AMD Zen 5, 512-bit vectors, 2 cores", "haswell, 256-bit vectors, 2 cores"]
    assert [results.chart_name("models", name) for name in results.by_machine(results.read("models"))] == ["models", "models-haswell"]
