# SPDX-License-Identifier: Apache-2.0
"""What the instructions of a function for Arm's small processors (Thumb) say about its stack: whether it calls through pointers."""

from __future__ import annotations

_LINK = 14  # the register that functions return by


def calls_through_pointer(code: bytes) -> bool:
    """Whether a function jumps to where a register points, but for returns. Constants behind its instructions are read as instructions too: it may be said
    to call through a pointer where it does not, not the reverse."""
    at = 0
    while at + 2 <= len(code):
        half = int.from_bytes(code[at : at + 2], "little")
        if half & 0xFF00 == 0x4700 and (half & 0x80 or half >> 3 & 15 != _LINK):  # blx, bx; not: bx lr
            return True
        at += 4 if half >> 11 in (0x1D, 0x1E, 0x1F) else 2
    return False
