# SPDX-License-Identifier: Apache-2.0
"""``load("model.so")``: a shipped file back into Python; what it needs is in the file (and its weights beside it).

Code is loaded from a private copy in memory, so what was checked is what runs: the file may be replaced or removed, and a file that is
loaded again under the same name is another library. Large weights are mapped from the file, which all processes share.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..ir import options
from ..ir.errors import ModelError, OptionError
from . import library, metadata, native, printing, tensors, toolchain
from .executable import Executable, OpenLibrary, not_opened
from .integrity import SavedFile, Trailer, weights_name
from .model import Model

_numbers = itertools.count()


def load_executable(path: str | Path, *, threads: int | None = None, profile: bool = False, verify: bool = False) -> Executable:
    """All functions of a shipped file. Raises ModelError if it is none or is damaged (``verify``: weights of any size are read and
    compared as well), MachineError (a CallError) if it is for another CPU."""
    with _opened(path, verify) as saved:
        executable, trailer = _load(saved, threads, profile), saved.trailer
    executable.code = partial(_unchanged, path, trailer)
    executable.reopen = lambda: load_executable(_unchanged(path, trailer), threads=threads, profile=True)
    return executable


def _unchanged(path: str | Path, trailer: Trailer, symbol: str = "") -> Path:
    """The file of a model, if that is still the one that was loaded; raises ModelError."""
    with SavedFile(path) as now:
        if now.trailer != trailer:
            raise ModelError(f"{path} was replaced by another model since it was loaded", hint="load it again, or save the model where it was compiled")
    return Path(path)


def load(path: str | Path, *, threads: int | None = None, profile: bool = False, verify: bool = False) -> Model:
    """A saved model; ``threads`` is the most that a run uses (default: all cores this process may use). Errors and ``verify`` are
    those of `load_executable`."""
    executable = load_executable(path, threads=threads, profile=profile, verify=verify)
    name = "main" if "main" in executable else next(iter(executable))

    def copy_to(target: Path, **changes: Any) -> Path:
        if changes:
            raise OptionError(f"{Path(path).name} is copied as it is, {' and '.join(changes)} would change it", hint="give it where the model is compiled")
        toolchain.check_output(target, objects=False)
        with SavedFile(executable.code("")) as now:  # if it is still the same
            return _copy(now, target)

    return Model(executable, name, copy_to)


@contextmanager
def _opened(path: str | Path, verify: bool) -> Iterator[SavedFile]:
    with SavedFile(path, contents=verify) as saved:
        saved.check_machine()
        yield saved


def _load(saved: SavedFile, threads: int | None, profile: bool) -> Executable:
    threads = options.choose("threads", threads)
    shared = _load_code(saved)
    try:
        return _open(saved, shared, native.RdOptions(num_threads=threads or 0, profile=int(profile)))
    except BaseException:
        _unload(shared)
        raise


def _open(saved: SavedFile, shared: ctypes.CDLL, settings: native.RdOptions) -> Executable:
    try:
        package = native.RdPackage.in_dll(shared, "roundel_package")
    except ValueError:
        raise ModelError(f"{saved.path.name} is a shared library, but not one of Roundel's", hint="make it with `roundel compile`") from None
    described = package.library.contents
    if described.abi != native.ABI:
        raise ModelError(f"{saved.path.name} was built for version {described.abi} of the runtime's interface, this is {native.ABI}",
                         hint="compile it again")
    library.declare(shared)
    chosen = ctypes.POINTER(native.RdLibrary)()
    if status := shared.rd_package_library(ctypes.byref(package), ctypes.byref(chosen)):
        raise not_opened(status, saved.path.name, shared)
    described = chosen.contents
    keep = _place_weights(saved, settings)
    handle = ctypes.c_void_p()
    if status := shared.roundel_open(ctypes.byref(described), ctypes.byref(settings), ctypes.byref(handle)):  # its weights are given and were checked
        raise not_opened(status, saved.path.name, shared)
    assert handle.value is not None
    opened = OpenLibrary(shared, handle.value, keep, partial(_unload, shared))
    text = (described.metadata or b"").decode()
    functions, extra = metadata.read(text) if text else ({}, {})
    return Executable(opened, described, functions, extra)


def _place_weights(saved: SavedFile, settings: native.RdOptions) -> Any:
    """Say where the weights are; returns what holds them in memory. Small ones are those that were compared, large ones are mapped."""
    small = saved.small_weights()
    if small is not None:
        memory = tensors.aligned_copy(small)
        settings.weights = tensors.address(memory)
        return memory
    if saved.trailer.nbytes:
        file = saved.file if saved.weights_file is None else saved.weights_file
        name = f"{_OPEN_FILES}/{file}" if _OPEN_FILES else os.fspath(saved.weights_path or saved.path)
        settings.weights_file, settings.weights_offset = os.fsencode(name), saved.trailer.start
    return None


_OPEN_FILES = next(filter(os.path.isdir, ("/proc/self/fd", "/dev/fd")), None)


def _load_code(saved: SavedFile) -> ctypes.CDLL:
    """The image without its weights, loaded from a file that has no name any more; raises ModelError."""
    try:
        file, path = _nameless_file()
    except OSError as error:
        raise ModelError(f"{saved.path.name} cannot be loaded", why=f"there is no file in memory, since /proc is not there, and {error.strerror or error}",
                         hint="mount /proc, or name a folder that can be written: TMPDIR") from error
    try:
        with open(file, "r+b", closefd=False) as copy:
            copy.write(saved.head)
            copy.seek(saved.trailer.image - len(saved.tail))
            copy.write(saved.tail)
            copy.truncate(saved.trailer.image)
        return ctypes.CDLL(path or _other_name(file), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ModelError(f"{saved.path.name} cannot be loaded", why=str(error), hint="is it for this machine and system?") from error
    finally:
        os.close(file)
        if path is not None:
            os.unlink(path)


def _nameless_file() -> tuple[int, str | None]:
    """A new file in memory or, where there are none, in the folder for temporary files: then its name, which is to be removed."""
    if _OPEN_FILES:
        with suppress(OSError, AttributeError):
            return os.memfd_create("roundel", os.MFD_CLOEXEC), None
    return tempfile.mkstemp(prefix="roundel-", suffix=".so")


def _other_name(file: int) -> str:
    """A name of an open file that was never used before: the system's loader takes two libraries of one name for the same.

    Numbers of open files come again, so each name also spells a number of its own, in slashes (0) and dots (1), which lead nowhere.
    """
    spelled = "".join("./" if bit == "1" else "/" for bit in f"{next(_numbers):b}")
    return f"{_OPEN_FILES}/{spelled}{file}"


def _unload(shared: ctypes.CDLL) -> None:
    import _ctypes

    if hasattr(shared, "roundel_register"):
        printing.remove(shared)
    _ctypes.dlclose(shared._handle)


def _copy(saved: SavedFile, target: Path) -> Path:
    """The library under another name, its weights' file named after it."""
    head, trailer = saved.head, saved.trailer
    if saved.weights_file is None:
        with toolchain.atomic_output(target) as temporary:
            _write(temporary, itertools.chain((head,), saved.blocks(), (saved.tail, trailer.pack())))
        return target
    name = weights_name(target)
    if name != saved.weights_name:
        head, trailer = saved.renamed(name)
    with toolchain.atomic_output(target) as temporary, toolchain.atomic_output(target.with_name(name)) as weights:
        _write(weights, itertools.chain(saved.blocks(), (trailer.weights.hex().encode(),)))
        _write(temporary, (head, trailer.pack()))
    return target


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("r+b") as sink:
        for part in parts:
            sink.write(part)
