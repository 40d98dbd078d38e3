# SPDX-License-Identifier: Apache-2.0
"""Devices by name: lent to one at a time in the order of asking, given back, waited for, and gone when they leave."""

import threading
import time
from functools import partial

import pytest

from roundel.cli.serve_runner import serve_tracker_command
from roundel.ir.errors import OptionError, TuneError
from roundel.tune.measure.remote import Server
from roundel.tune.measure.tracker import LentRunner, Registration, Tracker, lent_name

from ..programs import FakeRunner

KEY = "a key that nobody guesses"


@pytest.fixture
def tracker():
    found = Tracker(port=0, key=KEY)
    threading.Thread(target=found.serve, daemon=True).start()
    yield found
    found.close()


@pytest.fixture
def board(tracker):
    """A machine that measures, and is known as a board."""
    server = Server(port=0, key=KEY, runner=FakeRunner())
    threading.Thread(target=server.serve, daemon=True).start()
    registered = Registration(at(tracker), "board", ("0.0.0.0", server.address[1]), KEY)
    until(lambda: tracker.summary() == {"board": (1, 0, 0)})
    yield registered
    registered.close()
    server.close()


def at(tracker):
    return f"127.0.0.1:{tracker.address[1]}"


def asked(tracker, device="board", **limits):
    return LentRunner(at(tracker), device, KEY, **limits)


def until(holds):
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    assert holds()


def test_a_device_is_lent_to_one_at_a_time_in_the_order_of_asking(tracker, board):
    first = asked(tracker)
    assert first.target.triple and tracker.summary() == {"board": (1, 1, 0)}
    order = []

    def ask(name):
        runner = asked(tracker)
        order.append(name)
        runner.close()

    others = [threading.Thread(target=partial(ask, k)) for k in range(2)]
    for k, other in enumerate(others):
        other.start()
        until(lambda k=k: tracker.summary() == {"board": (1, 1, 1 + k)})
    first.close()
    for other in others:
        other.join(20)
    assert order == [0, 1]
    until(lambda: tracker.summary() == {"board": (1, 0, 0)})


def test_who_leaves_without_a_word_gives_it_back(tracker, board):
    asked(tracker)._lease.close()
    asked(tracker).close()


def test_it_is_lent_for_so_long_and_waited_for_no_longer(tracker, board):
    held = asked(tracker, lent=1.0)  # and never gives it back
    with pytest.raises(TuneError, match="no device 'board'") as error:
        asked(tracker, waits=0.05)
    assert "lent to others" in str(error.value)
    asked(tracker).close()
    held.close()


def test_what_is_not_there(tracker, board):
    with pytest.raises(TuneError, match="none of that name"):
        asked(tracker, "phone", waits=0.05)
    with pytest.raises(TuneError, match="another key"):
        LentRunner(at(tracker), "board", "another key of theirs")
    with pytest.raises(TuneError, match="no tracker"):
        LentRunner("127.0.0.1:1", "board", KEY)
    board.close()
    until(lambda: tracker.summary() == {})


def test_names_and_trackers_belong_together():
    assert lent_name(None, None) is None and lent_name("office", "board") == "board"
    for wrong in (("office", None), ("office", ""), ("", None), (None, "board")):
        with pytest.raises(OptionError, match="tracker"):
            lent_name(*wrong)


@pytest.mark.parametrize("host", ["", "a..b\u00e9", "\ud800", "nul\0", "256.1.1.1"])
def test_hosts_that_are_none(host, monkeypatch):
    monkeypatch.setenv("ROUNDEL_RUNNER_KEY", KEY)
    with pytest.raises(OptionError, match="nothing can listen at|--host is empty"):
        serve_tracker_command(host, 0)
