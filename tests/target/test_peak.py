# SPDX-License-Identifier: Apache-2.0
"""The loops that a machine is measured with."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from roundel.ir.errors import OptionError
from roundel.target import Target, peak


def test_measured_peak_is_plausible():
    h = Target.host()
    got = peak.fma_gflops(seconds=0.03)
    assert 0.02 * h.peak_gflops() < got < 3 * h.peak_gflops()
    assert peak.read_gbs(h.l1_bytes // 2, 0.02) > 1
    with pytest.raises(OptionError, match="not measured"):
        peak.fma_gflops("int8")


def test_a_chain_of_additions_tells_the_frequency():
    assert 0.3 < peak.best_rate(peak.chain_work(Target.host()), 0.05) < 7


def test_rounds_end_when_two_agree():
    """A quiet machine is measured in a moment; one whose rounds differ, for as long as it may take."""
    calls = []
    peak.best_rate((1.0, lambda: calls.append(sum(range(20_000)))), 0.5)
    begun = time.perf_counter()
    peak.best_rate((1.0, lambda: sum(range(1000 * (3 + len(calls) % 7), 200_000)) and calls.append(0)), 0.1)
    assert time.perf_counter() - begun < 0.5


def test_time_that_a_virtual_machine_takes_off_makes_no_machine_faster(monkeypatch):
    """Rounds of 3 ms, of which five in six are counted as a tenth: the whole ones tell the rate."""
    clocks = {"passed": 0.0, "spent": 0.0}
    shares = itertools.cycle([0.1] * 5 + [1.0])

    def work() -> None:
        clocks["passed"] += 3e-3
        clocks["spent"] += 3e-3 * next(shares)

    monkeypatch.setattr(peak, "_seconds", lambda: clocks["spent"])
    monkeypatch.setattr(peak.time, "perf_counter", lambda: clocks["passed"])
    assert peak.best_rate((3e6, work), 0.5) == pytest.approx(1.0)


def test_one_whole_round_and_one_that_was_cut_tell_a_rate(monkeypatch):
    """On a busy machine there may be no time for two of either kind."""
    clocks = {"passed": 0.0, "spent": 0.0}
    shares = itertools.cycle([0.1, 1.0])

    def work() -> None:
        clocks["passed"] += 3e-3
        clocks["spent"] += 3e-3 * next(shares)

    monkeypatch.setattr(peak, "_seconds", lambda: clocks["spent"])
    monkeypatch.setattr(peak.time, "perf_counter", lambda: clocks["passed"])
    assert peak.best_rate((3e6, work), 0.0) == pytest.approx(1.0)


def test_of_what_others_share_the_middle_round_tells_the_rate(monkeypatch):
    """A reader beside it slows down three of four rounds of memory, in which its share is what is left; of what a core has for itself, the best one is true."""
    clock = {"now": 0.0}
    rounds = itertools.cycle([1e-3, 2e-3, 2e-3, 2e-3])

    def work() -> None:
        clock["now"] += next(rounds)

    monkeypatch.setattr(peak, "_seconds", lambda: clock["now"])
    monkeypatch.setattr(peak.time, "perf_counter", lambda: clock["now"])
    assert peak.typical_rate((2e6, work), 0.1) == pytest.approx(1.0)
    assert peak.best_rate((2e6, work), 0.1) == pytest.approx(2.0)


def test_all_cores_are_measured_together():
    """Threads that share one thing do no more together than one alone."""
    lock = threading.Lock()

    def make() -> peak.Work:
        def work() -> None:
            with lock:
                time.sleep(0.01)

        return 1e9, work

    assert 60 < peak.on_all_cores(make, 2, 0.05) <= 101
