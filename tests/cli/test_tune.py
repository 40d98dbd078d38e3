# SPDX-License-Identifier: Apache-2.0
"""``roundel tune``: the options, what is shown while it goes on and at the end, Ctrl-C."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer
from rich.console import Console

import roundel as rd
from roundel.cli.tune import lists, shown, status, table
from roundel.tune.database import Database
from roundel.tune.measure import Failure

from ..docs import small_model
from ..tune.programs import FakeBuilder, FakeRunner, doubled, product


@pytest.fixture
def model(tmp_path):
    return small_model.write(tmp_path / "model.onnx")


def roundel(*args):
    return subprocess.run([sys.executable, "-m", "roundel", "tune", *map(str, args)], capture_output=True, text=True, timeout=120)


def test_a_model_is_tuned_and_compiled_from_what_was_found(model, tmp_path):
    db = tmp_path / "tuned.jsonl"
    done = roundel(model, "--trials", 8, "--threads", 1, "--sizes", "batch=1,3", "--db", db, "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts["trials"] == 8 and facts["database"] == str(db) and not facts["interrupted"]
    assert all(t["default_ms"] is not None for t in facts["tasks"] if t["trials"])
    found = rd.compile(model, threads=1, records=str(db))
    assert found.metadata["records"]["kernels"] == sum(t["default_ms"] is not None for t in facts["tasks"])


def test_ctrl_c_keeps_what_was_found(model, tmp_path):
    db = tmp_path / "tuned.jsonl"
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # which a process in the background does not have
    command = [sys.executable, "-c", f"{heard}; from roundel.cli import main; main()", "tune",
               str(model), "--seconds", "100", "--threads", "1", "--sizes", "batch=1", "--db", str(db)]
    going = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    while going.poll() is None and not (db.exists() and len(Database(db)) > 8):
        time.sleep(0.1)
    os.killpg(going.pid, signal.SIGINT)
    said, _ = going.communicate(timeout=60)
    assert going.returncode == 0 and "interrupted" in said and "together" in said
    assert any(r.trace is not None for r in Database(db))


def test_sizes_are_lists():
    assert lists(["seq=17,128", "batch=1"]) == {"seq": [17, 128], "batch": [1]} and lists([]) is None
    for wrong in ("seq", "seq=", "seq=a", "=3", "seq=1,,2"):
        with pytest.raises(typer.BadParameter):
            lists([wrong])


def sessions(tmp_path, watch):
    mod = rd.IRModule({"a": doubled(1 << 16), "b": product()})
    runner = FakeRunner(lambda func: {"generic": 5e-4, "rows": Failure("crash")}.get(func.attrs["scheduled"], 1e-3))
    return rd.tune(mod, threads=1, trials=30, db=tmp_path / "x.jsonl", builder=FakeBuilder(), runner=runner, watch=watch)


def test_a_terminal_shows_a_table_and_other_places_lines(tmp_path):
    seen = []

    def watch(session):
        out = Console(file=io.StringIO(), width=140)
        out.print(table(session))
        seen.append(out.file.getvalue())

    sessions(tmp_path, watch)
    assert "weight" in seen[-1] and "2.00x" in seen[-1] and "kernels" in seen[-1] and "done" in seen[-1]

    plain = Console(file=io.StringIO(), width=200)
    with shown(plain) as lines:
        sessions(tmp_path / "other", lambda session: (lines(session), status(session)))
    assert "b: 0.5000 ms, 2.00 times as fast" in plain.file.getvalue()
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    with shown(terminal) as live:
        sessions(tmp_path / "third", live)
    assert "gain" in terminal.file.getvalue()


def test_what_cannot_be_asked_for_is_one_message(model):
    for wrong in (("--space", "x"), ("--search", "x"), ("--sizes", "batch"), ("--trials", 0)):
        done = roundel(model, *wrong, "--threads", 1)
        assert done.returncode and "Traceback" not in done.stderr and done.stderr.strip()
