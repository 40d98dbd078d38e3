# SPDX-License-Identifier: Apache-2.0
"""Models run on boards: on this machine as if it were one, on machines that emulators imitate, and over (a stand-in for) ssh."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx import helper as h
from tests.boards.machines import MACHINES

import roundel as rd
from roundel.boards import Board, RemoteModel
from roundel.ir.errors import CallError, OptionError

RANDOM = np.random.default_rng(7)


def classifier() -> onnx.ModelProto:
    """Pictures [n, 3, 17, 19] and a temperature to logits [n, 5], the classes [n] and the pictures' mean colours as int32."""
    weights = {"w": RANDOM.standard_normal((8, 3, 3, 3)).astype("f"), "f": RANDOM.standard_normal((8, 5)).astype("f"), "b": np.arange(5, dtype="f")}
    nodes = [
        h.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4), h.make_node("Relu", ["a"], ["r"]), h.make_node("GlobalAveragePool", ["r"], ["p"]),
        h.make_node("Flatten", ["p"], ["d"]), h.make_node("MatMul", ["d", "f"], ["m"]), h.make_node("Add", ["m", "b"], ["s"]),
        h.make_node("Div", ["s", "temperature"], ["logits"]), h.make_node("ArgMax", ["logits"], ["class"], axis=1, keepdims=0),
        h.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), h.make_node("Cast", ["mean"], ["colour"], to=TensorProto.INT32),
    ]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 17, 19]),
                                      h.make_tensor_value_info("temperature", TensorProto.FLOAT, [])],
                         [h.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 5]), h.make_tensor_value_info("class", TensorProto.INT64, ["n"]),
                          h.make_tensor_value_info("colour", TensorProto.INT32, ["n", 3])],
                         [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])


@pytest.fixture(scope="module")
def model():
    return classifier()


def inputs(n):
    return 10 * RANDOM.standard_normal((n, 3, 17, 19)).astype("f"), np.float32(0.5)


def same(got, want):
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


def test_a_program_gives_what_the_model_gives(model):
    here = rd.compile(model)
    there = RemoteModel(here, "")
    for n in (1, 3, 0):
        x = inputs(n)
        same(there(*x), here(*x))


def test_runs_are_timed_in_one_process(model):
    remote = RemoteModel(rd.compile(model), "", threads=1)
    _, seconds = remote.run(inputs(2), 5)
    assert seconds.shape == (5,) and (seconds > 0).all()


@pytest.mark.parametrize("name", MACHINES)
def test_on_an_emulated_machine(model, name):
    machine = MACHINES[name]
    if missing := machine.missing():
        pytest.skip(f"needs {missing}")
    x = inputs(3)
    same(RemoteModel(rd.compile(model, target=machine.target), machine.command)(*x), rd.compile(model)(*x))


def test_a_run_that_fails_says_why(model):
    remote = RemoteModel(rd.compile(model), "")
    with pytest.raises(CallError, match="has 2 inputs, 1 were given"):
        remote(inputs(1)[0])
    with pytest.raises(CallError, match="temperature is float64 of 0 dimensions"):
        remote(inputs(1)[0], np.float64(1))
    with pytest.raises(CallError, match="(?s)the program failed on this machine.*17"):
        remote(np.zeros((1, 3, 18, 19), np.float32), np.float32(1))


FOREIGN = [prefix for prefix in ("", "qemu-aarch64-static", "qemu-riscv64-static", "qemu-arm-static", "qemu-x86_64-static", "sh -c 'exec $0'")
           if shutil.which(prefix.partition(" ")[0] or "sh")]


@pytest.mark.parametrize("prefix", FOREIGN)
def test_a_program_for_another_machine_is_told_as_such(prefix, tmp_path):
    """An ELF file whose machine is none that the system, the emulator or the shell runs."""
    header = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    header[18:20] = (0x5441).to_bytes(2, "little")  # FR-V
    (tmp_path / "program").write_bytes(header + bytes(4096))
    (tmp_path / "program").chmod(stat.S_IRWXU)
    with pytest.raises(CallError, match="hint: the program is for another kind of machine than the board or emulator"):
        Board.of(prefix).run(tmp_path, "program", [], 20)


def test_a_program_that_does_not_end_is_ended(model):
    with pytest.raises(CallError, match="did not end within 0.5 seconds"):
        RemoteModel(rd.compile(model), "sh -c 'sleep 60'", timeout=0.5)(*inputs(1))


def test_boards_as_users_write_them():
    assert Board.of("").prefix == ()
    assert Board.of("env A=1 nice").prefix == ("env", "A=1", "nice")
    for text, message in (("no-such-emulator -cpu max", "no command 'no-such-emulator'"), ("a 'b", "is no command"), ("ssh://", "no address"),
                          ("ssh://-oProxyCommand=evil", "no address"), ("ssh://a b", "no address"), ("ssh://pi:x", "no address")):
        with pytest.raises(OptionError, match=message):
            Board.of(text)


def stand_ins(folder, board, monkeypatch, shell="sh -c"):
    """ssh and scp, by which commands run here and make their folders in that of the board."""
    (folder / "ssh").write_text(f'#!/bin/sh\nfor last; do :; done\nexport TMPDIR={board}\nexec {shell} "$last"\n')
    (folder / "scp").write_text('#!/bin/sh\nshift 2; shift; shift 2\nfor to; do :; done\nto=${to#*:}\n'
                                'while [ $# -gt 1 ]; do eval "cp ${1#*:} $to"; shift; done\n')
    for name in ("ssh", "scp"):
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_over_ssh(model, tmp_path, monkeypatch):
    """A stand-in for ssh and scp, which runs commands in a folder of its own: what they would be asked to do is what counts."""
    board = tmp_path / "board"
    board.mkdir()
    stand_ins(tmp_path, board, monkeypatch)
    here = rd.compile(model)
    x = inputs(2)
    remote = RemoteModel(here, "ssh://pi@board:2222")
    same(remote(*x), here(*x))
    with pytest.raises(CallError, match="(?s)the program failed on ssh://pi@board.*17"):
        remote(np.zeros((1, 3, 18, 19), np.float32), np.float32(1))
    assert not list(board.iterdir())  # nothing is left there


@pytest.mark.parametrize("ends, message", [("sleep 60", "did not end within 1 seconds"), ("kill -SEGV $$", "SIGSEGV"), ("exit 3", "status 3")])
def test_a_program_that_dies_on_a_board_or_never_ends(tmp_path, monkeypatch, ends, message):
    """The board goes on with what it was asked for when ssh ends (``setsid``): the program must be ended there, too."""
    board, folder, number = tmp_path / "board", tmp_path / "folder", tmp_path / "number"
    board.mkdir(), folder.mkdir()
    stand_ins(tmp_path, board, monkeypatch, "setsid -w sh -c")
    (folder / "program").write_text(f"#!/bin/sh\necho $$ > {number}\n{'exec ' * ends.startswith('sleep')}{ends}\n")
    (folder / "program").chmod(stat.S_IRWXU)
    with pytest.raises(CallError, match=message):
        Board.of("ssh://pi@board").run(folder, "program", [], 1)
    assert not list(board.iterdir())
    for _ in range(500):  # its parent there has still to take notice
        try:
            os.kill(int(number.read_text()), 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("the program goes on")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_goes_on_where_this_process_is_ended_midway(tmp_path, monkeypatch, number):
    """The program on the board and its folder go with the connection, which ends with this process."""
    board, folder, running = tmp_path / "board", tmp_path / "folder", tmp_path / "number"
    board.mkdir(), folder.mkdir()
    stand_ins(tmp_path, board, monkeypatch, "setsid -w sh -c")
    (folder / "program").write_text(f"#!/bin/sh\necho $$ > {running}\nexec sleep 60\n")
    (folder / "program").chmod(stat.S_IRWXU)
    text = f"from pathlib import Path\nfrom roundel.boards import Board\nBoard.of('ssh://pi@board').run(Path({str(folder)!r}), 'program', [], 60)"
    with subprocess.Popen([sys.executable, "-c", text]) as process:
        wait_for(lambda: running.exists() and running.read_text().strip())
        process.send_signal(number)
    wait_for(lambda: not list(board.iterdir()) and not Path(f"/proc/{running.read_text().strip()}").exists())


def wait_for(happens):
    """Look again and again, for ten seconds at most."""
    end = time.monotonic() + 10
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)
