# SPDX-License-Identifier: Apache-2.0
"""What the instructions of a function for Arm's small processors (Thumb) say about its stack: whether it calls through pointers, and what it may lose by
aligning the stack pointer. Constants behind the instructions are read as instructions too, so it may be said of a function where it is not so; never the
reverse."""

from __future__ import annotations

from collections.abc import Iterator

_LINK = 14  # the register that functions return by
_ALIGNED = 8  # bytes, to which the stack pointer is aligned between functions


def calls_through_pointer(code: bytes) -> bool:
    """Whether a function jumps to where a register points, but for returns."""
    return any(half & 0xFF00 == 0x4700 and (half & 0x80 or half >> 3 & 15 != _LINK) for half, _ in _instructions(code))  # blx, bx; not: bx lr


def alignment_bytes(code: bytes) -> int:
    """How many bytes more than its frame has a function may take: it clears low bits of a copy of the stack pointer (``bfc``), which is a multiple of 8
    where functions begin, and moves that back."""
    lost, cleared = 0, (-1, 0)  # the register, and how many bits
    for half, second in _instructions(code):
        register, bits = cleared
        if half == 0x4685 | max(register, 0) << 3 and register >= 0:  # mov sp, register
            lost = max(lost, (1 << bits) - _ALIGNED)
        cleared = (second >> 8 & 15, (second & 31) + 1) if half == 0xF36F and second & 0x70C0 == 0 else (-1, 0)
    return lost


def _instructions(code: bytes) -> Iterator[tuple[int, int]]:
    """The halves of each instruction; the second is 0 where there is none."""
    at = 0
    while at + 2 <= len(code):
        size = 4 if code[at + 1] >> 3 in (0x1D, 0x1E, 0x1F) else 2
        yield int.from_bytes(code[at : at + 2], "little"), int.from_bytes(code[at + 2 : at + size], "little")
        at += size
