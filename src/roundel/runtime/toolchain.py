# SPDX-License-Identifier: Apache-2.0
"""The C compiler of this machine: the system's, or the ``ziglang`` package's; atomic writes of what it makes."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..ir.errors import BuildError, OptionError
from ..ir.processors import FAMILIES

_SAME_DLL = ("-Wl,--no-insert-timestamp", "-Wl,--disable-auto-image-base")
"""A DLL says neither when it was made nor, by where it wants to lie in memory, in which folder."""


@functools.cache
def compiler(triple: str | None = None) -> tuple[str, ...]:
    """The command of a C compiler for this machine, or with a ``triple`` for another; BuildError if there is none."""
    if triple is None:
        named = os.environ.get("CC")
        if named and shutil.which(shlex.split(named)[0]):
            return tuple(shlex.split(named))
        for name in ("cc", "gcc", "clang"):
            if path := shutil.which(name):
                return (path,)
    elif triple.endswith("windows-gnu") and (path := shutil.which(f"{triple.partition('-')[0]}-w64-mingw32-gcc")):
        return (path, "-static-libgcc", *_SAME_DLL)
    if has_zig():
        # with debugging data, files would tell of the folder where they were made
        return (*zig("cc"), "-g0", *(_zig_target(triple) if triple else ()))
    raise BuildError(
        "no C compiler was found" + (f" for {triple}" if triple else ""),
        hint="`pip install ziglang`: it links for other machines, which this one's compilers do not" if triple else
        "install gcc or clang, or `pip install ziglang`, or set CC",
    )


def has_zig() -> bool:
    """Whether the ``ziglang`` package is installed."""
    return importlib.util.find_spec("ziglang") is not None


def zig(tool: str) -> tuple[str, ...]:
    """The command of one of the tools of the ``ziglang`` package: ``cc``, ``build-obj``, ``ar``, ``wasm-ld``."""
    return (sys.executable, "-P", "-m", "ziglang", tool)


def _zig_target(triple: str) -> tuple[str, ...]:
    """The options by which zig compiles for a machine that other compilers call ``triple``."""
    family, _, rest = triple.partition("-")
    known = FAMILIES.get(family)
    name, more = (known.zig or family, known.zig_options) if known else (family, ())
    return ("-target", f"{name}-{rest}", *more)


def program_compiler(triple: str | None, *, static: bool = True) -> tuple[str, ...]:
    """The command that links programs for this machine, or with a ``triple`` for another one: if a compiler for that machine is installed, ``static``
    ones, which run without its libraries, else by the ``ziglang`` package. Raises BuildError."""
    if triple is None:
        return compiler()
    path = shutil.which(f"{triple.partition('.')[0]}-gcc")  # without the version of the C library, which a static program does not need
    return (path, *(("-static",) if static else ())) if path else compiler(triple)


def module_linker() -> tuple[str, ...]:
    """The command that links WebAssembly modules: LLVM's linker, of the system or the ``ziglang`` package. Raises BuildError."""
    if path := shutil.which("wasm-ld"):
        return (path,)
    if has_zig():
        return zig("wasm-ld")
    raise BuildError("no linker for WebAssembly was found", hint="`pip install ziglang`, or install lld")


def llvm_text(source: str, language: str = "c", options: Sequence[str] = ()) -> str:
    """C or C++ (``c++``) as LLVM text, by clang or the ``ziglang`` package's. Raises BuildError."""
    tool = (path,) if (path := shutil.which("clang")) else zig("cc")
    if not path and not has_zig():
        raise BuildError("no compiler was found that makes LLVM text", hint="install clang, or `pip install ziglang`")
    with tempfile.TemporaryDirectory() as folder:
        written, made = Path(folder, "source"), Path(folder, "made.ll")
        written.write_text(source)
        run([*tool, "-x", language, "-O3", "-g0", "-fno-sanitize=all", *options, "-S", "-emit-llvm", "-o", made, written])
        return made.read_text()


def archiver() -> tuple[str, ...]:
    """The command that makes static libraries."""
    if path := shutil.which("ar"):
        return (path,)
    return zig("ar")


def keep_symbols(path: Path, patterns: Sequence[str], triple: str | None = None) -> None:
    """Make all other symbols of an object its own, so that two of them can be linked into one program; BuildError without objcopy."""
    names = [f"{triple}-objcopy", "llvm-objcopy"] if triple else ["objcopy", "llvm-objcopy"]
    tool = next(filter(None, map(shutil.which, names)), None)
    if tool is None:
        raise BuildError("an object to link needs objcopy, which was not found", hint="install binutils, or save a shared library (.so)")
    run([tool, "--wildcard", *(f"--keep-global-symbol={p}" for p in patterns), path])


def temporary_folder(prefix: str) -> Path:
    """A new folder for what lasts no longer than this process; raises BuildError where there can be none."""
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise BuildError("there is no place for temporary files", why=error.strerror or str(error),
                         hint="make room there, or name another folder in TMPDIR") from error


def run(command: Sequence[str | Path], cwd: Path | None = None) -> None:
    """Run a tool; raises BuildError with what it printed."""
    import subprocess  # takes long to import, and a model of the cache needs no tool

    temporary = {**os.environ, "TMPDIR": tempfile.gettempdir()}  # a folder that is there, whatever the user's variable says
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=temporary, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        shown = "\n".join(told((done.stdout + done.stderr).strip().splitlines()))
        raise BuildError(
            f"{Path(str(command[0])).name} failed with status {done.returncode}",
            why=f"{shlex.join(map(str, command))}\n{shown}",
        )


def told(lines: Sequence[str]) -> list[str]:
    """What a tool said, without the back trace of one that broke down, which is about its own insides: at most 30 lines, those behind the first error."""
    kept, in_trace = [], False
    for line in lines:
        in_trace = bool(_TRACE.search(line)) or (in_trace and line[:1] in (" ", "\t", "^"))
        if not in_trace:
            kept.append(line)
    first = next((k for k, line in enumerate(kept) if "error" in line.lower()), max(0, len(kept) - 30))
    return kept[first : first + 30] or ["it broke down and said nothing of what it was asked for"]


_TRACE = re.compile(r"^thread \d+ panic|\.zig:\d+:\d+: 0x|^\?\?\?:\?:\?: 0x|^Traceback \(most recent call last\)|^  File \"|^Unwind information|^Aborted")
_ENDINGS = (".so", *filter(None, [{"darwin": ".dylib", "win32": ".dll"}.get(sys.platform)]))


OTHER_ENDINGS = {".c": ("C", "c"), ".wasm": ("WebAssembly", "wasm32")}
"""Of files that are neither libraries nor objects to link: the language that they are in, and the target that models are compiled for to be such."""
_SYSTEMS = {".dll": ("Windows", "x86_64-windows"), ".dylib": ("macOS", "aarch64-macos")}
"""Of libraries for other systems: the system, and a target whose libraries they are."""


def is_library(path: Path) -> bool:
    """Whether a file of that name is a shared library: ``.so``, also with a version behind it (``.so.1``), or this system's own ending."""
    return path.suffix in _ENDINGS or re.search(r"\.so(\.\d+)+$", path.name) is not None


def check_output(path: Path, *, objects: bool = True, ending: str = "") -> None:
    """Raises OptionError unless the name is one of a shared library or (with ``objects``) of an object to link. ``ending``: that of libraries of the
    model's system; objects to link are made for Linux only."""
    if ending not in ("", ".so") and not os.path.isdir(path):
        if path.suffix != ending:
            system = _SYSTEMS[ending][0] if ending in _SYSTEMS else "another system"
            why = "objects to link are made for Linux and for boards" if path.suffix == ".o" else f"libraries of {system} end in {ending}"
            raise OptionError(f"{path.name}: this model was compiled for {system}", why=why,
                              hint=f"name it {path.stem}{ending}" + ", which programs link with as well" * (path.suffix == ".o"))
        return
    if is_library(path) or (objects and path.suffix == ".o") or os.path.isdir(path):  # a folder is refused where it would be written
        return
    if path.suffix in OTHER_ENDINGS:
        language, target = OTHER_ENDINGS[path.suffix]
        raise OptionError(f"{path.name}: this model was not compiled to {language}",
                          hint=f'compile it with target="{target}"; `roundel compile -o` does, where no target is named')
    if path.suffix in _SYSTEMS:
        system, target = _SYSTEMS[path.suffix]
        raise OptionError(f"{path.name}: this model was not compiled for {system}", hint=f'compile it with target="{target}" (`--target {target}`)')
    others = ", one that ends in .o an object to link, .c its source in C (target c), .wasm a module (target wasm32)"
    raise OptionError(f"{path.name}: {'this' if objects else 'a loaded'} model cannot be saved as {path.suffix or 'a file without an ending'}",
                      hint=f"a name that ends in {' or '.join(_ENDINGS)} gives a shared library" + others * objects)


@contextmanager
def atomic_output(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` that becomes ``path`` if the body succeeds and disappears if it does not.

    Its permissions are those that the process gives to new files. Raises BuildError when nothing can be written there, or the body
    meets a full disk.
    """
    if os.path.isdir(path):
        raise BuildError(f"{path} cannot be written", why="it is a folder", hint="name a file in it")
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o777 if is_library(path) else 0o666))
    except (OSError, ValueError) as error:
        raise BuildError(f"{path} cannot be written", why=getattr(error, "strerror", None) or str(error)) from error
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise BuildError(f"{path} cannot be written", why=error.strerror or str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)
