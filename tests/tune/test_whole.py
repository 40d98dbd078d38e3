# SPDX-License-Identifier: Apache-2.0
"""Winners inside of their model: times of kernels with records and without, by turns."""

import numpy as np
import pytest

import roundel as rd
from roundel.ir.digest import structural_digest
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.strategy.records import Timing
from roundel.strategy.replay import record_of
from roundel.target import Target
from roundel.tune.space import Space
from roundel.tune.whole import Proposed, Whole

from .programs import FakeBuilder, FakeRunner

W = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32")):
        return R.nn.relu(R.matmul(x, R.const(W)))


def slow_record(task):
    """The record of the schedule that is expected to be the slowest."""
    space = Space.of(task.program, "rules")
    worst = max(space, key=space.cycles)
    return record_of(task.program, space.sketch(worst).name, space.schedule(worst), threads=1, timings=[Timing((64,), 1e-6)])


def test_kernels_are_timed_with_records_and_without():
    (task,) = rd.tune.tasks(Layer, sizes={"n": [64]})
    whole = Whole(Layer, Target.host(), 1, {"n": 64})
    times = whole.ratios({task.key(1).program: slow_record(task)})
    assert list(times) == list(task.names) and len(times[task.name]) >= 8
    assert np.median([with_it / without for with_it, without in times[task.name]]) > 1.2


def test_a_model_whose_sizes_are_not_known_is_not_compared():
    assert Whole(Layer, Target.host(), 1, {}).ratios({}) == {}


class Here(FakeRunner):
    """What is measured elsewhere is not compared here."""

    is_here = True


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    """What tuning gives for a layer whose default is the slowest schedule, where the comparisons inside of the model give these ratios."""

    def run(of_kernels, of_model):
        asked, first = [], []
        made = {n: [(of_kernels, 1.0)] * 9 for n in rd.tune.tasks(Layer, sizes={"n": 64})[0].names}
        monkeypatch.setattr(Whole, "ratios", lambda self, records: asked.append(dict(records)) or made)
        monkeypatch.setattr(Whole, "total", lambda self, proposed, other: asked.append(dict(proposed.schedules)) or [of_model] * 9)

        def seconds(func):
            """The default, which is measured first, is slower than all others."""
            first.append(structural_digest(func))
            return 1e-3 if first[-1] == first[0] else 5e-4

        result = rd.tune(Layer, sizes={"n": 64}, threads=1, trials=8, db=tmp_path / "x.jsonl", builder=FakeBuilder(), runner=Here(seconds))
        return result, [len(records) for records in asked]

    return run


def test_tuning_a_model_ends_with_the_model(tuned):
    result, asked = tuned(of_kernels=0.5, of_model=0.8)
    assert asked == [1, 1] and result.rows[0].is_tuned and result.model_gain == pytest.approx(1.25) and "end to end  " in str(result)


def test_a_winner_that_is_slower_inside_of_the_model_gives_way(tuned):
    result, asked = tuned(of_kernels=2.0, of_model=0.8)
    assert asked == [1] and not result.rows[0].is_tuned and result.model_gain is None


def test_winners_by_which_the_model_is_not_faster_give_way(tuned):
    result, asked = tuned(of_kernels=0.5, of_model=0.995)
    assert asked == [1, 1] and not result.rows[0].is_tuned and result.model_gain is None


def test_a_model_is_compiled_once_for_all_comparisons():
    whole = Whole(Layer, Target.host(), 1, {"n": 64}, seconds=0.0)
    assert whole.build() is whole.build(Proposed({}))
    assert len(whole.total(Proposed(), Proposed())) == 8
