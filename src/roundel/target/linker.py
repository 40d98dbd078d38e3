# SPDX-License-Identifier: Apache-2.0
"""LLVM's linker for code that runs in this process."""

from __future__ import annotations

import platform
from typing import Any


def memory_linker(machine: Any) -> Any:
    """A linker into memory, LLVM's ORC, for a target machine of llvmlite's.

    It is JITLink, which lays the parts of an object side by side and returns errors. LLVM's older one, RuntimeDyld, which llvmlite takes
    when it is not told, asks the system for memory for each part of an object. In a process with gigabytes of libraries some parts end up
    farther apart than the 2 GB that code reaches, which fails an assertion of LLVM's and ends the process, as does memory that runs out.
    """
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(machine, use_jit_link=platform.system() != "Windows")  # for whose objects llvmlite has the older one only
