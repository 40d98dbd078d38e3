# SPDX-License-Identifier: Apache-2.0
"""Choices of the graph: few whole models are measured, the fastest is found, remembered and compiled from then on."""

import random
from statistics import median

import numpy as np
import pytest

import roundel as rd
from roundel.ir import graph
from roundel.ir.choice import EXPECTED, MEASURED
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.target import Target
from roundel.tune import graphs
from roundel.tune.database import Database
from roundel.tune.graphs import Graphs, Way
from roundel.tune.whole import Proposed, Whole

RNG = np.random.default_rng(0)
W = RNG.standard_normal((24, 16, 1, 1)).astype("float32") / 8
X = RNG.standard_normal((1, 16, 10, 10)).astype("float32")


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor((1, 16, 10, 10), "float32")):
        with R.dataflow():
            y = R.nn.conv2d(x, R.const(W))
            z = R.nn.relu(y)
            R.output(z)
        return z


class Imagined:
    """A model whose kernels take what ``seconds`` says of their digests, in place of one that is compiled."""

    def __init__(self, way, seconds):
        self.way, self.of = way, seconds
        self.results = []

    def seconds(self, threads):
        return sum(t.weight * self.of(d) for d, t in self.way.tasks.items())

    def kernels(self):
        return {name: t.weight * self.of(d) for d, t in self.way.tasks.items() for name in t.names[:1]}


PREPARE = Graphs._prepared
PREPARED = {}  # ways by their choices: preparing them takes the time of these tests


def search(database, monkeypatch, seconds, most=8):
    def prepared(self, choices):
        key = frozenset(choices.items()), len(database)
        if key not in PREPARED:
            PREPARED[key] = PREPARE(self, choices), dict(self._cycles), dict(self._alike)
        way, cycles, alike = PREPARED[key]
        self._cycles |= cycles
        self._alike |= alike
        self.ways[key[0]] = found = Way(choices, way.places, way.tasks)
        return found

    monkeypatch.setattr(graphs, "MOST_WAYS", 16)
    monkeypatch.setattr(Graphs, "_prepared", prepared)
    monkeypatch.setattr(Graphs, "_opened", lambda self, way: Imagined(way, lambda d: seconds(self, d)))
    return Graphs(Whole(Layer, Target.host(), 1, {}), [({}, 1.0)], database, most)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "tuned.jsonl")


def test_a_quarter_of_the_models_finds_one_that_is_nearly_the_fastest(database, monkeypatch):
    """Where kernels take what is expected of them but for a few parts in a hundred."""
    for seed in range(4):
        def seconds(self, digest, seed=seed):
            return 1e-9 * self._cycles[digest] * np.exp(random.Random(f"{seed} {digest}").gauss(0, 0.03))

        found = search(database, monkeypatch, seconds, most=4)
        chosen = found.run()
        best = min((w for w in found.ways.values() if w.ratio is not None), key=lambda w: w.ratio)
        time_of = lambda w: Imagined(w, lambda d: seconds(found, d)).seconds(1)  # noqa: B023
        assert chosen.measured <= 4 and chosen.prepared > 12
        assert time_of(best) <= 1.05 * min(map(time_of, found.ways.values()))


def test_what_was_found_is_compiled_from_then_on_and_not_searched_again(database, monkeypatch):
    def seconds(self, digest):  # boundaries cost nothing, and whatever is fused takes ten times as long
        return 1e-6 * (10.0 if any("_" in n for t in (w.tasks.get(digest) for w in self.ways.values()) if t for n in t.names) else 1.0)

    first = search(database, monkeypatch, seconds)
    chosen = first.run()
    assert chosen.gain > 1.5 and median(chosen.ratios) < 0.7 and any("separate instead of fused" in c for c in chosen.changes)
    assert database.append(*chosen.records)
    model = rd.compile(Layer, records=database, threads=1, target=Target.host())
    np.testing.assert_allclose(model(X), rd.compile(Layer, records=False, threads=1)(X), rtol=1e-3, atol=1e-4)
    again = search(database, monkeypatch, seconds)
    again.run()
    assert again.ways[frozenset()].kernels in {w.kernels for w in first.ways.values() if w.choices}


def test_interrupting_keeps_what_was_found(database, monkeypatch):
    found = search(database, monkeypatch, lambda self, digest: 1e-9 * self._cycles[digest])
    told = []

    def tell(text):
        told.append(text)
        raise KeyboardInterrupt

    found.tell = tell
    chosen = found.run()
    assert chosen.was_interrupted and chosen.measured == 2 and "2 measured" in told[0]


def test_choices_without_a_faster_way_stay(database, monkeypatch):
    chosen = search(database, monkeypatch, lambda self, digest: 1e-6 * self._cycles[digest]).run()
    assert chosen.changes == () or chosen.gain > 1
    assert all(r.taken in r.seconds for r in chosen.records)


def test_a_way_that_computes_something_else_is_not_taken(database, monkeypatch, caplog):
    found = search(database, monkeypatch, lambda self, digest: 1e-6)
    opened = Graphs._opened

    def wrong(self, way):
        model = opened(self, way)
        model.results = [np.full(3, float(bool(way.choices)), "float32")]
        return model

    monkeypatch.setattr(Graphs, "_opened", wrong)
    chosen = found.run()
    assert not chosen.changes and "are not taken: wrong result" in caplog.text


def test_real_models_are_measured_and_sizes_without_values_are_told(database, monkeypatch, caplog):
    monkeypatch.setattr(graphs, "ROUNDS", 2)
    monkeypatch.setattr(graphs, "LAST", 9)
    monkeypatch.setattr(graphs, "MOST_WAYS", 3)
    found = Graphs(Whole(Layer, Target.host(), 1, {}), [({}, 1.0)], database, 2)
    assert found.run().measured == 2 and len(found._seconds) >= 2

    @I.ir_module
    class Symbolic:
        @R.function
        def main(x: R.Tensor((1, 16, "n", 10), "float32")):
            return R.nn.relu(R.nn.conv2d(x, R.const(W)))

    assert Graphs(Whole(Symbolic, Target.host(), 1, {}), [({}, 1.0)], database, 2).run().measured == 0
    assert "does not run with random inputs" in caplog.text


def test_boundaries_and_packing_have_signatures_where_there_are_records():
    from roundel import driver

    made = driver.prepare(Layer, target=Target.host(), records=Proposed()).choices.made
    assert {c.kind for c in made if c.signature} >= {"kernel", "packing"} and all(c.reason == EXPECTED for c in made)
    place = next(c for c in made if c.kind == "kernel" and len(c.names) > 1)
    proposed = Proposed(choices={place.signature: type("R", (), {"taken": "separate", "seconds": {}, "libraries": {}, "crashed": {}, "wrong": {}})()})
    again = next(c for c in driver.prepare(Layer, target=Target.host(), records=proposed).choices.made if c.signature == place.signature)
    assert (again.taken, again.reason) == ("separate", MEASURED)
    assert isinstance(Layer["main"], graph.Function)
