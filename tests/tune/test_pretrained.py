# SPDX-License-Identifier: Apache-2.0
"""What other programs tell of a candidate: the model that ships, and one that is trained here."""

import json

import numpy as np
import pytest
from benchmarks.pretrain import Spread, train

from roundel.strategy.program import Program
from roundel.target import Target
from roundel.tune import pretrained
from roundel.tune.learned import Learned
from roundel.tune.pretrained import OF_PROGRAMS, Pretrained, features, lightgbm, shipped
from roundel.tune.space import Space

from .programs import doubled, product

TARGET = Target("x86-64-v3")
pytestmark = pytest.mark.skipif(lightgbm() is None, reason="needs lightgbm")


@pytest.fixture(scope="module")
def spaces():
    return [Space.of(Program(f, TARGET)) for f in (product(), product(64, 48, 96), doubled(1 << 14))]


def rows_of(space, way, count=40):
    return space.ways[way].random(count, np.random.default_rng(0))


def test_the_model_that_ships_judges_any_space(spaces):
    model = shipped()
    assert model is not None and len(model.sketches) > 5
    for space in spaces:
        for way in range(len(space.ways)):
            found = model.residual(space, way, rows_of(space, way))
            assert found.shape == (len(rows_of(space, way)),) and np.isfinite(found).all() and np.abs(found).max() < 3


def test_features_are_the_same_facts_for_all_programs(spaces):
    for space in spaces:
        rows = rows_of(space, 0)
        found = features(space, 0, rows, [space.ways[0].name], ["rows", "no such decision"])
        assert found.shape == (len(rows), 3 + len(OF_PROGRAMS)) and not found[:, 0].any() and np.isnan(found[:, -1]).all()


def test_what_is_trained_on_some_programs_holds_for_others(spaces, tmp_path, monkeypatch, capsys):
    """Where tall tiles are half as fast as expected, in all programs."""
    def task(k):
        space = Space.of(Program(product(16 + 8 * k, 32, 40 + 8 * k), TARGET), "rules")
        rows = []
        for c in Spread(space, k).propose(16):
            choice = {n: float(v) for n, v in space.choice(c).items()}
            facts = features(space, c.way, np.asarray([c.rows]).reshape(1, -1), [], [])[0][1:]
            rows.append({"sketch": space.sketch(c).name, "facts": facts.tolist(), "decisions": choice, "residual": np.log(2.0) * (choice.get("rows", 0) > 3)})
        return {"name": f"task {k}", "rows": rows}

    train([task(k) for k in range(10)], tmp_path / "model.json")
    assert "each task predicted from others" in capsys.readouterr().out
    kept = json.loads((tmp_path / "model.json").read_text())
    model = Pretrained(kept["sketches"], kept["decisions"], lightgbm().Booster(model_str=kept["trees"]))
    space = spaces[1]
    way = next(k for k, w in enumerate(space.ways) if "rows" in w.columns(rows_of(space, k)))
    rows = rows_of(space, way, 200)
    told, tall = Learned(space, before=model).residual(way, rows), space.ways[way].columns(rows)["rows"] > 3
    assert told[tall].mean() > told[~tall].mean() + 0.2
    assert not Learned(space, before=None).residual(way, rows).any()


def test_a_file_that_cannot_be_read_costs_the_model_alone(monkeypatch, caplog):
    monkeypatch.setattr(pretrained, "OF_PROGRAMS", ())
    monkeypatch.setattr(pretrained.json, "loads", lambda text: {})
    assert shipped.__wrapped__() is None and "cannot be read" in caplog.text
