# SPDX-License-Identifier: Apache-2.0
"""Measuring on another machine: the contract, keys, several who ask, and connections that break."""

import socket
import threading
import time
from multiprocessing.connection import Client
from pathlib import Path

import pytest

import roundel as rd
from roundel.ir.errors import OptionError, TuneError
from roundel.strategy.cost import expected_cycles
from roundel.target import Target
from roundel.tune.measure import Artifact, LocalBuilder, LocalRunner, Source, Timed
from roundel.tune.measure.boards import BoardRunner
from roundel.tune.measure.remote import RemoteRunner, Server

from ...boards.machines import MACHINES
from ..programs import FakeBuilder, FakeRunner, product
from . import contract

KEY = "a key that nobody guesses"


class Slow:
    """A runner that measures nothing, for so long, and knows how many it measures at once."""

    def __init__(self, seconds=0.2):
        self.seconds, self.now, self.most = seconds, 0, 0

    def race(self, job, *rest):
        self.now += 1
        self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        self.now -= 1
        return Timed((1.0,), (1e-3,)), [job]

    def close(self):
        pass


def started(runner=None, port=0):
    server = Server(port=port, key=KEY, runner=runner)
    threading.Thread(target=server.serve, daemon=True).start()
    return server


def asking(server, key=KEY, patience=5.0):
    return RemoteRunner(f"127.0.0.1:{server.address[1]}", key, patience)


@pytest.fixture
def server():
    found = started(Slow())
    yield found
    found.close()


def test_the_contract():
    server, builder = started(LocalRunner(seconds=2.0, memory=1 << 30)), LocalBuilder(1)
    runner = asking(server)
    try:
        assert runner.target == Target.host()
        contract.check(builder, runner)
        good = builder.build([Source(contract.good())], Target.host())[0].result()
        assert all(isinstance(runner.race(contract.JOB, good, good, [good], contract.QUICK)[1][0], Timed) for _ in range(2))  # by one child process
        assert not list(Path(server._folder.path).iterdir())  # what crashed and what ran left nothing
    finally:
        builder.close()
        runner.close()
        server.close()
    assert not Path(server._folder.path).exists()


def test_the_contract_for_an_emulated_machine():
    """Programs for another machine, by the same server: each is a program of its own that an emulator runs."""
    machine = MACHINES["aarch64"]
    if missing := machine.missing():
        pytest.skip(f"needs {missing}")
    server, builder = started(BoardRunner(machine.command, machine.target, seconds=2.0, memory=1 << 30)), LocalBuilder(1)
    runner = asking(server)
    try:
        assert runner.target == Target(machine.target)
        contract.check(builder, runner, runner.target)
    finally:
        builder.close()
        runner.close()
        server.close()


def test_a_whole_session(tmp_path):
    server = started(FakeRunner(lambda f: expected_cycles(f, Target.host(), cores=1) * 1e-9))
    runner = asking(server)
    result = rd.tune(product(), threads=1, db=tmp_path / "db", builder=FakeBuilder(), runner=runner, trials=12)
    assert result.rows[0].trials == 12 and result.rows[0].gain >= 1
    runner.close()
    server.close()


@pytest.mark.parametrize("key", ["another key of the same kind", KEY + " "])
def test_who_has_another_key_is_refused(server, key):
    with pytest.raises(TuneError, match="another key"):
        asking(server, key).target
    assert asking(server).target == Target.host()


@pytest.mark.parametrize("key", [None, "", "short", "x" * 15])
def test_a_key_is_needed(key):
    with pytest.raises(OptionError, match="key"):
        Server(port=0, key=key)
    with pytest.raises(OptionError, match="key"):
        RemoteRunner("board", key)


def test_nothing_is_read_of_those_who_do_not_prove_that_they_know_it(server):
    """Silence, noise and lengths that no memory holds hurt nobody; what is no answer to the challenge is not unpickled."""
    for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff" + b"x" * 100, b"\xff\xff\xff\xff" + b"\x7f" * 8, b"\0\0\0\5hello" * 50):
        with socket.create_connection(server.address) as stream:
            stream.sendall(noise)
            assert asking(server).target == Target.host()
    with pytest.raises((EOFError, OSError)):
        stranger = Client(server.address)
        stranger.send(("target",))
        while True:
            assert not isinstance(stranger.recv_bytes(), tuple)
            stranger.send(("target",))


def test_one_program_at_a_time(server):
    runners = [asking(server) for _ in range(4)]
    answers = []
    threads = [threading.Thread(target=lambda r=r, k=k: answers.append(r.race(k, None, None, []))) for k, r in enumerate(runners)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found for _, (found,) in answers) == [0, 1, 2, 3] and server._runner.most == 1


def test_a_server_that_is_cut_off_midway_is_found_again():
    first = started(Slow(1.0))
    runner, port = asking(first, patience=20.0), first.address[1]
    answers = []
    asked = threading.Thread(target=lambda: answers.append(runner.race("job", None, None, [])))
    asked.start()
    time.sleep(0.3)
    first.close()
    second = started(Slow(0.05), port)
    asked.join(20)
    assert answers and answers[0][1] == ["job"]
    second.close()


def test_a_server_that_is_gone_is_an_error():
    server = started(Slow())
    runner, late = asking(server, patience=0.5), asking(server)
    runner.race("job", None, None, [])
    server.close()
    for _ in range(2):
        with pytest.raises(TuneError, match="is gone"):
            runner.race("job", None, None, [])
    with pytest.raises(TuneError, match="there is no runner"):
        late.race("job", None, None, [])


def test_who_leaves_midway_keeps_nobody_from_measuring(server):
    impatient = asking(server)
    impatient._connected().send(("race", "first", None, None, []))
    impatient.close()
    assert asking(server).race("second", None, None, [])[1] == ["second"]


def test_what_the_runner_says_cannot_be_run_is_said_here():
    class Broken(Slow):
        def race(self, *args):
            raise RuntimeError("the champion cannot be run")

    server = started(Broken())
    with pytest.raises(RuntimeError, match="the champion cannot be run"):
        asking(server).race("job", Artifact("a", ()), Artifact("a", ()), [])
    server.close()


@pytest.mark.parametrize("address", ["", ":9190", "board:", "board:x", "board:0", "board:99999", "board:²", "board:" + "9" * 5000])
def test_what_is_no_address(address):
    with pytest.raises(OptionError, match="address"):
        RemoteRunner(address, KEY)
