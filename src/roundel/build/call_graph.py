# SPDX-License-Identifier: Apache-2.0
"""The stack that an object's functions take: the deepest chain of calls in a graph of calls, as GCC writes it down or as an object of Clang's shows it.

GCC tells frames and calls of every function (``-fcallgraph-info=su``). Clang writes the sizes of frames into the object (``-fstack-size-section``), where
each function has a section of its own (``-ffunction-sections``); its calls are in that section's relocations and instructions, which are read for RISC-V and
for Arm's processors without a system. RISC-V's vectors that a function keeps in memory for want of registers are not in these sizes, as the processor tells
how long they are: instructions at the function's beginning make room for them, and say how many there are. Neither is what Arm's functions that hold vectors
lose by aligning the stack to them.
"""

from __future__ import annotations

import heapq
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..ir.dataclass import dataclass
from . import elf, riscv_frames, thumb_frames

_POINTERS = 3  # calls through pointers that are open at a time: the model's function, a task, a task of that
_THROUGH_POINTER = "__indirect_call"  # GCC's name
_ASKS = re.compile(r"\brd_checkpoint\b")  # it calls a function of the program, which is one of the others
_PROGRAMS_OWN = "the program's function"
_OTHERS = 64  # bytes of stack that functions of other files are taken to need (most of math.h, what the program is asked by)
_SMALL = tuple((re.compile(names), size) for names, size in (
    (r"mem(cpy|set|move)", 16),
    (r"__aeabi_u?ldivmod|__u?(div|mod)di3", 64),
    (r"__aeabi_\w+", 32),
    (r"__\w+", 48),
))  # of memory, and GCC's own functions: divisions of 64 bits, operations on floats for Arm, and for RISC-V, whose doubles take more
_KNOWN = {**dict.fromkeys(("sinf", "cosf", "tanf"), 640), **dict.fromkeys(("sin", "cos", "tan"), 1024)}  # those that bring large angles down, in newlib


@dataclass(frozen=True)
class CallGraph:
    """Functions of an object: bytes of their ``frames``, which functions they call (``callees``), and which may be called through a pointer or by the
    program (``entries``)."""

    frames: Mapping[str, int]
    callees: Mapping[str, Sequence[str]]
    entries: tuple[str, ...]

    @staticmethod
    def of_gnu(text: str) -> CallGraph:
        """As GCC writes it. It does not say whose address is taken: functions that no other function calls by name may be called through a pointer."""
        frames = {name: int(size) for name, size in re.findall(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes', text)}
        callees: dict[str, list[str]] = {}
        for caller, callee in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text):
            callees.setdefault(caller, []).append(_through_pointer(caller) if callee == _THROUGH_POINTER else callee)
        by_name = {callee for found in callees.values() for callee in found}
        return CallGraph(frames, callees, tuple(name for name in frames if name not in by_name))

    @staticmethod
    def of_clang(content: bytes, vector_bytes: int) -> CallGraph | None:
        """Of an object that Clang compiled for RISC-V, whose vectors have so many bytes, or for Arm's processors without a system. None where the object does
        not tell: it is for another processor, or a function's frame has a size that only the run knows."""
        machine = elf.machine_of(content)
        if machine not in _CALLS:
            return None
        sections = elf.sections_of(content)
        symbols = elf.symbols_of(content, sections)
        names = {s.section: s.name for s in symbols if s.kind == elf.FUNCTION}
        sizes = dict(_stack_sizes(content, sections))
        frames: dict[str, int] = {}
        callees: dict[str, list[str]] = {}
        pointed: set[str] = set()
        calls: dict[int, set[int]] = {}  # of a section: where it has calls by name
        for number, at, kind, symbol in _relocations(content, sections, symbols):
            if kind in _CALLS[machine] and number in names:
                calls.setdefault(number, set()).add(at)
                callees.setdefault(names[number], []).append(names.get(symbol.section, symbol.name))
            elif symbol.kind in (elf.FUNCTION, elf.SECTION) and symbol.section in names:
                pointed.add(names[symbol.section])
        for number, name in names.items():
            if not number:
                continue
            code = content[sections[number].begin :][: sections[number].size]
            more, has_pointer = _shown(machine, code, calls.get(number, ()), vector_bytes)
            if number not in sizes or more is None:
                return None
            frames[name] = sizes[number] + more
            if has_pointer:
                callees.setdefault(name, []).append(_through_pointer(name))
        by_name = {callee for found in callees.values() for callee in found}
        return CallGraph(frames, callees, tuple(name for name in frames if name in pointed or name not in by_name))


def _shown(machine: int, code: bytes, calls: Collection[int], vector_bytes: int) -> tuple[int | None, bool]:
    """What a function's instructions show: the bytes that it takes beside its frame (None: that cannot be read), and whether it calls through a pointer."""
    if machine == _ARM:
        return thumb_frames.alignment_bytes(code), thumb_frames.calls_through_pointer(code)
    vectors = riscv_frames.vectors_on_stack(code)
    return None if vectors is None else vectors * vector_bytes, riscv_frames.calls_through_pointer(code, calls)


def _through_pointer(caller: str) -> str:
    """The name that stands for what a function calls through a pointer."""
    return _PROGRAMS_OWN if _ASKS.search(caller) else _THROUGH_POINTER


_RISCV, _ARM = 243, 40
_CALLS = {_RISCV: (17, 18, 19, 45), _ARM: (10, 30, 51, 102, 103)}
"""By the processor's number, relocations of jumps and calls: R_RISCV_JAL, CALL, CALL_PLT, RVC_JUMP; R_ARM_THM_CALL, JUMP24, JUMP19, JUMP11, JUMP8."""
_LOADED = 2  # the flag of a section that is in memory
_UNWINDS = 0x70000001  # the kind of a section that tells, for every function of Arm, how to leave it


def _stack_sizes(content: bytes, sections: Sequence[elf.Section]) -> Iterator[tuple[int, int]]:
    """The number of each function's section, and the bytes of its frame without vectors: an address, and a number of 7 bits in each byte."""
    for section in sections:
        if elf.name_of(content, sections, section) == ".stack_sizes":
            digits = content[section.begin : section.begin + section.size][8 if elf.is_wide(content) else 4 :]
            yield section.link, sum((digit & 0x7F) << 7 * k for k, digit in enumerate(digits))


def _relocations(content: bytes, sections: Sequence[elf.Section], symbols: Sequence[elf.Symbol]) -> Iterator[tuple[int, int, int, elf.Symbol]]:
    """What the linker fills in, in sections that are in memory: a section's number, the place in it, the kind, and the symbol."""
    layout, shift = ("QQ", 32) if elf.is_wide(content) else ("II", 8)
    addends = {elf.RELOCATIONS: "q" if elf.is_wide(content) else "i", elf.RELOCATIONS_IN_PLACE: ""}
    for table in sections:
        if table.kind in addends and sections[table.info].flags & _LOADED and sections[table.info].kind != _UNWINDS:
            for at, info, *_ in struct.iter_unpack(f"<{layout}{addends[table.kind]}", content[table.begin : table.begin + table.size]):
                yield table.info, at, info & ((1 << shift) - 1), symbols[info >> shift]


def deepest_stack(graph: CallGraph) -> int:
    """Bytes of stack of the deepest chain of calls. A call through a pointer may be one of any entry that is not running already: a model does not call
    itself."""
    return _Deepest(graph.frames, graph.callees).of(graph.entries, _POINTERS)


class _Deepest:
    """Chains of calls: of functions ``frames`` tells how large their frames are, ``callees`` which functions they call."""

    def __init__(self, frames: Mapping[str, int], callees: Mapping[str, Sequence[str]]) -> None:
        self.frames, self.callees = frames, callees
        self.known: dict[str, tuple[int, int | None]] = {_THROUGH_POINTER: (0, 0)}

    def by_name(self, name: str) -> tuple[int, int | None]:
        """Bytes of the deepest chain of calls by name that begins with a function, and of the deepest one up to a call through a pointer (None: there is
        none)."""
        if name not in self.known:
            if name not in self.frames:
                return _KNOWN.get(name) or next((size for names, size in _SMALL if names.fullmatch(name)), _OTHERS), None
            found = [self.by_name(callee) for callee in self.callees.get(name, ())]
            through = [at for _, at in found if at is not None]
            own = self.frames[name]
            self.known[name] = own + max((all_ for all_, _ in found), default=0), own + max(through) if through else None
        return self.known[name]

    def of(self, functions: tuple[str, ...], pointers: int) -> int:
        """Bytes of the deepest chain that begins with one of these functions, each of which may be called through a pointer, so many at a time."""
        most = 0
        plain_first = heapq.nlargest(1 + pointers, functions, key=lambda f: self.by_name(f)[0])  # others give way to these, which are not all running
        through_first = heapq.nlargest(1 + pointers, functions, key=lambda f: self.by_name(f)[1] or 0)
        for name in dict.fromkeys(plain_first + through_first):
            plain, through = self.by_name(name)
            most = max(most, plain)
            if through is not None and pointers:
                most = max(most, through + self.of(tuple(f for f in functions if f != name), pointers - 1))
        return most
