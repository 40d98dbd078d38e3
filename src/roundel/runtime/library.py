# SPDX-License-Identifier: Apache-2.0
"""The C runtime: found where the package was installed, or compiled once into the user's cache; and its functions."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..ir import cache_entry, cache_folder
from ..ir.errors import BuildError
from . import interrupt, printing, toolchain
from .native import RdFunction, RdLibrary, RdOptions

_PACKAGE = Path(__file__).resolve().parent.parent
_FLAGS = ("-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections")
_LIBRARIES = ("libroundel_rt.so", "libroundel_rt.a")

# What generated code may call; code compiled in process is linked against these addresses.
ENTRY_POINTS = (
    "rd_parallel_for",
    "rd_checkpoint",
    "rd_scratch",
    "rd_fail",
    "rd_failf",
    "rd_alloc_output",
    "rd_heap_alloc",
    "rd_heap_free",
    "rd_call_packed",
    "rd_call_packed_into",
    "rd_profile_begin",
    "rd_profile_end",
)


def source_dir() -> Path:
    """Folder of the runtime's C files: the checkout's, or the copy that is installed with the package."""
    for folder in (_PACKAGE.parent.parent / "csrc", _PACKAGE / "csrc", _installed() / "csrc"):
        if (folder / "roundel.h").is_file():
            return folder
    raise BuildError(
        "the C runtime's sources are missing", why=f"looked beside {_PACKAGE}", hint="install Roundel again"
    )


def _installed() -> Path:
    return Path(sysconfig.get_path("platlib")) / "roundel"


def folder() -> Path:
    """Folder that holds ``libroundel_rt.so`` and ``libroundel_rt.a`` for this machine.

    In a checkout they are compiled from its sources, so that an edit takes effect; an installed package brings its own. Raises BuildError
    where they cannot be compiled and no installed ones are of the same sources: an older runtime would refuse what is compiled now.
    """
    checkout = _PACKAGE.parent.parent / "csrc" / "roundel.h"
    prebuilt = next(
        (f for f in (_PACKAGE / "lib", _installed() / "lib") if all((f / n).is_file() for n in _LIBRARIES)), None
    )
    if prebuilt and not checkout.is_file():
        return prebuilt
    try:
        return compiled(toolchain.compiler())
    except BuildError as error:
        if prebuilt and _sources(prebuilt.parent / "csrc") == _sources(source_dir()):
            return prebuilt
        raise BuildError("the C runtime cannot be compiled", why=str(error), hint="name a C compiler that works in CC, or `pip install ziglang`") from error


def _sources(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.[ch]")}


def compiled(compiler: Sequence[str], flags: Sequence[str] = (), shared: bool = True) -> Path:
    """Folder with the libraries as that compiler makes them, from the cache if it did so before.

    ``flags`` are added (for another machine: its architecture); without ``shared`` only the static library is made.
    """
    sources = sorted(source_dir().glob("*.[ch]"))
    key = hashlib.sha256(repr((tuple(compiler), _FLAGS, tuple(flags), shared, platform.machine())).encode())
    for source in sources:
        key.update(source.read_bytes())
    names = ("runtime", key.hexdigest()[:32])
    if (entry := cache_entry.find(*names)) is not None:
        return entry.path
    if names in _made:
        return _made[names]
    compile_into = functools.partial(_compile_into, [s for s in sources if s.suffix == ".c"], compiler, flags, shared)
    with cache_folder.new_folder() as work, suppress(BuildError):  # the disk of the cache may be full, that of temporary files is another
        if work is not None:
            compile_into(work)
            if cache_entry.keep(work, *names) and (entry := cache_entry.find(*names)) is not None:
                return entry.path
    work = toolchain.temporary_folder("roundel-runtime-")
    atexit.register(_remove, work, os.getpid())
    compile_into(work)
    _made[names] = work
    return work


_made: dict[tuple[str, str], Path] = {}  # what this process compiled for itself, where there is no cache


def _remove(made: Path, process: int) -> None:
    if os.getpid() == process:  # and not a child that was forked
        shutil.rmtree(made, ignore_errors=True)


def _compile_into(sources: list[Path], compiler: Sequence[str], flags: Sequence[str], shared: bool, work: Path) -> None:
    for source in sources:  # one by one: zig's compiler makes one object of all that it is given at once, for some machines
        toolchain.run([*compiler, *_FLAGS, *flags, "-c", source], cwd=work)
    objects = sorted(work.glob("*.o*"))  # zig calls those for Windows .obj
    toolchain.run([*toolchain.archiver(), "rcs", work / _LIBRARIES[1], *objects])
    if shared:
        toolchain.run([*compiler, *flags, "-shared", "-o", work / _LIBRARIES[0], *objects, "-lpthread", "-ldl"])
    for built in objects:
        built.unlink()


def header() -> Path:
    """``roundel.h``, the interface for C programs."""
    return source_dir() / "roundel.h"


def static_library() -> Path:
    """``libroundel_rt.a`` for this machine, to be linked into models."""
    return folder() / _LIBRARIES[1]


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Say the C types of the functions that Python calls, in a runtime by itself or in a model's file."""
    p, i = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("roundel_open", i, [p, ctypes.POINTER(RdOptions), ctypes.POINTER(p)]),
        ("roundel_close", None, [p]),
        ("roundel_function", ctypes.POINTER(RdFunction), [p, ctypes.c_char_p]),
        ("roundel_last_error", ctypes.c_char_p, []),
        ("rd_ffi_register", i, [p, ctypes.c_int32, ctypes.c_char_p]),
        ("rd_invoke", i, [p, ctypes.c_int32, p]),
        ("roundel_release", None, [p, p]),
        ("roundel_profile", i, [p, ctypes.c_char_p, p, p, i]),
        ("roundel_num_threads", i, [p]),
        ("rd_package_level", i, [p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32)]),
        ("rd_package_library", i, [p, ctypes.POINTER(ctypes.POINTER(RdLibrary))]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    printing.install(library)
    interrupt.install(library)
    return library


@functools.cache
def runtime() -> ctypes.CDLL:
    """The C runtime of this process, which serves all code that is compiled in it."""
    return declare(ctypes.CDLL(str(folder() / _LIBRARIES[0])))


def address(library: ctypes.CDLL, name: str) -> int:
    """Address of an exported function or variable."""
    found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert found is not None
    return found


@functools.cache
def symbols() -> dict[str, int]:
    """Name and address of everything that generated code may call (`ENTRY_POINTS`)."""
    return {name: address(runtime(), name) for name in ENTRY_POINTS}
