# SPDX-License-Identifier: Apache-2.0
"""The database: lines that are appended, merged by ``cat``, and lost one by one at worst."""

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from roundel.ir.errors import OptionError
from roundel.strategy.records import Key, Record, Rival, Timing
from roundel.tune.database import Database
from roundel.tune.place import default_path

FORK = multiprocessing.get_context("fork")
KEY = Key("a" * 32, "b" * 16, 1, "accuracy=default")


def record(seconds=1e-3, trace=(["get_block", {}, {}, [], None],), key=KEY, **facts):
    return Record(key, "contraction", {"rows": 6, "nanoseconds": round(seconds * 1e9)}, trace, timings=(Timing((), seconds, 0.01, 30),), **facts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tuned.jsonl"


def test_what_was_appended_is_read(path):
    given = record(second=(Rival("generic", {"tile": 4}, 2e-3),), default=3e-3, name="kernel", layouts={"1": {"map": []}}, by="me@here", at=1.5,
                   versions={"roundel": "1"})
    assert Database(path).append(given)
    (found,) = Database(path)
    assert replace(found, trace=tuple(found.trace)) == given
    assert path.read_text().count("\n") == 1 and json.loads(path.read_text())["kind"] == "schedule"


def test_it_is_signed(path):
    database = Database(path)
    database.append(record())
    found = database.best(KEY)
    assert "@" in found.by and abs(found.at - time.time()) < 60 and {"roundel", "sources"} == set(found.versions)


def test_numbers_of_numpy_and_failures(path):
    database = Database(path)
    database.append(Record(KEY, "generic", {"rows": np.int64(4)}, None, error="segmentation fault"), record(np.float64(2e-3)))
    assert [r.decisions["rows"] for r in database.trials(KEY)] == [4, 6]
    assert database.trials(KEY)[0].error == "segmentation fault" and database.trials(KEY)[0].seconds == float("inf")


def test_the_best_is_the_fastest_that_can_be_replayed(path):
    database = Database(path)
    database.append(record(3e-3), record(2e-3), record(1e-3, trace=None), record(5e-4, error="wrong result"), record(1e-9, key=replace(KEY, threads=2)))
    assert database.best(KEY).seconds == 2e-3
    assert len(database.trials(KEY)) == 4 and len(database) == 5
    assert database.best(replace(KEY, program="c" * 32)) is None


def test_of_equal_decisions_the_last_measurement_counts(path):
    database = Database(path)
    database.append(record(1e-3, at=5.0), replace(record(1e-3, at=6.0), timings=(Timing((), 4e-3),)), record(2e-3, at=1.0))
    assert database.best(KEY).seconds == 2e-3


def test_files_are_merged_by_cat(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    Database(one).append(record(3e-3), record(4e-3))
    Database(two).append(record(2e-3))
    both = tmp_path / "both"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    assert Database(both).best(KEY).seconds == 2e-3 and len(Database(both)) == 3
    assert Database(both).digest(KEY.target) != Database(one).digest(KEY.target) != ""


def test_its_digest_knows_what_compiling_depends_on_and_no_order(tmp_path):
    one, two = Database(tmp_path / "one"), Database(tmp_path / "two")
    made = [record(1e-3, at=1.0), record(2e-3, at=1.0), record(2e-3, at=1.0, key=replace(KEY, program="c" * 32))]
    one.append(*made)
    two.append(*reversed(made))
    assert one.digest(KEY.target) == two.digest(KEY.target) != ""
    before = one.digest(KEY.target)
    one.append(record(trace=None), record(key=replace(KEY, target="d" * 16)))
    assert one.digest(KEY.target) == before
    one.append(record(9e-4))
    assert one.digest(KEY.target) != before and Database(tmp_path / "none").digest(KEY.target) == ""


def test_two_that_write_see_what_the_other_wrote(path):
    one, two = Database(path), Database(path)
    one.append(record(3e-3))
    two.append(record(2e-3))
    one.refresh()
    assert one.best(KEY).seconds == two.best(KEY).seconds == 2e-3


# --- damage


def test_a_line_that_was_cut_off_is_left_out_and_the_next_one_is_not(path):
    database = Database(path)
    database.append(record(1e-3), record(2e-3))
    path.write_bytes(path.read_bytes()[:-30])
    assert len(Database(path)) == 1 and not Database(path).skipped  # it may be being written
    Database(path).append(record(3e-3))
    found = Database(path)
    assert [r.seconds for r in found] == [1e-3, 3e-3] and dict(found.skipped) == {"cut off": 1}


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_torn_lines_in_the_middle_after_a_merge(tmp_path, cut):
    one, two = tmp_path / "one", tmp_path / "two"
    Database(one).append(record(1e-3), record(2e-3))
    Database(two).append(record(3e-3), record(4e-3))
    (tmp_path / "both").write_bytes(one.read_bytes()[: -1 - cut] + two.read_bytes())
    found = Database(tmp_path / "both")
    assert {1e-3, 4e-3} <= {r.seconds for r in found} and sum(found.skipped.values()) == 1


def test_any_byte_that_changed_costs_its_line_alone(path, caplog):
    Database(path).append(record(1e-3), record(2e-3), record(3e-3))
    content, rng = path.read_bytes(), np.random.default_rng(0)
    first, second = content.index(b"\n"), content.index(b"\n", content.index(b"\n") + 1)
    for k in rng.integers(first + 1, second, 60):
        for new in (content[k] ^ 1, 10, 34, 0):
            path.write_bytes(content[:k] + bytes([new]) + content[k + 1 :])
            found = Database(path)
            assert {1e-3, 3e-3} <= {r.seconds for r in found} and (new == content[k] or sum(found.skipped.values()) >= 1)
    assert "left out" in caplog.text


def test_a_record_of_another_version_is_left_out_and_told(path, caplog):
    import zlib

    Database(path).append(record(1e-3))
    text = path.read_bytes()[len('{"sum": "00000000", ') :].strip().replace(b'"v": 1', b'"v": 77')
    path.write_bytes(path.read_bytes() + b'{"sum": "%08x", %s\n' % (zlib.crc32(text), text))
    found = Database(path)
    assert len(found) == 1 and dict(found.skipped) == {"of another version": 1}
    assert "1 of another version" in caplog.text


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\0" * 5000, b"hello\n{}\n[]\n\xff\xfe\n", b'{"sum": "00000000", }\n'])
def test_what_is_no_database_is_read_as_an_empty_one(path, content):
    path.write_bytes(content)
    found = Database(path)
    assert not list(found) and found.append(record()) and len(Database(path)) == 1


# --- disks


def test_there_need_be_no_file(tmp_path):
    database = Database(tmp_path / "none")
    assert database.best(KEY) is None and len(database) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to everything")
def test_a_file_that_cannot_be_written_is_told_once(path, caplog):
    Database(path).append(record())
    path.chmod(0o400)
    database = Database(path)
    assert not database.append(record()) and not database.append(record())
    assert len(database) == 1 and caplog.text.count("nothing is kept") == 1


def test_a_folder_is_no_database(tmp_path, caplog):
    database = Database(tmp_path)
    assert len(database) == 0 and not database.append(record())
    assert "cannot be read" in caplog.text and "nothing is kept" in caplog.text


def _on_a_full_disk(path, said):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    database = Database(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, resource.RLIM_INFINITY))
    database.tell = lambda message: said.send(message)
    said.send([database.append(record(2e-3)), database.append(record(3e-3)), len(database)])


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/full", "a\0b", "a" * 300])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path, kind, caplog):
    if kind == "pipe":
        os.mkfifo(tmp_path / "pipe")
    database = Database(tmp_path / kind)
    assert len(database) == 0 and not database.append(record())
    assert "nothing is kept" in caplog.text


def test_a_full_disk_leaves_the_file_as_it_was(path):
    Database(path).append(record(1e-3))
    before = path.read_bytes()
    heard, said = FORK.Pipe(duplex=False)
    writer = FORK.Process(target=_on_a_full_disk, args=(path, said))
    writer.start()
    messages = [heard.recv() for _ in range(3)]
    writer.join()
    assert all(("nothing is kept" in m and "large" in m) or "full" in m for m in messages[:2]) and messages[2] == [False, False, 1]
    assert path.read_bytes() == before


def test_no_path_is_the_users_own_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_CACHE_DIR", str(tmp_path / "cache"))
    assert Database().append(record())
    assert (tmp_path / "cache" / "tuned.jsonl").is_file() and Database().best(KEY) is not None
    monkeypatch.setenv("ROUNDEL_CACHE", "0")
    assert default_path() is None and not Database().append(record()) and Database().best(KEY) is None


@pytest.mark.parametrize("given", [3, b"bytes", ["a"]])
def test_what_is_no_path(given):
    with pytest.raises(OptionError, match="database"):
        Database(given)


# --- processes


def _write(path, name, count):
    database = Database(path)
    for k in range(count):
        assert database.append(record(name + k / 1000))


def test_several_write_at_once(path):
    writers = [FORK.Process(target=_write, args=(path, k, 40)) for k in range(1, 5)]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
    found = Database(path)
    assert sorted(r.seconds for r in found) == sorted(w + k / 1000 for w in range(1, 5) for k in range(40)) and not found.skipped


def _write_until_killed(path, turn, said):
    database = Database(path)
    for k in range(10**6):
        assert database.append(record(turn + k / 1e6, name="x" * 50_000))
        said.send(turn + k / 1e6)


def test_nothing_that_was_committed_is_lost_when_a_writer_is_killed(path):
    """Twenty writers, each killed at a random moment: what they said was kept is there."""
    rng, committed = np.random.default_rng(1), []
    for turn in range(1, 21):
        heard, said = FORK.Pipe(duplex=False)
        writer = FORK.Process(target=_write_until_killed, args=(path, turn, said))
        writer.start()
        said.close()
        committed.append(heard.recv())
        time.sleep(rng.uniform(0, 0.02))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        with contextlib.suppress(EOFError, OSError):
            while True:
                committed.append(heard.recv())
    found = Database(path)
    kept = {r.seconds for r in found}
    assert set(committed) <= kept and len(committed) >= 20
    assert sum(found.skipped.values()) <= 20
