# SPDX-License-Identifier: Apache-2.0
"""The machine code of compiled kernels as text, by the system's disassembler."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..ir.errors import BuildError

TOOLS = ("objdump", "llvm-objdump")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")


def disassembly(code: Path | bytes, symbol: str, triple: str = "") -> str:
    """The instructions of a function and of its tasks (``symbol.0``, ...) in an object or shared library, each with its offset in bytes. ``triple``: of
    the machine that it is for, whose own objdump is taken where there is one. Raises BuildError where there is none, or no such function."""
    tool = next(filter(None, map(shutil.which, ([f"{triple}-objdump"] if triple else []) + [*TOOLS])), None)
    if tool is None:
        raise BuildError("the assembly of compiled code needs objdump, which was not found", hint="install binutils; or give the model that it was "
                         'compiled from: rd.explain(model).text(kernel, "asm")')
    with tempfile.NamedTemporaryFile(suffix=".o") as copy:
        if isinstance(code, bytes):
            copy.write(code)
            copy.flush()
        done = subprocess.run([tool, "-d", "--no-show-raw-insn", copy.name if isinstance(code, bytes) else str(code)], capture_output=True, text=True,
                              errors="replace")
    if done.returncode:
        raise BuildError(f"{Path(tool).name} cannot read the code", why=" ".join(done.stderr.split()) or None)
    found = functions(done.stdout, symbol)
    if not found:
        raise BuildError(f"there is no function {symbol} in the compiled code", why="its symbols were removed",
                         hint="save the model again, and do not strip it")
    return "\n".join(f"{name}:\n{text}" for name, text in found.items())


def functions(text: str, symbol: str) -> dict[str, str]:
    """From objdump's text the functions of that name and those that begin so before a dot; offsets count from each one's beginning."""
    found: dict[str, list[str]] = {}
    current, start = None, None
    for line in text.splitlines():
        if head := _FUNCTION.match(line):
            current, start = head[1] if head[1].split(".")[0] == symbol else None, None
        elif current is not None and (parts := _LINE.match(line)):
            start = int(parts[1], 16) if start is None else start
            found.setdefault(current, []).append(f"{int(parts[1], 16) - start:6x}  {parts[2]}")
    return {name: "\n".join(lines) for name, lines in found.items()}
