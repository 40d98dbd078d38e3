# SPDX-License-Identifier: Apache-2.0
"""How much of the processors others take is told apart from what this process and its children do."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from roundel.target import others

LOOP = "import time\nend = time.perf_counter() + {}\nwhile time.perf_counter() < end: pass"


def test_a_share(monkeypatch):
    """Of two processors that were busy for 3 of 4 seconds, half a second by this process."""
    monkeypatch.setattr(others.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(others, "now", lambda: others.Moment(clock=12.0, busy=103.0, own=7.5))
    assert others.since(others.Moment(clock=10.0, busy=100.0, own=7.0)) == pytest.approx(2.5 / 4)
    assert others.since(others.Moment(clock=10.0, busy=103.0, own=7.0)) == 0.0  # counts of ticks may lag behind


def test_where_nobody_tells_the_load_does(monkeypatch):
    monkeypatch.setattr(others.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(others.os, "getloadavg", lambda: (2.0, 0.0, 0.0))
    monkeypatch.setattr(others, "_busy", lambda: None)
    assert others.since(others.now()) == 0.5


@pytest.mark.skipif(others.now().busy is None, reason="the system does not count the time of its processors")
def test_own_work_and_that_of_children_is_not_of_others():
    begin = others.now()
    child = subprocess.Popen([sys.executable, "-c", LOOP.format(0.3)])
    time.sleep(0.2)
    end = others.now()
    assert end.own - begin.own > 0.03 and end.busy >= begin.busy
    child.wait()
    assert 0.0 <= others.since(begin) <= 1.0
