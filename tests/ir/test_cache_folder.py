# SPDX-License-Identifier: Apache-2.0
"""The cache folder: others may not write to it, files come back as they were written or not at all, no disk is an error."""

from __future__ import annotations

import errno
import logging
import os
import stat
import time

import pytest

from roundel.ir import cache_entry, cache_folder, options

OTHER = 54321  # a user that is not us
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files to other users needs root")


@pytest.fixture
def root(tmp_path):
    cache_folder.tell.cache_clear()
    with options.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def test_what_is_written_is_read_and_private(root):
    cache_folder.write("things", "one", content=b"content")
    assert cache_folder.read("things", "one") == b"content"
    assert stat.S_IMODE(root.stat().st_mode) == stat.S_IMODE((root / "things").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "things" / "one").stat().st_mode) == 0o600
    assert not list((root / "tmp").iterdir())


def test_missing_folders_are_made_private_whatever_the_umask(tmp_path):
    mask = os.umask(0)
    try:
        with options.override(cache_dir=str(tmp_path / "a" / "b" / "c")):
            cache_folder.write("one", content=b"1")
            assert cache_folder.read("one") == b"1"
    finally:
        os.umask(mask)
    assert [stat.S_IMODE((tmp_path / p).stat().st_mode) for p in ("a", "a/b", "a/b/c")] == [0o700] * 3


DAMAGES = {
    "removed": lambda p: p.unlink(),
    "empty": lambda p: p.write_bytes(b""),
    "cut off": lambda p: p.write_bytes(p.read_bytes()[:-1]),
    "longer": lambda p: p.write_bytes(p.read_bytes() + b"x"),
    "flipped": lambda p: p.write_bytes(bytes([p.read_bytes()[0] ^ 1]) + p.read_bytes()[1:]),
    "a folder": lambda p: (p.unlink(), p.mkdir(), (p / "file").touch()),
    "a FIFO": lambda p: (p.unlink(), os.mkfifo(p)),
    "a link": lambda p: (p.rename(p.with_name("moved")), p.symlink_to("moved")),
    "a dangling link": lambda p: (p.unlink(), p.symlink_to("nowhere")),
    "another file of the cache": lambda p: p.write_bytes(p.with_name("two").read_bytes()),
    "writable by others": lambda p: p.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_absent_and_can_be_written_again(root, damage):
    cache_folder.write("things", "one", content=b"1")
    cache_folder.write("things", "two", content=b"2")
    DAMAGES[damage](root / "things" / "one")
    assert cache_folder.read("things", "one") is None
    cache_folder.write("things", "one", content=b"again")
    assert cache_folder.read("things", "one") == b"again"


@pytest.mark.parametrize("place", ["", "things"])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(root, place, mode, caplog):
    cache_folder.write("things", "one", content=b"1")
    (root / place).chmod(mode)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert cache_folder.read("things", "one") is None
            cache_folder.write("things", "three", content=b"3")
    assert not (root / "things" / "three").exists()
    (line,) = caplog.records
    assert line.name == "roundel.cache" and "others may write to" in line.message and "chmod" in line.message


def test_a_folder_above_decides_too(root, tmp_path):
    cache_folder.write("one", content=b"1")
    tmp_path.chmod(0o777)
    assert cache_folder.read("one") is None
    tmp_path.chmod(0o1777)  # with the sticky bit others cannot rename what is not theirs
    assert cache_folder.read("one") == b"1"
    tmp_path.chmod(0o700)


@as_root
@pytest.mark.parametrize("place", ["", "things", "things/one"])
def test_what_belongs_to_another_user_is_not_used(root, place):
    cache_folder.write("things", "one", content=b"1")
    os.chown(root / place, OTHER, OTHER)
    assert cache_folder.read("things", "one") is None


@as_root
@pytest.mark.parametrize("link", ["link", "down/link"])
def test_links_on_the_way_are_followed_unless_another_user_made_them(tmp_path, link):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "down").mkdir(mode=0o700)
    (tmp_path / link).symlink_to(tmp_path / "real")
    with options.override(cache_dir=str(tmp_path / link / "cache")):
        cache_folder.write("one", content=b"1")
        assert (tmp_path / "real" / "cache" / "one").is_file() and cache_folder.read("one") == b"1"
        os.chown(tmp_path / link, OTHER, OTHER, follow_symlinks=False)
        assert cache_folder.read("one") is None


def test_a_link_inside_of_the_cache_is_not_followed(root, tmp_path):
    cache_folder.write("things", "one", content=b"1")
    (root / "things").rename(tmp_path / "elsewhere")
    (root / "things").symlink_to(tmp_path / "elsewhere")
    assert cache_folder.read("things", "one") is None


def test_links_in_a_circle_are_no_folder(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with options.override(cache_dir=str(tmp_path / "a" / "cache")):
        assert cache_folder.folder(make=True) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["mkdir", "open", "rename"])
def test_a_disk_that_refuses_is_told_once_and_no_error(root, monkeypatch, caplog, call, code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(os, call, refuse)
        for name in ("one", "two"):
            cache_folder.write(name, content=b"1")
    assert len(caplog.records) == 1 and os.strerror(code) in caplog.text
    assert cache_folder.read("one") is None
    assert not list(root.glob("tmp/*"))


def test_without_a_home_there_is_no_cache(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "ROUNDEL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert options.cache_dir() is None and cache_folder.folder(make=True) is None
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # is to be ignored
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(options.cache_dir()) == "/home/somebody/.cache/roundel"


def test_switched_off_it_touches_nothing(root):
    with options.override(cache=False):
        cache_folder.write("one", content=b"1")
        assert cache_folder.read("one") is None and cache_folder.folder(make=True) is None
    assert not root.exists()


def test_what_a_killed_process_left_is_swept(root):
    with cache_folder.new_folder() as used:
        left = [used.with_name("new-1-file"), used.with_name("new-1-folder"), used.with_name("new-1-fresh"), used.with_name("not of ours")]
        for path in left:
            path.mkdir() if "folder" in path.name else path.touch()
        for path in (used, *left):
            if "fresh" not in path.name:
                os.utime(path, (time.time() - 1000,) * 2)
        cache_folder._sweep.cache_clear()
        cache_folder.write("one", content=b"1")
        assert sorted(p.name for p in (root / "tmp").iterdir()) == sorted([used.name, "new-1-fresh", "not of ours"])


def entry(content=b"code"):
    with cache_folder.new_folder() as folder:
        (folder / "a").write_bytes(content)
        (folder / "b").write_bytes(b"more")
        assert cache_entry.keep(folder, "kind", "key")


def test_an_entry_stays_readable_when_it_is_removed_or_replaced(root):
    entry()
    found = cache_entry.find("kind", "key")
    entry(b"other")
    assert b"".join(found.blocks("a")) == b"code"
    cache_folder.remove(root / "kind")
    assert b"".join(found.blocks("a")) == b"code"
    assert cache_entry.find("kind", "key") is None


@pytest.mark.parametrize("name", ["a", "contents"])
@pytest.mark.parametrize("damage", [d for d in DAMAGES if "another" not in d])
def test_a_damaged_entry_is_absent_and_can_be_kept_again(root, damage, name):
    entry()
    DAMAGES[damage](root / "kind" / "key" / name)
    assert cache_entry.find("kind", "key") is None
    entry(b"again")
    assert b"".join(cache_entry.find("kind", "key").blocks("a")) == b"again"


def test_contents_are_read_once_in_a_boot(root, monkeypatch):
    entry()
    reads = []
    monkeypatch.setattr(cache_entry.Entry, "digest", lambda self, name: reads.append(name))
    assert cache_entry.find("kind", "key") is not None and not reads
    monkeypatch.setattr(cache_entry, "_boot", lambda: "another boot")
    assert cache_entry.find("kind", "key") is None and reads
