# SPDX-License-Identifier: Apache-2.0
"""The zoo's table: ratios, what is refused and why, and which models are not measured again."""

from __future__ import annotations

import json
import subprocess

import pytest

pytestmark = pytest.mark.peers

from benchmarks import zoo_race  # noqa: E402


def _entry(model, ours, error=1.0, **peers):
    engines = {"roundel": {"cpu_ms": ours, "error_ratio": error}, **{k: {"cpu_ms": v} if isinstance(v, float) else {"error": v} for k, v in peers.items()}}
    return {"model": model, "kind": "text", "threads": 1, "engines": engines}


def test_the_best_of_the_engines_counts_and_eager_apart():
    entry = _entry("a", 2.0, ort=3.0, openvino=2.5, eager=1.5)
    assert zoo_race.against(entry, zoo_race.PEERS) == 1.25 and zoo_race.against(entry, ["eager"]) == 0.75


def test_the_table_tells_what_is_refused_wrong_or_slower_than_eager():
    entries = [
        _entry("good", 1.0, ort=2.0, openvino=3.0, eager=4.0), _entry("slow", 4.0, ort=2.0, eager=3.0, openvino="no\n  operator"),
        _entry("wrong", 1.0, error=50.0, ort=1.0, eager=2.0), {"model": "gone", "kind": "text", "threads": 1, "failed": "not done in 5 s"},
    ]
    text = zoo_race.table(entries)
    assert "3 models: geometric mean 1.000, lowest 0.50, under 0.9: 1." in text
    told = [row.split()[1] for row in text.splitlines() if row.startswith("- ")]
    assert told == ["slow", "wrong", "gone"] and "openvino no operator" in text


def test_what_is_measured_is_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    (tmp_path / "zoo.json").write_text(json.dumps([_entry("dlrm", 1.0, ort=2.0)]))
    ran = []

    def run(command, **_):
        ran.append(command[4])
        return subprocess.CompletedProcess(command, 0, json.dumps({"engines": _entry("", 3.0, ort=6.0)["engines"]}) + "\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    found = zoo_race.run_zoo(["dlrm", "deepfm"], 1, ["roundel", "ort"], 1.0, 10.0)
    assert ran == ["deepfm"] and [zoo_race.against(e, zoo_race.PEERS) for e in found] == [2.0, 2.0]
