# SPDX-License-Identifier: Apache-2.0
"""``tvm.rpc``: sessions in this process. There is no server: files of ``export_library`` are copied to the other machine and loaded there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from .rooms import missing
from .running import Module, load_module
from .runtime import Device, cpu
from .support import TempDirectory


class LocalSession:
    """A session whose other side is this process: what is uploaded lies in a folder of its own."""

    def __init__(self) -> None:
        self._files = TempDirectory()

    def upload(self, data: str | Path, target: str | None = None) -> None:
        """Copy a file to the session's folder."""
        shutil.copy(data, self._files.relpath(target or Path(data).name))

    def load_module(self, path: str) -> Module:
        """The functions of a file that was uploaded."""
        return load_module(self._files.relpath(path))

    def cpu(self, device_id: int = 0) -> Device:
        """The processor."""
        return cpu(device_id)


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.rpc.{name}", name)


__all__ = ["LocalSession"]
