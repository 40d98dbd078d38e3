# SPDX-License-Identifier: Apache-2.0
"""``tvm.contrib``: nothing of it is here; files of libraries are linked by ``Built.save``, kernels of libraries called by name."""

from typing import Any

from .rooms import missing


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.contrib.{name}", name)
