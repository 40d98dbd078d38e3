# SPDX-License-Identifier: Apache-2.0
"""What the instructions of a RISC-V function say about its stack: how many vectors it keeps there, and whether it calls through pointers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

_STACK_POINTER = 2


def calls_through_pointer(code: bytes, by_name: Collection[int]) -> bool:
    """Whether a function jumps to where a register points, but for returns, and for calls by name, which begin at these places (with an instruction that
    the linker completes)."""
    for at, word, size in _instructions(code):
        if size == 4 and word & 0x7F == 0x67:
            if at - 4 not in by_name and word & 0xFFFFF != 0x08067:  # jalr; not: ret
                return True
        elif size == 2 and word & 0xE07F == 0x8002 and word not in (0x8082, 0x9002):  # c.jr, c.jalr; not: ret, ebreak
            return True
    return False


def vectors_on_stack(code: bytes) -> int | None:
    """How many vectors a function has room for in its frame: it asks for the length of one (``csrr vlenb``), multiplies it and moves the stack pointer by
    that. None where it then moves the pointer by something else, or aligns it."""
    lengths: dict[int, int] = {}  # registers that hold a multiple of a vector's length
    numbers: dict[int, int] = {}  # and those that hold a number
    vectors, has_asked = 0, False
    for _, word, size in _instructions(code):
        name, to, first, second = _decoded(word) if size == 4 else _decoded_short(word)
        if name == "sub" and to == first == _STACK_POINTER:
            if second in lengths:
                vectors += lengths[second]
            elif has_asked:
                return None
            continue
        if name == "andi" and to == _STACK_POINTER:
            return None
        result = number = None
        if name == "vlenb":
            result, has_asked = 1, True
        elif name == "slli" and first in lengths:
            result = lengths[first] << second
        elif name in ("add", "sub") and first in lengths and second in lengths:
            result = lengths[first] + (lengths[second] if name == "add" else -lengths[second])
        elif name == "mul" and (first in lengths or second in lengths):
            length, factor = (first, second) if first in lengths else (second, first)
            result = lengths[length] * numbers[factor] if factor in numbers else None
        elif name == "addi" and (not first or first in numbers):
            number = numbers.get(first, 0) + second
        elif name == "lui":
            number = second
        for register in (to,) if name else _may_write(word, size):
            lengths.pop(register, None)
            numbers.pop(register, None)
        if result is not None:
            lengths[to] = result
        if number is not None:
            numbers[to] = number
    return vectors


def _instructions(code: bytes) -> Iterator[tuple[int, int, int]]:
    """The place, the bits and the bytes of each instruction."""
    at = 0
    while at < len(code):
        size = 4 if code[at] & 3 == 3 else 2
        yield at, int.from_bytes(code[at : at + size], "little"), size
        at += size


_NOTHING = ("", 0, 0, 0)


def _signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


def _decoded(word: int) -> tuple[str, int, int, int]:
    """An instruction of 32 bits that frames are made with: its name, the register that it writes, and two registers, or a register and a number."""
    to, first, second, kind = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31, word >> 12 & 7
    match word & 0x7F, kind:
        case (0x73, 2) if word >> 15 == 0xC22 << 5:
            return "vlenb", to, 0, 0
        case 0x13, 1:
            return "slli", to, first, word >> 20 & 63
        case 0x13, 0 | 7:
            return "andi" if kind else "addi", to, first, _signed(word >> 20, 12)
        case 0x33, 0:
            name = {0: "add", 1: "mul", 32: "sub"}.get(word >> 25)
            return (name, to, first, second) if name else _NOTHING
        case 0x37, _:
            return "lui", to, 0, _signed(word >> 12, 20) << 12
    return _NOTHING


def _decoded_short(word: int) -> tuple[str, int, int, int]:
    """As `_decoded`, of 16 bits."""
    to, second, small = word >> 7 & 31, word >> 2 & 31, _signed((word >> 7 & 32) | (word >> 2 & 31), 6)
    match word & 3, word >> 13:
        case 2, 0:
            return "slli", to, to, small & 63
        case (2, 4) if second:
            return "add", to, to if word >> 12 & 1 else 0, second
        case (1, 4) if word & 0xFC60 == 0x8C00:
            return "sub", 8 + (to & 7), 8 + (to & 7), 8 + (second & 7)
        case (1, 2) | (1, 0):
            return "addi", to, 0 if word >> 13 else to, small
        case (1, 3) if to != _STACK_POINTER:
            return "lui", to, 0, small << 12
    return _NOTHING


def _may_write(word: int, size: int) -> tuple[int, ...]:
    """Registers that an instruction which is not decoded may write, and some that it does not."""
    return (word >> 7 & 31,) if size == 4 else (word >> 7 & 31, 8 + (word >> 7 & 7), 8 + (word >> 2 & 7))
