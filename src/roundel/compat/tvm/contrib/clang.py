# SPDX-License-Identifier: Apache-2.0
"""``tvm.contrib.clang``: LLVM text of C and C++."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....runtime.toolchain import llvm_text


def create_llvm(inputs: str | Sequence[str], output: str | Path | None = None, options: Sequence[str] | None = None, cc: Any = None) -> str:
    """The LLVM text of a source, or of a file of that name. A loop that is annotated with it (``pragma_import_llvm``) has it compiled with its program."""
    (source,) = [inputs] if isinstance(inputs, str) else inputs
    is_file = "\n" not in source and Path(source).exists()
    text = llvm_text(Path(source).read_text() if is_file else source, "c" if is_file and source.endswith(".c") else "c++", options or ())
    if output is not None:
        Path(output).write_text(text)
    return text


__all__ = ["create_llvm"]
