# SPDX-License-Identifier: Apache-2.0
"""``tvm.support`` and ``tvm.contrib.utils``: a folder for files that are needed for a while."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace


class TempDirectory:
    """A folder that goes with the object."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        self.path = self._folder.name

    def relpath(self, name: str) -> str:
        """The path of a file in it."""
        return str(Path(self.path, name))

    def listdir(self) -> list[str]:
        """The names of the files in it."""
        return sorted(p.name for p in Path(self.path).iterdir())

    def remove(self) -> None:
        """Delete it now."""
        self._folder.cleanup()


def tempdir() -> TempDirectory:
    """A new folder."""
    return TempDirectory()


utils = SimpleNamespace(tempdir=tempdir, TempDirectory=TempDirectory)
__all__ = ["TempDirectory", "tempdir", "utils"]
