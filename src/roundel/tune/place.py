# SPDX-License-Identifier: Apache-2.0
"""Where the user's own database is. Every compile asks, so this does not import what reads one."""

from __future__ import annotations

from pathlib import Path

from ..ir import cache_folder

NAME = "tuned.jsonl"  # in the cache's folder


def default_path(make: bool = False) -> Path | None:
    """The user's own database in the folder of the cache, which is made if need be with ``make``; None where there is no such folder, or others may
    write to it."""
    place = cache_folder.folder(make=make)
    return None if place is None else place / NAME
