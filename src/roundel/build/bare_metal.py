# SPDX-License-Identifier: Apache-2.0
"""Models for processors without a system, such as those of microcontrollers: their compilers, objects to link, and what a model takes of a board.

The C source (`roundel.build.source`) is compiled as a board's program would compile it. What its object says is what the model takes: code and constants of
flash, variables and activations of RAM. Of the stack it takes what the deepest chain of calls does (`roundel.build.call_graph`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from ..ir.dataclass import dataclass
from ..ir.errors import BuildError, OptionError
from ..runtime import library, toolchain
from ..target.machines import MACHINES
from . import elf
from .call_graph import CallGraph, deepest_stack
from .limits import read_bytes

_OPTIONS = ("-std=c99", "-O2", "-fno-math-errno", "-fno-trapping-math", "-ffunction-sections", "-fdata-sections", "-w")
_AS_WRITTEN = ("-fno-tree-ter", "-fno-tree-reassoc", "-fno-tree-vectorize")
"""GCC: products are added to their sums one after the other, and factors loaded where they are written, as there are registers for. Otherwise it adds products
to each other first and keeps more numbers than a small processor has registers for: up to two fifths more instructions."""
_AS_WRITTEN_BY_CLANG = ("-fno-vectorize", "-fno-slp-vectorize")
"""zig: vectors are those of the source; what else becomes vectors takes flash."""
_GNU_ARM, _GNU_RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"
_HARD = ("-mthumb", "-mfloat-abi=hard")


@dataclass(frozen=True)
class _Compilers:
    """How a processor is called by GCC, whose command is ``gnu``, and by zig: a target, and a processor of it. ``zig_first``: GCC, as distributions have it
    for boards (12), makes no vectors for it."""

    gnu: str
    options: tuple[str, ...]
    zig: tuple[str, str]
    zig_first: bool = False


_PROCESSORS = {
    "cortex-m3": _Compilers(_GNU_ARM, ("-mcpu=cortex-m3", "-mthumb"), ("thumb-freestanding-eabi", "cortex_m3")),
    "cortex-m4": _Compilers(_GNU_ARM, ("-mcpu=cortex-m4", *_HARD), ("thumb-freestanding-eabihf", "cortex_m4+vfp4d16sp")),
    "cortex-m7": _Compilers(_GNU_ARM, ("-mcpu=cortex-m7", *_HARD), ("thumb-freestanding-eabihf", "cortex_m7+fp_armv8d16sp")),
    "cortex-m33": _Compilers(_GNU_ARM, ("-mcpu=cortex-m33", *_HARD), ("thumb-freestanding-eabihf", "cortex_m33+dsp+fp_armv8d16sp")),
    "cortex-m55": _Compilers(_GNU_ARM, ("-mcpu=cortex-m55", *_HARD), ("thumb-freestanding-eabihf", "cortex_m55+fp_armv8d16sp+mve_fp")),
    "rv32imac": _Compilers(_GNU_RISCV, ("-march=rv32imac", "-mabi=ilp32"), ("riscv32-freestanding-none", "generic_rv32+m+a+c")),
    "rv32imafc": _Compilers(_GNU_RISCV, ("-march=rv32imafc", "-mabi=ilp32f"), ("riscv32-freestanding-none", "generic_rv32+m+a+f+c")),
    "rv64gcv-bare": _Compilers(_GNU_RISCV, ("-march=rv64gcv", "-mabi=lp64d", "-mcmodel=medany"), ("riscv64-freestanding-none", "generic_rv64+m+a+f+d+c+v"),
                               zig_first=True),
}


@dataclass(frozen=True)
class Needs:
    """Bytes that a model takes of a board: of ``flash``, code and constants; of ``ram``, its activations and variables; of the ``stack`` at most (None: the
    compiler at hand does not tell; vectors have the length that the target has at least). Tensors that the program gives to the model are the program's."""

    flash: int
    ram: int
    stack: int | None = None

    def __str__(self) -> str:
        stack = "" if self.stack is None else f", stack {self.stack:,} bytes"
        return f"flash {self.flash:,} bytes, RAM {self.ram:,} bytes{stack}"


def compiler_of(cpu: str) -> tuple[str, ...] | None:
    """The command that compiles for a processor: the GCC for it, or the ``ziglang`` package; None where there is neither."""
    known = _PROCESSORS.get(cpu)
    if known is None:
        return None
    bare = f"-I{library.source_dir() / 'bare'}"  # headers for compilers that come without a C library
    path = shutil.which(known.gnu)
    if path and not (known.zig_first and toolchain.has_zig()):
        return (path, *known.options, *(("-ffreestanding", "-fbuiltin", bare) if known.gnu == _GNU_RISCV else ()))
    if toolchain.has_zig():
        target, name = known.zig
        model = [option for option in known.options if option.startswith("-mcmodel")]
        return (*toolchain.zig("cc"), "-target", target, f"-mcpu={name}", *model, "-fno-sanitize=all", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables",
                "-g0", bare)
    return None


def compiler_for_objects(cpu: str) -> tuple[str, ...]:
    """The command of `compiler_of`. Raises BuildError where there is no compiler."""
    if (command := compiler_of(cpu)) is not None:
        return command
    raise BuildError(f"no C compiler was found for {cpu}", hint=f"`pip install ziglang`, or install {_PROCESSORS[cpu].gnu}" if cpu in _PROCESSORS else
                     f"save C source (.c); objects are made for {', '.join(_PROCESSORS)}")


def compile_source(source: Path, out: Path, cpu: str) -> Needs:
    """The object of a model's C source for a processor, and what it takes. Raises BuildError where there is no compiler, or it refuses."""
    command = compiler_for_objects(cpu)
    folder = toolchain.temporary_folder("roundel-board-")
    try:
        made = folder / "made.o"
        is_gnu = "ziglang" not in command
        tells = (*_AS_WRITTEN, "-fcallgraph-info=su") if is_gnu else (*_AS_WRITTEN_BY_CLANG, "-fstack-size-section")
        toolchain.run([*command, *_OPTIONS, *tells, "-c", source.resolve(), "-o", made], cwd=folder)
        content = made.read_bytes()
        calls = CallGraph.of_gnu(next(folder.glob("*.ci")).read_text()) if is_gnu else CallGraph.of_clang(content, MACHINES[cpu]["vector_bytes"])
        shutil.copyfile(made, out)
        return Needs(*_sizes(content), None if calls is None else deepest_stack(calls))
    finally:
        shutil.rmtree(folder)


def save_for_board(write: Callable[[Path], Path], out: Path, cpu: str, ram: str | int | None = None, *, is_sized: bool = True,
                   sizes: Sequence[str] = ()) -> Needs | None:
    """Save a model as ``out``, C source (``.c``) or an object (``.o``), and say what it takes of the board; ``write`` writes its source and header under a
    name. Where it is not ``is_sized``, how much memory it needs follows from ``sizes`` (names), which only the call tells: whoever compiles the source says.
    None where source is asked for, and that is so or there is no compiler that would tell. Raises BuildError, also where the model takes more than ``ram``
    (bytes, or a text as `read_bytes` reads it), OptionError; nothing is left behind then."""
    limit = None if ram is None else read_bytes(str(ram))
    if not is_sized and (limit is not None or out.suffix == ".o"):
        fixed = f"fix {', '.join(sizes)} (`--fix {sizes[0]}=1`, dynamic={{{sizes[0]!r}: 1}}), or " if sizes else ""
        raise BuildError("how much memory the model needs depends on its inputs", why=f"sizes that only a call tells: {', '.join(sizes)}" if sizes else "",
                         hint=f"{fixed}save C source (.c) without ram, and say how much when it is compiled")
    folder = toolchain.temporary_folder("roundel-board-")
    try:
        source, made = write(folder / f"{out.stem}.c"), folder / "made.o"
        needs = compile_source(source, made, cpu) if limit is not None or out.suffix == ".o" or (is_sized and compiler_of(cpu)) else None
        if needs is not None and limit is not None:
            _check_ram(needs, limit, cpu)
        made = source if out.suffix == ".c" else made
        for path, at in ((made, out), *((p, out.with_name(p.name)) for p in sorted(folder.iterdir()) if p not in (source, folder / "made.o"))):
            with toolchain.atomic_output(at) as temporary:
                shutil.copyfile(path, temporary)
        return needs
    finally:
        shutil.rmtree(folder)


def _check_ram(needs: Needs, limit: int, cpu: str) -> None:
    total = needs.ram + (needs.stack or 0)
    if total > limit:
        raise BuildError(f"the model needs {total:,} bytes of RAM on {cpu}, its stack included, and {limit:,} were allowed", why=str(needs),
                         hint="where the model begins with a chain of convolutions, compute them strip by strip (`--choose '*=strips4'`); or take a "
                         "smaller input or model, one of 8-bit integers, or a board with more memory")


def is_no_board(cpu: str) -> OptionError:
    """The error for ``ram`` on a machine with a system."""
    return OptionError(f"how much memory a model takes is known for machines without a system, not for {cpu}",
                       hint="compile it for one, such as cortex-m4, or leave ram out")


_WRITABLE, _LOADED = 1, 2  # flags of a section


def _sizes(content: bytes) -> tuple[int, int]:
    """Bytes of flash and of RAM that the sections of an ELF object (little endian) take: variables with a value take both."""
    loaded = [s for s in elf.sections_of(content) if s.flags & _LOADED]
    return sum(s.size for s in loaded if s.kind != elf.EMPTY), sum(s.size for s in loaded if s.flags & _WRITABLE)
