# SPDX-License-Identifier: Apache-2.0
"""Tuning from the beginning to the record, with a runner that knows the times."""

import pickle
from dataclasses import replace

import pytest

import roundel as rd
from roundel.ir.equal import structural_equal
from roundel.ir.errors import OptionError, TuneError
from roundel.strategy import template
from roundel.strategy.cost import expected_cycles
from roundel.strategy.program import Program
from roundel.strategy.records import Timing
from roundel.strategy.replay import replay
from roundel.target import Target
from roundel.tune.attempt import START
from roundel.tune.database import Database
from roundel.tune.measure import FINAL, Failure, Plan
from roundel.tune.search import Exhaustive
from roundel.tune.session import Session, Settings
from roundel.tune.space import Candidate, Space
from roundel.tune.whole import Whole

from .programs import FakeBuilder, FakeRunner, completed, doubled, product

TARGET = Target.host()


def generic_is_twice_as_fast(func):
    return expected_cycles(func, TARGET, cores=1) * (0.5e-9 if func.attrs["scheduled"] == "generic" else 1e-9)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "tuned.jsonl"


def run(model, db, runner=None, builder=None, **settings):
    return rd.tune(model, threads=1, db=db, runner=runner or FakeRunner(), builder=builder or FakeBuilder(), **settings)


def test_the_fastest_schedule_is_found_and_recorded(db):
    result = run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=24)
    (row,) = result.rows
    assert row.sketch == "generic" and row.is_tuned and row.trials == 24 and row.gain > 1.5
    program = Program(product(), TARGET)
    record = Database(db).best(rd.tune.tasks(product())[0].key(1))
    assert record.sketch == "generic" and record.default == pytest.approx(row.default_ms * 1e-3)
    assert expected_cycles(replay(program, record).func, TARGET, cores=1) == expected_cycles(result.func(), TARGET, cores=1)


def test_the_default_stays_where_nothing_is_surely_faster(db):
    runner = FakeRunner(lambda func: 1e-3, noise=0.05)
    (row,) = run(product(), db, runner, trials=32).rows
    assert not row.is_tuned and row.sketch == "contraction" and row.gain == 1


def test_luck_is_not_handed_on(db):
    """The time of a champion is that of many races, not of the one that made it champion."""
    result = run(product(), db, FakeRunner(lambda func: 1e-3, noise=0.2), trials=64)
    assert result.attempts[0].best.total > 0.85e-3


def test_the_same_command_goes_on_where_it_was(db):
    first = run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=16)
    builder, runner = FakeBuilder(), FakeRunner(generic_is_twice_as_fast)
    again = run(product(), db, runner, builder, trials=16)
    assert builder.built == 2 and again.rows[0].trials == 16  # the default and the best, to be compared
    assert again.rows[0].sketch == first.rows[0].sketch and again.rows[0].best_ms == pytest.approx(first.rows[0].best_ms)
    more = run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=24)
    assert more.rows[0].trials == 24
    names = [(r.sketch, tuple(r.decisions.items())) for r in Database(db) if r.trace is None]
    assert len(names) == len(set(names)) == 24


def test_failures_are_remembered_and_the_search_goes_on(db):
    def seconds(func):
        return Failure("crash", "SIGSEGV") if func.attrs["scheduled"] == "generic" else 1e-3

    (row,) = run(product(), db, FakeRunner(seconds), trials=24, search="random").rows
    assert 0 < row.failures < 24
    assert {r.error for r in Database(db)} == {"", "crash: SIGSEGV"}


def test_a_default_that_cannot_be_measured_leaves_the_others(db, caplog):
    builder = FakeBuilder(broken=lambda func: len(func.params) == 2)
    result = run(rd.IRModule({"a": doubled(1 << 20), "b": product()}), db, builder=builder, trials=8)
    assert result["a"].default_ms is None and "broken" in result["a"].note and result["b"].trials == 8
    with pytest.raises(TuneError, match="not tuned"):
        result.func("a")


def test_interrupting_keeps_what_was_found(db):
    def watch(session):
        if session.trials >= 16 and session.phase == "measuring":
            raise KeyboardInterrupt

    result = run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=500, watch=watch)
    assert result.was_interrupted and result.rows[0].is_tuned and 16 <= result.rows[0].trials < 40
    assert Database(db).best(rd.tune.tasks(product())[0].key(1)) is not None


def test_what_only_this_process_can_schedule_is_scheduled_here(db):
    """Functions and intrinsics that the user's program registers are known in no other process."""

    class Elsewhere(FakeBuilder):
        def build(self, sources, target):
            refused = [isinstance(s, Plan) for s in sources]
            return [completed(Failure("schedule", "no such intrinsic")) if no else f for no, f in zip(refused, super().build(sources, target), strict=True)]

    (row,) = run(product(), db, FakeRunner(generic_is_twice_as_fast), Elsewhere(), trials=16).rows
    assert row.sketch == "generic" and row.trials == 16 and not row.failures


def test_candidates_are_scheduled_where_they_are_built(db):
    plans = []

    class Builder(FakeBuilder):
        def build(self, sources, target):
            plans.extend(isinstance(s, Plan) for s in sources)
            return super().build([pickle.loads(pickle.dumps(s)) for s in sources], target)

    run(product(), db, builder=Builder(), trials=16)
    assert plans.count(False) == 1  # the default


def test_postprocessors_and_mutators_go_with_every_sketch(db):
    asked = []

    def marked(sch):
        sch.annotate(sch.get_block("root"), "note", 1)

    def taller(decisions, values, rng):
        asked.append(decisions)
        return {"rows": max(values["rows"])}

    result = run(product(), db, FakeRunner(lambda func: 1e-3 if "note" in func.root_block.annotations else 2e-3), space=["contraction"], trials=32,
                 postprocessors=[marked], mutators=[taller])
    assert result.rows[0].sketch == "contraction+marked" and result.rows[0].gain == pytest.approx(2) and asked
    assert replay(Program(product(), TARGET), Database(db).best(rd.tune.tasks(product())[0].key(1))).func.root_block.annotations["note"] == 1
    again = run(product(), db, FakeRunner(lambda func: 1e-3), trials=48, mutators=[lambda decisions, values, rng: 1 // 0])
    assert again.rows[0].trials == 48  # a mutator that fails costs its candidates


def test_small_spaces_are_searched_to_their_end(db):
    def halves(sch, target):
        i, *_ = sch.get_loops(sch.get_block("C"))
        sch.split(i, [None, sch.knob("rows", [2, 4, 8])])

    result = run(product(), db, space=[template(halves)], search="exhaustive", seconds=60)
    assert result.rows[0].trials >= 3 and {r.sketch for r in Database(db)} >= {"halves"}


def test_time_ends_the_search(db):
    result = run(product(), db, seconds=0.01)
    assert result.rows[0].trials <= 16


def test_time_for_the_end_is_kept(db, monkeypatch):
    """Of the time that is asked for: a batch, the last races, and twice compiling and running the model."""
    result = run(product(), db, trials=8)
    session = Session([], FakeBuilder(), FakeRunner(), Database(db), Settings(seconds=100.0), whole=Whole(None, TARGET, 1, {}, seconds=5.0))
    session.attempts, session._batch, session._compiling = result.attempts, 2.0, 10.0
    races = result.attempts[0].seconds_of(FINAL)
    assert 0 < races == pytest.approx(2 * START + 40 * 2e-3 * (1 + len(result.attempts[0].finalists)))
    for elapsed, over in ((66, False), (69, True)):
        monkeypatch.setattr(Session, "elapsed", elapsed)
        assert session._time_is_over() == over
    assert session._share_of_the_last_races() == pytest.approx(min(1.0, 1.0 / races))


@pytest.mark.parametrize("settings", [{"seconds": 0}, {"trials": 0}, {"search": "magic"}, {"space": "everything"}])
def test_what_cannot_be_asked_for_is_refused(db, settings):
    with pytest.raises(OptionError):
        run(product(), db, **settings)


def test_the_result_is_a_table_and_json(db):
    result = run(rd.IRModule({"a": doubled(), "b": product()}), db, trials=16)
    text, facts = str(result), result.as_dict()
    assert "gain" in text and text.count("\n") == 3 and {t["name"] for t in facts["tasks"]} == {"a", "b"} and facts["trials"] == 16
    with pytest.raises(TuneError, match="several tasks"):
        result.schedule()


def test_a_winner_that_is_no_faster_inside_of_the_model_gives_way_to_the_default(db):
    attempt = run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=16).attempts[0]
    assert attempt.winner is not attempt.default
    faster, slower = {"main": [(0.9, 1.0)] * 9}, {"main": [(1.1, 1.0)] * 9, "other": [(0.1, 1.0)] * 9}
    assert not attempt.loses({}) and not attempt.loses(faster) and attempt.loses(slower) and attempt.winner is attempt.default


def test_what_was_recorded_and_is_found_slower_is_recorded_again(db):
    key = rd.tune.tasks(product())[0].key(1)
    run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=16)
    assert Database(db).best(key).sketch == "generic"
    run(product(), db, FakeRunner(lambda func: 1.1e-3 if func.attrs["scheduled"] == "generic" else 1e-3), trials=16)
    assert Database(db).best(key).sketch == "contraction"


def test_every_earlier_winner_is_measured_again(db):
    """Also where a lucky trial looks faster than what was decided for."""
    key = rd.tune.tasks(product())[0].key(1)
    run(product(), db, FakeRunner(generic_is_twice_as_fast), trials=16)
    best = Database(db).best(key)
    Database(db).append(replace(best, sketch="contraction", decisions=Space.of(Program(product(), TARGET)).choice(Candidate(0, (5,))), trace=None,
                                timings=(Timing((), 1e-9),), second=()))
    run(product(), db, FakeRunner(lambda func: 1.1e-3 if func.attrs["scheduled"] == "generic" else 1e-3), trials=16)
    assert Database(db).best(key).sketch == "contraction"


def test_another_machine_needs_a_runner_of_its_own(db):
    with pytest.raises(OptionError, match="cannot be measured here"):
        rd.tune(product(), target="aarch64-neoverse-n1" if "aarch64-neoverse-n1" in Target.named() else "llvm -mtriple=aarch64-unknown-linux-gnu", db=db)


def test_records_of_several_threads_replay(db):
    result = rd.tune(product(1024, 256, 256), threads=2, trials=24, db=db, builder=FakeBuilder(), runner=FakeRunner(noise=0.0))
    program = Program(product(1024, 256, 256), TARGET)
    record = Database(db).best(rd.tune.tasks(product(1024, 256, 256))[0].key(2))
    assert structural_equal(replay(program, record).func.body, result.func().body, map_free_vars=True)


def test_candidates_that_all_become_equal_end_the_search(db):
    def same(sch, target):
        sch.knob("nothing", list(range(5000)))

    class Same(Exhaustive):
        def propose(self, count):
            return [c for c in super().propose(count) if self.space.sketch(c).name == "same"]

    result = run(product(), db, space=[template(same)], search=Same, trials=64)
    assert result.rows[0].trials == 1 and len(result.attempts[0].search.seen) < 500
