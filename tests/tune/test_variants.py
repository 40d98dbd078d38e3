# SPDX-License-Identifier: Apache-2.0
"""Programs with symbolic sizes under several schedules, each for the sizes at which it is the fastest."""

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import tir
from roundel.ir.errors import ScheduleError
from roundel.strategy import template
from roundel.strategy.guarded import guarded
from roundel.tune.attempt import Attempt
from roundel.tune.database import Database
from roundel.tune.measure import Timed
from roundel.tune.task import Case
from roundel.tune.variants import Finalist, shared, varying_size

from .programs import FakeBuilder

SIZES = (17, 64, 128, 300)


def rows():
    n, r = tir.Var("n", "int64"), te.reduce_axis((0, 40), "r")
    a, b = te.placeholder((n, 40), "float32", "A"), te.placeholder((40, 32), "float32", "B")
    c = te.compute((n, 32), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")


class BySize:
    """A runner for which ``seconds(sketch, rows)`` is the time of a program."""

    def __init__(self, seconds):
        self.seconds = seconds

    def race(self, job, reference, champion, challengers, effort=None, seconds=0.0):
        of = lambda a: [self.seconds(a.built[0].attrs["scheduled"], case[0].shape[0]) for case in job.cases]
        base = of(champion)

        def timed(artifact):
            own = of(artifact)
            ratios = tuple(a / b for a, b in zip(own, base, strict=True))
            return Timed(ratios, tuple(own), 0.0, 20, 20, tuple((r,) * 20 for r in ratios))

        return timed(champion), [timed(c) for c in challengers]

    def close(self):
        pass


def low(sch, target):
    sch.parallel(sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0])


def tall(sch, target):
    outer, _ = sch.split(sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0], [None, 8])
    sch.parallel(outer)


def by_height(sketch, rows):
    return rows * (1e-5 if sketch == ("low" if rows < 100 else "tall") else 2e-5)


def tuned(model, db):
    return rd.tune(model, sizes={"n": list(SIZES)}, space=[template(low), template(tall)], search="exhaustive", threads=1, trials=4, db=db,
                   builder=FakeBuilder(), runner=BySize(by_height))


def test_each_size_has_the_schedule_that_is_fastest_there(tmp_path):
    result = tuned(rows(), tmp_path / "db")
    (row,), (attempt,) = result.rows, result.attempts
    assert row.is_tuned and row.sketch == "tall" and [(most, e.sketch) for most, e in attempt.variants] == [(90, "low")]
    assert row.best_ms == pytest.approx(np.mean([n * 1e-2 for n in SIZES]))
    record = Database(tmp_path / "db").best(attempt.task.key(1))
    assert [(v.most, v.sketch) for v in record.variants] == [(90, "low")]
    assert [t.seconds for t in record.timings] == pytest.approx([n * 1e-5 for n in SIZES])
    func = result.func()
    assert "if n <= 90" in func.script()
    kernel = rd.build(func, threads=1)["main"]
    for n in (1, 90, 91, 300):
        a, b, c = np.random.rand(n, 40).astype("float32"), np.random.rand(40, 32).astype("float32"), np.zeros((n, 32), "float32")
        kernel(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    again = tuned(rows(), tmp_path / "db")
    assert [(most, e.sketch) for most, e in again.attempts[0].variants] == [(90, "low")]


@pytest.mark.parametrize("shares", [True, False])
def test_no_size_takes_longer_than_untuned(tmp_path, monkeypatch, shares):
    """A schedule that is faster for all sizes together and slower at one shares its place with the default there, or gives way to it."""
    def seconds(sketch, rows):
        return rows * (1e-5 if sketch not in ("low", "tall") else 1.1e-5 if rows < 30 else 0.5e-5)

    if not shares:
        monkeypatch.setattr(Attempt, "_layouts", lambda self, entry: [(0, entry.sketch)])
    result = rd.tune(rows(), sizes={"n": list(SIZES)}, space=[template(low), template(tall)], search="exhaustive", threads=1, trials=4,
                     db=tmp_path / "db", builder=FakeBuilder(), runner=BySize(seconds))
    (attempt,) = result.attempts
    default = attempt.default.sketch
    assert (attempt.winner.sketch == default) != shares
    assert [(most, e.sketch) for most, e in attempt.variants] == ([(32, default)] if shares else [])


def test_a_model_is_compiled_from_schedules_behind_guards(tmp_path):
    from roundel.script import ir as I
    from roundel.script import relax as R

    @I.ir_module
    class Layer:
        @R.function
        def main(x: R.Tensor(("n", 40), "float32"), w: R.Tensor((40, 32), "float32")):
            return R.matmul(x, w)

    tuned(Layer, tmp_path / "db")
    model = rd.compile(Layer, records=tmp_path / "db", threads=1, verify=True)
    assert model.metadata["records"]["kernels"] == 1
    for n in (3, 200):
        x, w = np.random.rand(n, 40).astype("float32"), np.random.rand(40, 32).astype("float32")
        np.testing.assert_allclose(model(x, w), x @ w, rtol=1e-5)


def cases(*sizes, **fixed):
    return [Case({"n": n, **fixed}, 1 / len(sizes)) for n in sizes]


def finalist(*ratios, noise=0.0):
    rng = np.random.default_rng(0)
    return Finalist(object(), tuple(tuple(r * (1 + noise * rng.standard_normal(20))) for r in ratios))


def test_sizes_are_shared_in_runs_by_up_to_three():
    winner, small, middle, large = finalist(0.9, 0.9, 0.9, 0.9), finalist(0.5, 1, 1, 1), finalist(1, 0.5, 1, 1), finalist(1, 1, 1, 0.5)
    found = shared(cases(*SIZES), (1.0,) * 4, winner, [small, middle, large], "n")
    assert [most for most, _ in found] == [32, 90, None] and next(f for _, f in found) is small and len(found) == 3
    assert shared(cases(300, 17), (1.0, 1.0), finalist(0.9, 0.9), [finalist(1, 0.5)], "n")[0][0] == 71  # in the order of the sizes


def test_a_schedule_that_is_not_surely_faster_gets_no_guard():
    winner, lucky = finalist(1, 1), finalist(0.995, 1.1)
    assert shared(cases(17, 64), (1.0, 1.0), winner, [lucky, finalist(0.97, 1.1, noise=0.5)], "n") == [(None, winner)]


def test_one_size_has_to_vary():
    assert varying_size(cases(17, 64)) == varying_size(cases(17, 64, batch=2)) == "n"
    assert varying_size(cases(17)) is None and varying_size([Case({"n": 1, "m": 1}), Case({"n": 2, "m": 2})]) is None


def test_schedules_that_read_a_parameter_otherwise_share_nothing():
    func = rows()
    a = func.buffer_params[0]
    other = func.replace(buffer_map=[(p, b.replace(shape=(b.shape[0], tir.index_const(41))) if b is a else b) for p, b in func.buffer_map])
    with pytest.raises(ScheduleError, match="alike"):
        guarded([(a.shape[0], 4, other)], func)
