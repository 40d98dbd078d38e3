# SPDX-License-Identifier: Apache-2.0
"""Which Roundel this is: what is kept on disk says by which code it was made."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def sources() -> str:
    """The identity of Roundel's own code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for p in sorted(root.rglob("*.py")):
        facts = p.stat()
        digest.update(f"{p.relative_to(root)}|{facts.st_size}|{facts.st_mtime_ns}".encode())
    return digest.hexdigest()
