# SPDX-License-Identifier: Apache-2.0
"""The ES module that loads and runs WebAssembly models in browsers and node, with its types."""

from __future__ import annotations

import shutil
from pathlib import Path

FILES = ("roundel.mjs", "roundel-thread.mjs", "roundel.d.mts")


def copy_into(folder: Path) -> list[Path]:
    """Copy the module and its types into a folder; returns their paths."""
    return [Path(shutil.copy(Path(__file__).parent / name, folder / name)) for name in FILES]
