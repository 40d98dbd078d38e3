# SPDX-License-Identifier: Apache-2.0
"""One model compiled for several machines of a family, as one file: equal kernels and equal weights are in it once."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Sequence

from ..runtime import Executable, library, native
from ..runtime.executable import not_opened
from .build import ALONE, Beside, Built
from .jit import link_in_memory

_KERNEL = re.compile(rb"rk_[0-9a-f]{20}")


class BuiltLevels(Built):
    """`Built` for several machines. ``parts``: what was compiled for each, by its name, the best first; each was compiled `beside` those behind it."""

    def __init__(self, parts: Sequence[tuple[str, Built]]) -> None:
        smallest, best = parts[-1][1], parts[0][1]
        weights = {key: constant for _, part in reversed(parts) for key, constant in part.weights.items()}
        super().__init__(merged([part for _, part in reversed(parts)]), smallest.functions, weights, best.offsets, best.nbytes, smallest.target,
                         smallest.metadata, smallest.spec)
        self.parts = [part for _, part in parts]
        self.levels = [(name, part.library) for name, part in parts]

    def load(self, *, threads: int | None = None, profile: bool = False) -> Executable:
        """Link in this process and open the level that this machine can run. Raises MachineError where there is none."""
        addresses, keep = link_in_memory(self.objects, library.symbols(), *(symbol for _, symbol in self.levels))
        chosen = self.parts[_chosen([name for name, _ in self.levels], addresses)]
        self.capture()
        chosen.captured = self.captured
        made = chosen.opened(addresses[self.parts.index(chosen)], keep, threads, profile)
        made.built, made.code, made.save = self, self.object_of, self.save
        return made


def beside(parts: Sequence[Built]) -> Beside:
    """What the next one is compiled beside, after these."""
    label = f"_{len(parts)}" if parts else ""
    return Beside(label, parts[-1].offsets, parts[-1].nbytes) if parts else ALONE


def merged(parts: Sequence[Built]) -> list[bytes]:
    """The objects of all parts. A kernel is named after the text that it was generated from: where two parts made different code of one text, the
    second is named anew."""
    kept: dict[str, bytes] = {}
    others: list[bytes] = []
    for part in parts:
        own = dict(zip(part.symbols, part.objects))
        differ = _differing(own, kept)
        names = {symbol.encode(): b"rk_" + hashlib.sha256(own[symbol]).hexdigest()[:20].encode() for symbol in differ}

        def renamed(content: bytes, names: dict[bytes, bytes] = names) -> bytes:
            return _KERNEL.sub(lambda found: names.get(found[0], found[0]), content) if names else content

        for symbol, content in own.items():
            kept[names.get(symbol.encode(), symbol.encode()).decode()] = renamed(content)
        others += [renamed(content) for content in part.objects[len(own) :]]
        part.objects = []
    return [*kept.values(), *others]


def _differing(own: dict[str, bytes], kept: dict[str, bytes]) -> set[str]:
    """The kernels whose code is not what is kept under their names, and those that call them."""
    differ = {symbol for symbol, content in own.items() if kept.get(symbol, content) != content}
    called = {symbol: {name.decode() for name in _KERNEL.findall(content)} for symbol, content in own.items()} if differ else {}
    while more := {symbol for symbol, names in called.items() if symbol not in differ and names & differ}:
        differ |= more
    return differ


def _chosen(names: Sequence[str], addresses: Sequence[int]) -> int:
    """The place of the level that this machine is to run."""
    runtime = library.runtime()
    levels = (native.RdLevel * len(names))(*[(name.encode(), ctypes.cast(at, ctypes.POINTER(native.RdLibrary))) for name, at in zip(names, addresses)])
    place = ctypes.c_int32()
    if status := runtime.rd_package_level(levels, len(names), ctypes.byref(place)):
        raise not_opened(status, "the model", runtime)
    return place.value
