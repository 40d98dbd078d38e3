# SPDX-License-Identifier: Apache-2.0
"""Names in the C header of a model: it must compile as C and C++ without a warning and declare what is wanted, nothing else."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from roundel.build.header import entry_name, write_header
from roundel.runtime import FunctionInfo, TensorInfo, toolchain

from .names import hostile_name

NAMES_PER_HEADER = 500
_FLAGS = ("-Wall", "-Wextra", "-Wcomment", "-Wno-unused-function", "-Werror", "-fsyntax-only")
_DECLARATION = re.compile(r"^(?:static inline |extern )?[\w *]*?\b(\w+)\(", re.MULTILINE)


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` names in headers of 500 names each, a finding for each header that is not right."""
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, count, NAMES_PER_HEADER):
            functions = random_functions(source, min(NAMES_PER_HEADER, count - first))
            try:
                write_header(Path(folder) / "model.h", functions)
            except (UnicodeError, ValueError) as error:
                yield f"names {first} to {first + NAMES_PER_HEADER}: the header was not written: {type(error).__name__}: {error}"
                continue
            for problem in problems(Path(folder) / "model.h", functions):
                yield f"names {first} to {first + NAMES_PER_HEADER}: {problem}"


def random_functions(source: random.Random, count: int) -> list[FunctionInfo]:
    """Functions with ``count`` hostile names among them: their own, of their inputs, outputs and sizes."""
    functions, taken = [FunctionInfo("main", "graph", (), (), ())], {"main"}
    while count > 0:
        inputs = tuple(_tensor(source) for _ in range(min(source.randrange(1, 20), count)))
        outputs = tuple(_tensor(source) for _ in range(source.randrange(1, 4)))
        name = next(n for n in iter(lambda: hostile_name(source), None) if n not in taken)
        taken.add(name)
        functions.append(FunctionInfo(name, "graph", inputs, outputs, tuple(range(len(inputs)))))
        count -= len(inputs) + len(outputs) + 1
    return functions


def _tensor(source: random.Random) -> TensorInfo:
    return TensorInfo(hostile_name(source), source.choice(("float32", "int8", "bool", "bfloat16")), (4, hostile_name(source))[: source.randrange(3)])


def wanted(functions: Sequence[FunctionInfo], name: str = "model") -> list[str]:
    """The C functions that the header of these functions declares."""
    out = []
    for info in functions:
        entry = entry_name(name, info.name)
        out += [entry, *(f"{entry}_input{i}" for i in range(len(info.inputs))), *(f"{entry}_output{i}" for i in range(len(info.outputs)))]
    return [*out, *(f"{name}_{what}" for what in ("last_error", "release", "set_num_threads", "num_threads", "set_interrupt", "close", "version", "abi"))]


def problems(header: Path, functions: Sequence[FunctionInfo]) -> Iterator[str]:
    """What is wrong with a header: compilers that complain of it, other declarations than those wanted."""
    for language in ("c", "c++"):
        standard = "-std=c11" if language == "c" else "-std=c++17"  # with a standard's name, trigraphs are read
        command = [*toolchain.compiler(), "-x", language, standard, *_FLAGS, str(header)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            yield f"as {language} it does not compile: {done.stderr.strip().splitlines()[0]}"
    done = subprocess.run([*toolchain.compiler(), "-E", "-P", "-x", "c", "-std=c11", str(header)], capture_output=True, check=False)
    text = done.stdout.decode(errors="replace")
    own = text[text.find("} RdStatus;") :]
    declared = sorted(_DECLARATION.findall(own))
    if declared != sorted(wanted(functions)):
        extra = [n for n in declared if n not in wanted(functions)]
        yield f"it declares {len(declared)} functions instead of {len(wanted(functions))}, among them {extra[:3]}"
    if "injected" in re.sub(r"\bmodel_\w*", "", own, flags=re.IGNORECASE):
        yield "a name has become code"
