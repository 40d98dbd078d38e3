# SPDX-License-Identifier: Apache-2.0
"""``tvm.contrib``: folders for a while, LLVM text of C. Files of libraries are linked by ``Built.save``, kernels of libraries called by name."""

from typing import Any

from ..rooms import missing
from ..support import utils
from . import clang


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.contrib.{name}", name)


__all__ = ["clang", "utils"]
