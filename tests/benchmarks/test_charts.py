# SPDX-License-Identifier: Apache-2.0
"""What the charts say in words; that they can be drawn at all needs Matplotlib."""

import pytest

from benchmarks import charts, results


@pytest.mark.parametrize(("name", "shown"), [
    ("dw 32->32 112x112 k3 s2", "depthwise 32, 112x112, 3x3 /2"), ("64->128 56x56 k1 s1", "64 → 128, 56x56, 1x1"), ("128x768x3072", "128 x 768 x 3072"),
])
def test_layers(name, shown):
    assert charts.layer(name).replace(charts.TIMES, "x") == shown


def test_every_model_of_the_results_has_the_name_that_people_know():
    assert not [x["model"] for x in results.read("models") if x["model"] not in charts.NAMES]
    assert charts.title("bert_dyn@17") == "BERT, any length: 17 tokens"


@pytest.mark.parametrize("kind", ["models", "kernels", "roofline"])
def test_every_result_tells_its_machine_and_day(kind):
    entries = results.read(kind)
    assert all("machine" in x and "when" in x for x in entries)
    assert charts.measured(entries, "Times").endswith(".") and "2 cores" in charts.measured(entries, "Times") and "2026-" in charts.measured(entries, "Times")


@pytest.mark.parametrize("kind", ["models", "kernels", "roofline"])
def test_charts_are_drawn(kind):
    pytest.importorskip("matplotlib").use("Agg")
    figure = getattr(charts, kind)(results.read(kind))
    words = " ".join(t.get_text() for t in figure.findobj(match=lambda artist: hasattr(artist, "get_text")))
    assert "batch 1" in words and "TVM" not in words.replace("TVM, not tuned", "") and "resnet" not in words
