# SPDX-License-Identifier: Apache-2.0
"""Which processors and features there are. LLVM is asked in another process: a name that it does not know may end the process later."""

from __future__ import annotations

import difflib
import functools
import re
import sys
from collections.abc import Collection, Iterable

from ..ir.errors import OptionError
from .keys import C_FORMS
from .machines import MACHINES
from .spec import is_bare

_ASK = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu=sys.argv[2], features=sys.argv[3])
"""
_UNKNOWN_PROCESSOR = re.compile(r"'(.+)' is not a recognized processor")
_UNKNOWN_FEATURE = re.compile(r"'[+-](.+)' is not a recognized feature")
_NAME = re.compile(r"^  (\S+) +- ", re.MULTILINE)  # in the list that LLVM gives for help


@functools.cache
def check_processor(triple: str, cpu: str, features: str = "") -> None:
    """Raises OptionError unless LLVM knows all three; features have signs, and commas between them."""
    said = _answer(triple, cpu, features)
    if "No available targets" in said:
        raise OptionError(f"there is no machine {triple!r}", hint="-mtriple is such as x86_64-unknown-linux-gnu; see `roundel targets`")
    for kind, option, wrong in (("processor", "-mcpu", _UNKNOWN_PROCESSOR.findall(said)), ("feature", "-mattr", _UNKNOWN_FEATURE.findall(said))):
        if wrong:
            near = difflib.get_close_matches(wrong[0], _NAME.findall(_answer(triple, "help", "")), 1, 0.7)
            meant = f"is {near[0]} meant? " if near else ""
            raise OptionError(f"there is no {kind} {wrong[0]!r} for {triple}", hint=f"{meant}{option} takes LLVM's names; see `roundel targets`")


def _answer(triple: str, cpu: str, features: str) -> str:
    import subprocess  # which kept models are loaded without

    return subprocess.run([sys.executable, "-c", _ASK, triple, cpu, features], capture_output=True, text=True, check=False).stderr


@functools.cache
def _features_of_table() -> frozenset[str]:
    return frozenset(f for machine in MACHINES.values() for f in machine["features"])


@functools.cache
def features_of_c(triple: str) -> tuple[str, ...]:
    """The features of targets of kind c: the forms of vectors, and the instructions of boards that code in C has functions for."""
    boards = (machine["features"] for machine in MACHINES.values() if is_bare(machine["triple"])) if is_bare(triple) else ()
    return tuple(dict.fromkeys([*C_FORMS, *(f for has in boards for f in has)]))


def check_named(kind: str, triple: str, cpu: str, named: Iterable[str], has: Collection[str]) -> None:
    """Raises OptionError for a feature that somebody named, with its sign or without, and which a target of that kind cannot have. What LLVM's code is
    given besides what the processor ``has`` is checked where the code is generated: what is taken away never comes there."""
    names = {f.lstrip("+-"): f for f in named}
    if kind == "c":
        for name in names:
            if name not in (known := features_of_c(triple)):
                near = difflib.get_close_matches(name, known, 1, 0.7)
                raise OptionError(f"targets of kind c have no feature {name!r}", hint=f"{f'is {near[0]} meant? ' if near else ''}they have "
                                  f"{', '.join(known)}; which other instructions there are is told to the C compiler (-march=...)")
    elif kind == "llvm":
        taken = [name for name, f in names.items() if f[0] == "-" and name not in has and name not in _features_of_table()]
        if taken:
            check_processor(triple, MACHINES.get(cpu, {}).get("cpu", cpu), ",".join(f"-{name}" for name in taken))
