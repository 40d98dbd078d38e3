# SPDX-License-Identifier: Apache-2.0
"""Limits that a user sets: how many bytes a file, or the memory of a board, may have."""

from __future__ import annotations

import re
import reprlib

from ..ir.errors import OptionError


def read_bytes(text: str) -> int:
    """``256K``, ``1M`` or ``65536`` as a number of bytes. Raises OptionError."""
    found = re.fullmatch(r"([0-9]{1,15})\s*([KMG]?)(i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise OptionError(f"{reprlib.repr(text)} is no number of bytes", hint="write 65536, 256K or 1M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]
