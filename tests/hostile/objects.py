# SPDX-License-Identifier: Apache-2.0
"""The objects of compiled models under AddressSanitizer: every load and store of generated code, in models of every kind and random sizes.

Models are compiled and called in a process of its own that starts with the C compiler's sanitizer library. Every access is checked, lane by
lane under a mask (``checked_accesses``), against what the sanitizer knows: memory that is allocated, and 64 KiB in front of every
argument, result and weight and behind it that may not be touched. Not seen: an access that stays within the stack, or within the memory of one
call's intermediate results, which is one block (``kernels`` sees those).
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from roundel.ir.errors import BuildError
from roundel.runtime import toolchain

from . import checked_accesses, object_models
from .index_models import model, node

_OPTIONS = "halt_on_error=0:suppress_equal_pcs=0:symbolize=0:detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1"
_MOST = 1000  # reports, after which the process is ended
_BEGIN, _FAILED = "attempt: ", "failed: "
_READS = """
from roundel.script import tir as T

@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i in T.serial(2):
        B.vstore([T.Ramp(i * 8, 1, 8)], A.vload([T.Ramp(i * 8 + BEYOND, 1, 8)], predicate=T.Ramp(i * 8 + BEYOND, 1, 8) < T.Broadcast(LIMIT, 8)))
"""


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` calls, of one kind of models after another. They are left out where the C compiler has no sanitizer."""
    try:
        yield from in_process("calls", count, seed)
    except BuildError as error:
        print(f"objects: left out: {error}")


def sanitizer() -> Path:
    """The sanitizer's library. Raises BuildError where the C compiler has none."""
    command = [*toolchain.compiler(), "-print-file-name=libasan.so"]
    found = Path(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())
    if not found.is_absolute() or not found.exists():
        raise BuildError(f"{command[0]} has no library of AddressSanitizer", hint="install that of gcc (libasan)")
    return found.resolve()


def caught() -> dict[str, list[str]]:
    """What is found in attempts that are wrong on purpose, one of which is not: the proof that findings are found."""
    found: dict[str, list[str]] = {name: [] for name in faults()}
    for finding in in_process("faults", len(found), 0):
        name, _, said = finding.partition(": ")
        found[name].append(said)
    return found


def faults() -> dict[str, Callable[[], Any]]:
    """Calls that read or write where they may not; the last one masks the lanes that would."""
    from onnx import numpy_helper

    table = numpy_helper.from_array(np.arange(70, dtype=np.float32).reshape(10, 7), "w")
    rows = np.zeros((10, 7), np.float32)
    gather, weights = model([node("Gather", "x i")], "x:f:10,7 i:i:k"), model([node("Gather", "w i")], "i:i:k", [table])
    scatter = model([node("ScatterND", "x i u")], "x:f:n,m i:i:k,1 u:f:k,m")
    return {
        "row 10 of an argument": lambda: _call(gather(), [rows, np.asarray([10])]),
        "row -11 of an argument": lambda: _call(gather(), [rows, np.asarray([-11])]),
        "row 10 of weights": lambda: _call(weights(), [np.asarray([10])]),
        "row 11 of weights": lambda: _call(weights(), [np.asarray([11])]),
        "row 10 of a result": lambda: _call(scatter(), [rows, np.asarray([[10]]), rows[:1]]),
        "an element behind, of a masked vector": lambda: _masked(beyond=4, limit=17),
        "masked lanes behind": lambda: _masked(beyond=4, limit=16),
    }


def _masked(beyond: int, limit: int) -> None:
    """A vector whose lanes from ``limit`` on are masked, of an array of 16 elements."""
    import roundel as rd
    from roundel.script import parse

    program = rd.build(parse(_READS.replace("BEYOND", str(beyond)).replace("LIMIT", str(limit))))
    program["main"](*(checked_accesses.copy(np.zeros(16, np.float32)) for _ in range(2)))


def _call(compiled: Any, arguments: Sequence[np.ndarray]) -> None:
    compiled(*map(checked_accesses.copy, arguments))


def in_process(what: str, count: int, seed: int) -> Iterator[str]:
    """What a process reports that makes the calls; that it ends before is a finding too."""
    environment = {**os.environ, "LD_PRELOAD": str(sanitizer()), "ASAN_OPTIONS": _OPTIONS, "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-m", __name__, what, str(count), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment) as process:
        assert process.stdout is not None
        attempt, told, reports, last = "the process", "", 0, ""
        for line in process.stdout:
            if line.startswith(_BEGIN):
                attempt = line.removeprefix(_BEGIN).strip()
            elif line.startswith(_FAILED):
                yield f"{attempt}: {line.strip()}"
            elif "ERROR: AddressSanitizer" in line:
                report = [line, *itertools.islice(process.stdout, 20)]
                reports += 1
                if attempt != told:  # one of the many that one mistake makes
                    yield f"{attempt}: {_shown(report)}"
                told = attempt
            last = line.strip() or last
            if reports == _MOST:
                process.kill()
    if process.returncode:
        yield f"{attempt}: the process ended with status {process.returncode} after {reports} reports: {last}"


def _shown(report: Sequence[str]) -> str:
    """What a report of the sanitizer's says, without addresses: the kind, how many bytes were read or written, and where in which block."""
    kind = report[0].split("AddressSanitizer: ")[-1].split(" on ")[0].strip()
    access = next((line.split(" at ")[0] for line in report if line.startswith(("READ", "WRITE"))), "")
    place = next((line.split(" is located ")[1].split(" [")[0] for line in report if " is located " in line), "")
    return ", ".join(filter(None, (kind, access, place)))


def _calls(count: int, seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The attempts: one call of each kind after another, in an order that the seed tells, each model compiled once."""
    listed = object_models.kinds()
    kinds = [listed[k] for k in np.random.default_rng(seed).permutation(len(listed))]
    built = [functools.cache(kind.build) for kind in kinds]
    for number in range(count):
        kind, rng = number % len(kinds), np.random.default_rng((seed, number))
        yield f"{kinds[kind].name}, call {number}", lambda kind=kind, rng=rng: _call(built[kind](), kinds[kind].arguments(rng))


def main(what: str, count: int, seed: int) -> None:
    """Make the attempts, each announced on standard error, where the sanitizer reports."""
    from unittest.mock import patch

    import roundel
    from roundel.ir import options
    from roundel.ir.errors import RoundelError

    from . import kernels

    with ExitStack() as stack:
        for replaced in checked_accesses.patches():
            stack.enter_context(replaced)
        if what == "kernels":
            stack.enter_context(patch.object(roundel, "compile", kernels.compiled_apart))
        stack.enter_context(options.override(cache=False, workers=1, rates="table", **({"bounds_checks": False} if what == "faults" else {})))
        for name, attempt in faults().items() if what == "faults" else _calls(count, seed):
            print(_BEGIN + name, file=sys.stderr, flush=True)
            try:
                attempt()
            except (RoundelError, ValueError) as error:
                print(_FAILED + " ".join(str(error).split()), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
