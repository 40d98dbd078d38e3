# SPDX-License-Identifier: Apache-2.0
"""Generated objects and the C runtime as one WebAssembly module, with pointers of 32 or 64 bits: for hosts that give it memory, or for WASI."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..ir.errors import BuildError
from ..runtime import library, toolchain

_STACK = 1 << 20
_COMPILE = ("-std=c11", "-O2", "-g0", "-mbulk-memory", "-fno-sanitize=all", "-fvisibility=hidden", "-w")
_THREADS = ("-matomics",)
_WASI = "-DROUNDEL_WASI"  # what the runtime is told
_MOST = {32: (1 << 32) - (1 << 16), 64: 1 << 34}  # bytes of shared memory, whose end has to be told; zig's linker reads numbers of 32 bits
_LINK = ("--no-entry", "--gc-sections", "--strip-all", "--export=roundel_weights")
_TARGETS = {32: "wasm32-wasi", 64: "wasm64-freestanding"}  # zig's, for C
_HEADERS = ("include/riscv64-linux-musl", "include/generic-musl")  # of a C library for wasm64, which zig has not: those for another machine of 64 bits
_INTERNAL = ("musl/src/internal", "musl/src/include", "musl/arch/generic")  # what its own functions include
_ELSEWHERE = ("fma", "fmaf")  # are in zig's runtime library
_IN_ZIG = """\
const math = @import("std").math;
fn Of(comptime name: []const u8, comptime T: type) type {
    return struct { fn call(x: T) callconv(.c) T { return @field(math, name)(x); } };
}
comptime {
    for (.{ "acos", "acosh", "asin", "atan", "cbrt", "cosh", "log1p", "tanh" }) |name| {
        @export(&Of(name, f64).call, .{ .name = name, .linkage = .weak });
        @export(&Of(name, f32).call, .{ .name = name ++ "f", .linkage = .weak });
    }
}
"""


def linked_module(objects: Sequence[bytes], work: Path, bits: int, *, has_threads: bool = False, is_program: bool = False) -> bytes:
    """A module of ``objects``, the runtime and ``stub.c`` of the folder ``work``, where files are left. Raises BuildError."""
    compiler = _compiler(bits)
    how = (*(_THREADS if has_threads else ()), *((_WASI,) if is_program else ()), *_COMPILE)
    memory = () if is_program else ("--import-memory", *(("--shared-memory", f"--max-memory={_MOST[bits]}") if has_threads else ()))
    runtime = library.compiled(compiler, ("-fno-pic", *how), shared=False) / "libroundel_rt.a"
    toolchain.run([*compiler, *how, f"-I{library.source_dir()}", "-c", work / "stub.c", "-o", work / "stub.o"])
    inputs: list[str | Path] = [work / "stub.o", *(work / f"part{i}.o" for i in range(len(objects)))]
    for path, content in zip(inputs[1:], objects, strict=True):
        Path(path).write_bytes(content)
    inputs += ["--whole-archive", runtime]
    linker, made = (*toolchain.module_linker(), f"-mwasm{bits}"), work / "linked.wasm"
    try:
        toolchain.run([*linker, *_LINK, "--stack-first", "-z", f"stack-size={_STACK}", *memory, *inputs, "-o", made])
    except BuildError as error:
        if "undefined symbol" not in str(error):
            raise
        toolchain.run([*linker, "-r", *inputs, "-o", work / "whole.o"])
        _link_with_libc(work, bits, has_threads, memory, made)
    return made.read_bytes()


def _compiler(bits: int) -> tuple[str, ...]:
    """The C compiler, with the headers of a C library."""
    return toolchain.compiler(_TARGETS[bits]) + (("-fhosted", *(f"-isystem{_zig('libc', name)}" for name in _HEADERS)) if bits == 64 else ())


def _zig(*names: str) -> Path:
    """A file or folder of zig's library."""
    found = find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise BuildError("no C library for WebAssembly was found", hint="`pip install ziglang`")
    return Path(found.submodule_search_locations[0], "lib", *names)


def _link_with_libc(work: Path, bits: int, has_threads: bool, memory: Sequence[str], made: Path) -> None:
    """Link ``whole.o``, which needs functions of math.h, such as a remainder or an exponential of float64: those of the C library that zig brings, which zig
    compiles when it is wanted first, in a minute, and keeps. Raises BuildError."""
    features = (*(_THREADS if has_threads else ()), "-mbulk-memory")
    # zig puts the stack first without being told
    options = (*features, *(f"-Wl,{option}" for option in (*_LINK, f"-z,stack-size={_STACK}", *memory)))
    if bits == 32:
        toolchain.run([*_compiler(bits), "-mexec-model=reactor", "-O2", *options, work / "whole.o", "-o", made])
        return
    include = [f"-I{_zig('libc', name)}" for name in _INTERNAL]
    toolchain.run([*_compiler(bits), "-O2", "-w", *include, *options, work / "whole.o", *_functions(work), "-o", made])


def _functions(work: Path) -> list[Path]:
    """math.h with pointers of 64 bits, which zig has partly in C and partly in its own language: an object, and sources that it compiles once."""
    made = work / "math.o"
    made.with_suffix(".zig").write_text(_IN_ZIG)
    toolchain.run([*toolchain.zig("build-obj"), "-target", _TARGETS[64], "-O", "ReleaseSmall", made.with_suffix(".zig"), f"-femit-bin={made}"])
    return [made, *(path for path in sorted(_zig("libc", "musl", "src", "math").glob("*.c")) if not path.stem.endswith("l") and path.stem not in _ELSEWHERE)]
