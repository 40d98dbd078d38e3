# SPDX-License-Identifier: Apache-2.0
"""The user's folder of things that can be made again: what is trusted there, how its files are written and read.

Code from this folder is run, so it must be as private as a key of ssh: all folders on the way to it, itself and every file in it
belong to the user or to root, and nobody else may write to them. What is not so is not used; each cause is told once. Files get their names
when they are complete, with a digest behind their content; a damaged one reads as if it were not there. A disk that is full,
read-only or missing costs time and is never an error.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from . import options

_TEMPORARY, _PREFIX = "tmp", "new-"  # the folder of what is not complete yet, and how names in it begin
_ABANDONED = 60  # seconds after which temporary files that nobody holds are removed
_MOST_LINKS = 40  # symbolic links on the way to a folder, as Linux has it
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR)  # why a name cannot be given: something else has it
_DIGEST = hashlib.sha256().digest_size


class _NotPrivateError(Exception):
    """Others may write to a file or folder."""


def folder(*names: str, make: bool = False) -> Path | None:
    """A folder inside the cache, made if need be with ``make``; None where there is none, where others may write to it, and
    with the option ``cache`` off."""
    root = options.cache_dir() if options.get("cache") else None
    if root is None:
        return None
    try:
        path = _without_links(os.path.abspath(root), make)
        _check(path, os.lstat(path))
        for name in names:
            path = os.path.join(path, name)
            _enter(path, make)
    except _NotPrivateError as error:
        tell(f"the cache in {root} is not used: {error}; take that right away (chmod go-w), or name a folder of your own in ROUNDEL_CACHE_DIR")
        return None
    except FileNotFoundError as error:
        if make:
            tell(f"nothing is kept in the cache {root}: {error.strerror}")
        return None
    except OSError as error:
        tell(f"nothing is kept in the cache {root}: {error.strerror}")
        return None
    return Path(path)


def _without_links(path: str, make: bool) -> str:
    """The path of a folder without symbolic links. Everything on the way is checked from the top, so that nobody can exchange what is
    below; in a folder with the sticky bit others cannot rename what is not theirs."""
    at, todo, links = "/", path.split("/"), 0
    _check(at, os.lstat(at), sticky=True)
    while todo:
        name = todo.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        below = os.path.join(at, name)
        facts = _enter(below, make, sticky=True)
        if not stat.S_ISLNK(facts.st_mode):
            at = below
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(0, f"too many symbolic links at {below}")
        target = os.readlink(below)
        at, todo = "/" if target.startswith("/") else at, target.split("/") + todo
    return at


def _enter(path: str, make: bool, sticky: bool = False) -> os.stat_result:
    """What lies at ``path``, checked: a folder, made if need be, or (on the way to the cache) a link."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) and not (sticky and stat.S_ISLNK(facts.st_mode)):
        raise NotADirectoryError(0, f"{path} is not a folder")
    _check(path, facts, sticky)
    return facts


def _check(path: str, facts: os.stat_result, sticky: bool = False) -> None:
    """Raises where a file or folder is not the user's or root's, or others may write to it."""
    if facts.st_uid not in (0, os.geteuid()):
        raise _NotPrivateError(f"{path} belongs to another user ({facts.st_uid})")
    if stat.S_ISLNK(facts.st_mode) or (sticky and facts.st_mode & stat.S_ISVTX):
        return
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _NotPrivateError(f"others may write to {path}")


def open_file(path: str | Path) -> int | None:
    """A file of the cache, open for reading: its descriptor; None unless it is a plain file that only the user (or root) may write to.
    What is checked is what was opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not make us wait
    except OSError:
        return None
    facts = os.fstat(descriptor)
    try:
        _check(str(path), facts)
        if stat.S_ISREG(facts.st_mode):
            return descriptor
    except _NotPrivateError:  # of thousands of files one line is told
        tell(f"files of the cache in {options.cache_dir()} are not used: they belong to others, or others may write to them; take that right away "
             "(chmod -R go-w)")
    os.close(descriptor)
    return None


def read(*names: str) -> bytes | None:
    """The content that ``write`` gave to a file of the cache; None where there is none, or it is damaged."""
    place = folder(*names[:-1])
    descriptor = None if place is None else open_file(place / names[-1])
    if descriptor is None:
        return None
    try:
        with open(descriptor, "rb") as file:
            content = file.read()
    except OSError:
        return None
    content, digest = content[:-_DIGEST], content[-_DIGEST:]
    return content if digest == _digest(names, content) else None


def write(*names: str, content: bytes) -> None:
    """Keep a small file in the cache; where the disk refuses, that is told and all."""
    place = folder(*names[:-1], make=True)
    temporary = _temporary()
    if place is None or temporary is None:
        return
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(content + _digest(names, content))
            put(temporary, place / names[-1])
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        tell(f"nothing is kept in the cache {options.cache_dir()}: {error.strerror}")


def _digest(names: tuple[str, ...], content: bytes) -> bytes:
    """Of the content and of the file's name: a file is no good in the place of another."""
    return hashlib.sha256("/".join(names).encode() + b"\0" + content).digest()


def put(temporary: Path, place: Path) -> None:
    """Give a complete file or folder its name, whatever has that name now. Raises OSError."""
    try:
        os.rename(temporary, place)
    except OSError as error:
        if error.errno not in _OCCUPIED:
            raise
        remove(place)
        os.rename(temporary, place)


def remove(place: Path) -> None:
    """Remove a file or folder at once for those who look for it. Raises OSError where it cannot be moved."""
    aside = _temporary()
    if aside is None or not os.path.lexists(place):
        return
    with suppress(FileNotFoundError):  # another process did
        os.rename(place, aside)
    _delete(aside)


@contextmanager
def new_folder() -> Iterator[Path | None]:
    """A folder in which something can be put together, on the disk of the cache; None where the disk refuses. It is locked meanwhile."""
    path, lock = _temporary(), None
    if path is not None:
        try:
            path.mkdir(mode=0o700)
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            tell(f"nothing is kept in the cache {options.cache_dir()}: {error.strerror}")
            path = None
    try:
        yield path
    finally:
        if path is not None:
            _delete(path)
        if lock is not None:
            os.close(lock)


def _temporary() -> Path | None:
    """A new name in the folder of what is not complete; what processes that were killed left there is removed now and then."""
    place = folder(_TEMPORARY, make=True)
    if place is None:
        return None
    _sweep(place)
    return place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"


@cache
def _sweep(place: Path) -> None:
    """Remove what is old and locked by nobody; once in a process."""
    with suppress(OSError):
        for path in place.iterdir():
            if path.name.startswith(_PREFIX) and not _in_use(path):
                _delete(path)


def _in_use(path: Path) -> bool:
    try:
        if time.time() - path.lstat().st_mtime < _ABANDONED:
            return True
        if not path.is_dir():
            return False
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@cache
def tell(message: str) -> None:
    """Log a warning, once in a process."""
    logging.getLogger("roundel.cache").warning("%s", message)
