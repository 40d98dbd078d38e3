# SPDX-License-Identifier: Apache-2.0
"""Measuring on this machine: the contract, constants as schedules want them, copies of constants, ratios by turns."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from roundel.script import ir as I
from roundel.script import relax as R
from roundel.strategy.program import Program
from roundel.target import Target
from roundel.tune.attempt import Attempt
from roundel.tune.database import Database
from roundel.tune.measure import Argument, Artifact, Failure, Job, LocalBuilder, LocalRunner, Source, Timed, arrays, process
from roundel.tune.measure.process import Lost, Process
from roundel.tune.task import Task, tasks

from ..programs import product
from . import contract

W = np.random.default_rng(0).standard_normal((100, 200)).astype("float32")


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor((48, 100), "float32")):
        return R.matmul(x, R.const(W))


@pytest.fixture(scope="module")
def machine():
    builder, runner = LocalBuilder(1), LocalRunner(seconds=2.0, memory=1 << 30)
    yield builder, runner
    builder.close()
    runner.close()


def test_the_contract(machine):
    contract.check(*machine)


def test_constants_are_laid_out_as_the_schedule_wants_them(machine, tmp_path):
    builder, runner = machine
    (task,) = tasks(Layer)
    for flushed in (0, 1 << 20):
        attempt = Attempt(Task(task.program, flushed_bytes=flushed), 1)
        attempt.open(builder, runner, Database(tmp_path / "none.jsonl"))
        entries = attempt.propose(4)
        assert any(e.source.layouts for e in [attempt.default, *entries])
        built = attempt.built(entries, [f.result() for f in builder.build([e.source for e in entries], task.program.target)], builder)
        raced = attempt.race(built, runner)
        assert all(e.failure is None and e.total < 0.1 for e in raced)


def test_a_champion_that_cannot_run_is_an_error(machine):
    builder, runner = machine
    bad, good = [f.result() for f in builder.build([Source(contract.crashes), Source(contract.good())], Target.host())]
    with pytest.raises(RuntimeError, match="SIGSEGV"):
        runner.race(contract.JOB, bad, bad, [good], contract.QUICK)
    assert isinstance(runner.race(contract.JOB, good, good, [bad], contract.QUICK)[1][0], Failure)


def test_a_runner_whose_process_is_killed_starts_another(machine):
    builder, runner = machine
    (good,) = [f.result() for f in builder.build([Source(contract.good())], Target.host())]
    runner.race(contract.JOB, good, good, [good], contract.QUICK)
    assert runner._process._noted("waiting") == "waiting"  # at none of the programs, whichever ran last
    os.kill(runner._process._child.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        runner.race(contract.JOB, good, good, [good], contract.QUICK)
    assert isinstance(runner.race(contract.JOB, good, good, [good], contract.QUICK)[1][0], Timed)


def test_a_compiler_that_dies_costs_one_candidate():
    builder = LocalBuilder(1)
    assert not isinstance(builder.build([Source(contract.good())], Target.host())[0].result(), Failure)
    os.kill(builder._processes[0]._child.pid, signal.SIGABRT)
    lost, found = [f.result() for f in builder.build([Source(contract.good())] * 2, Target.host())]
    assert isinstance(lost, Failure) and "SIGABRT" in str(lost) and not isinstance(found, Failure)
    builder.close()


def test_sizes_are_measured_each(machine):
    builder, runner = machine
    program = Program(product(), Target.host())
    case = Task(program).job(1).cases[0]
    attempt = Attempt(Task(program), 1)
    (code,) = [f.result() for f in builder.build([attempt._of(None, "x", {}, __import__("roundel").strategy.Applied(program.fork())).source], program.target)]
    times, _ = runner.race(Job("two", (case, case)), code, code, [], contract.QUICK)
    assert len(times.seconds) == 2


def test_a_process_that_is_not_asked_for_long_is_there_still_and_ends_when_it_is_closed():
    process = Process()
    process.ask("ping", seconds=lambda at: 30)
    pid = process._child.pid
    process.ask("ping", seconds=lambda at: 30)
    assert process._child.pid == pid
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_request_that_takes_too_long_is_lost_and_the_next_one_is_answered():
    process = Process()
    process.ask("ping", seconds=lambda at: 30)
    begun = time.monotonic()
    os.kill(process._child.pid, signal.SIGSTOP)
    with pytest.raises(Lost, match="time limit"):
        process.ask("ping", seconds=lambda at: 0.2)
    assert time.monotonic() - begun < 5
    process.ask("ping", seconds=lambda at: 30)
    process.close()


def test_time_in_which_a_process_stands_still_counts_for_no_limit():
    process = Process()
    process.ask("ping", seconds=lambda at: 30)
    process.pause()
    threading.Timer(0.6, process.resume).start()
    process.ask("ping", seconds=lambda at: 0.4)
    process.close()


def test_a_builder_makes_room_for_who_measures():
    builder = LocalBuilder(2)
    processes = [p for p in builder._processes if p.ask("ping", seconds=lambda at: 30) is None]

    def all_become(stopped):
        state = lambda p: Path(f"/proc/{p._child.pid}/stat").read_text().rpartition(")")[2].split()[0]
        end = time.monotonic() + 10
        while time.monotonic() < end and not all((state(p) == "T") == stopped for p in processes):
            time.sleep(0.01)
        return time.monotonic() < end

    with builder.room(threads=64):
        assert all_become(stopped=True)
    assert all_become(stopped=False)
    builder.close()


def test_arguments_are_random_but_the_same_for_a_name():
    case = (Argument((4, 5), "float32"), Argument((7,), "int8"), 3, Argument((2,), "int64"), Argument((3,), "bool"))
    one, same, other = (arrays.random_arguments(case, name) for name in "aab")
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True)) and not np.array_equal(one[0], other[0])
    assert one[0].dtype == np.float32 and one[2] == 3 and one[3].max() < 2 and one[4].dtype == bool


def test_copies_of_constants_fill_what_is_asked_for():
    case = (Argument((8,), "float32"), Argument((1000,), "float32", True))
    given = arrays.random_arguments(case, "x")
    sets = arrays.copies(given, case, 1 << 20)
    assert len(sets) == 256 and len({s[1].ctypes.data for s in sets}) == 256 and all(s.keys() == {1} for s in sets)
    assert len(arrays.copies(given, case, 0)) == 1


def test_artifacts_that_take_constants_alike_read_their_copies_by_turns():
    case = (Argument((8,), "float32"), Argument((1000,), "float32", True))
    laid, read = arrays.LaidOut.of(arrays.random_arguments(case, "x"), case, Artifact("a", ()), 5 * 4000), []

    def timer(sets):
        def seconds(calls, first):
            read.extend(sets[(first + k) % len(sets)][1].ctypes.data for k in range(calls))
            return 1.0

        return seconds

    function = SimpleNamespace(timer=timer, info=SimpleNamespace(kind="graph"))
    runs = [laid.timer(function, []) for _ in range(2)]
    for calls, run in zip((1, 3, 4, 2), [*runs, *runs], strict=True):
        run(calls)
    assert len(set(read)) == 5 and all(a != b for k, a in enumerate(read) for b in read[k + 1 : k + 5])


@pytest.mark.parametrize("found, wanted, fits", [
    (np.float32([1, 2]), np.float32([1, 2.0001]), True), (np.float32([1, 2]), np.float32([1, 2.1]), False), (np.float32([np.nan]), np.float32([1]), False),
    (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), True), (np.float32([np.inf]), np.float32([-np.inf]), False),
    (np.int32([1]), np.int32([2]), False), (np.int8([1]), np.int8([2]), True), (np.array([True]), np.array([False]), False)])
def test_results_are_compared_as_sums_in_another_order_allow(found, wanted, fits):
    assert (arrays.difference([found], [wanted]) is None) == fits


def test_every_array_begins_at_a_line_of_the_caches():
    case = (Argument((3, 5), "float32"), Argument((70_000,), "float32", True))
    given = arrays.random_arguments(case, "x")
    everything = [a for s in arrays.copies(given, case, 1 << 20) for a in s.values()] + [arrays.aligned(given[0][:2])]
    assert all(a.ctypes.data % 64 == 0 for a in everything)


@pytest.mark.parametrize(("setting", "why"), [((process, "START_SECONDS", 0.0), "was not ready"), ((sys, "executable", "/bin/false"), "exit status 1")])
def test_a_process_that_does_not_get_ready_is_a_failure(monkeypatch, setting, why):
    monkeypatch.setattr(*setting)
    child = Process()
    for _ in range(2):  # the next request starts another
        with pytest.raises(Lost, match=why):
            child.ask("ping", seconds=lambda at: 1.0)
