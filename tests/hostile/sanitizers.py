# SPDX-License-Identifier: Apache-2.0
"""The C runtime and C-callable models under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, with random arguments."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from roundel.build.header import write_header
from roundel.build.link import _Placed, _stub
from roundel.ir.errors import BuildError
from roundel.runtime import FunctionInfo, library, toolchain
from runtime.native_module import SOURCE, WEIGHT, graph_info

SANITIZERS = ("address,undefined", "thread")
CSRC = Path(__file__).parents[1] / "csrc"
STRICT = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1", "TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def attack(count: int, seed: int) -> Iterator[str]:
    """The thread pool's stress program, then ``count`` calls with random arguments by 1, 2 and 8 threads, under each sanitizer. One that the
    compiler lacks is left out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for sanitizer in SANITIZERS:
            try:
                stress = compile_program(folder, "stress", sanitizer, [CSRC / "stress.c"])
            except BuildError as error:
                print(f"sanitizers: {sanitizer} is left out: {str(error).splitlines()[-1]}")
                continue
            for threads in ("1", "4", "16"):
                yield from problems(sanitizer, [stress, threads, "nofork"])
            arguments = compile_program(folder, "arguments", sanitizer, [CSRC / "arguments.c", SOURCE, *wrapper(folder)])
            for threads in ("1", "2", "8"):
                yield from problems(sanitizer, [arguments, str(count), str(seed), threads])


def wrapper(folder: Path) -> list[Path]:
    """The C functions that a saved model of the hand-written module has, its weights, and a program part that includes its header."""
    functions: list[FunctionInfo] = graph_info()
    (folder / "stub.c").write_text(_stub("model", [f.name for f in functions], _Placed(WEIGHT.nbytes, embedded=WEIGHT.tobytes()), ()))
    values = ", ".join(map(str, np.frombuffer(WEIGHT.tobytes(), np.uint8)))
    (folder / "weights.c").write_text(f"_Alignas(64) const unsigned char roundel_weights[] = {{{values}}};\n")
    write_header(folder / "model.h", functions)
    return [folder / "stub.c", folder / "weights.c"]


def compile_program(folder: Path, name: str, sanitizer: str, sources: Sequence[Path]) -> Path:
    """A program of these sources and the runtime's. Raises BuildError where the compiler does not have the sanitizer."""
    program = folder / f"{name}-{sanitizer.replace(',', '-')}"
    flags = ("-std=gnu11", "-O1", "-g", "-w", "-fno-omit-frame-pointer", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
    runtime = library.source_dir().glob("*.c")
    toolchain.run([*toolchain.compiler(), *flags, f"-I{library.source_dir()}", *sources, *runtime, "-o", program, "-lm", "-lpthread", "-ldl"])
    return program


def problems(sanitizer: str, command: Sequence[str | Path]) -> Iterator[str]:
    """What a run of a program reports."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", check=False, env={**os.environ, **STRICT})
    if done.returncode or not done.stdout.endswith("ok\n"):
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip() and "failed to allocate" not in line]
        told = next((k for k, line in enumerate(lines) if "ERROR" in line or "WARNING" in line or "runtime error" in line), 0)
        yield f"{sanitizer}: {' '.join(Path(str(c)).name for c in command)}: status {done.returncode}: {' | '.join(lines[told : told + 12])}"
