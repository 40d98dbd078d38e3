# SPDX-License-Identifier: Apache-2.0
"""AddressSanitizer in compiled models: a call of it before every access to memory in LLVM text, and arrays between bytes that it forbids.

    %v = load <8 x float>, ptr %p           ->   call void @__asan_loadN_noabort(i64 %address, i64 32), then the load
    call @llvm.masked.store(%v, %p, %m)     ->   one call for each lane, of 4 bytes where the mask holds and of none where it does not
    call @llvm.memcpy(%to, %from, i64 %n)   ->   one call for each of both ranges

The sanitizer's own pass is not part of llvmlite. The text is instrumented before LLVM optimises it, so that what is checked is what Roundel wrote.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

CHECKS = {kind: f"__asan_{kind}N_noabort" for kind in ("load", "store")}
FENCE = 1 << 16  # bytes in front of an array and behind it that may not be touched
_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}
_TYPE, _MASK = r"(<[^>]*>|\w+)", r"<(\d+) x i1> (.*?)"
_FORMS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (rf" = load {_TYPE}, ptr ([^,]+)", "load"),
        (rf"^ *store {_TYPE} .*, ptr ([^,]+)", "store"),
        (rf"@llvm\.masked\.load\.\S+\(ptr ([^,]+), i32 \d+, {_MASK}, {_TYPE} \S+\)", "masked load"),
        (rf"@llvm\.masked\.store\.\S+\({_TYPE} .*, ptr ([^,]+), i32 \d+, {_MASK}\)$", "masked store"),
        (rf"@llvm\.masked\.gather\.\S+\(<\d+ x ptr> (.*), i32 \d+, {_MASK}, {_TYPE} \S+\)", "gather"),
        (rf"@llvm\.masked\.scatter\.\S+\({_TYPE} .*, <\d+ x ptr> (.*?), i32 \d+, {_MASK}\)$", "scatter"),
        (r"@llvm\.mem(?:cpy|move)\.\S+\(ptr ([^,]+), ptr ([^,]+), i64 ([^,]+), i1", "copy"),
        (r"@llvm\.memset\.\S+\(ptr ([^,]+), i8 [^,]+, i64 ([^,]+), i1", "fill"),
    )
)
_TOUCHES = re.compile(r"^ .*(?:\b(?:load|store|atomicrmw|cmpxchg)\b|@llvm\.(?:masked\.|mem|vp\.))")


def instrument(text: str) -> str:
    """The text of a module with a check ahead of every access. Raises ValueError at one that this does not know, rather than leave it out."""
    writer = _Writer()
    for line in text.splitlines():
        if line.startswith("  "):
            _check(writer, line)
        writer.lines.append(line)
    declared = (f"declare void @{name}(i64, i64)" for name in CHECKS.values() if f"@{name}(" in "".join(writer.lines))
    return "\n".join((*writer.lines, *declared, ""))


class _Writer:
    """Lines of text, and new names in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = 0

    def op(self, text: str) -> str:
        self.names += 1
        self.lines.append(f"  %checked{self.names} = {text}")
        return f"%checked{self.names}"

    def check(self, kind: str, place: str, nbytes: object) -> None:
        self.lines.append(f"  call void @{CHECKS[kind]}(i64 {self.op(f'ptrtoint ptr {place} to i64')}, i64 {nbytes})")


def _check(writer: _Writer, line: str) -> None:
    for pattern, form in _FORMS:
        if found := pattern.search(line):
            _WRITE[form](writer, *found.groups())
            return
    if _TOUCHES.search(line):
        raise ValueError(f"an access to memory that is not checked: {line.strip()}")


def _nbytes(type_: str) -> int:
    vector = re.fullmatch(r"<(\d+) x (\w+)>", type_)
    return int(vector[1]) * _BYTES[vector[2]] if vector else _BYTES[type_]


def _plain(kind: str, w: _Writer, type_: str, place: str) -> None:
    w.check(kind, place, _nbytes(type_))


def _lanes(kind: str, w: _Writer, lanes: str, mask: str, type_: str, place: Callable[[int, int], str]) -> None:
    each = _nbytes(type_) // int(lanes)
    for k in range(int(lanes)):
        bit = w.op(f"extractelement <{lanes} x i1> {mask}, i64 {k}")
        w.check(kind, place(k, each), w.op(f"select i1 {bit}, i64 {each}, i64 0"))


def _beside(kind: str, w: _Writer, place: str, lanes: str, mask: str, type_: str) -> None:
    _lanes(kind, w, lanes, mask, type_, lambda k, each: w.op(f"getelementptr i8, ptr {place}, i64 {k * each}"))


def _apart(kind: str, w: _Writer, places: str, lanes: str, mask: str, type_: str) -> None:
    _lanes(kind, w, lanes, mask, type_, lambda k, _: w.op(f"extractelement <{lanes} x ptr> {places}, i64 {k}"))


def _copy(w: _Writer, to: str, source: str, nbytes: str) -> None:
    w.check("load", source, nbytes)
    w.check("store", to, nbytes)


_WRITE: dict[str, Callable[..., None]] = {
    "load": functools.partial(_plain, "load"),
    "store": functools.partial(_plain, "store"),
    "masked load": functools.partial(_beside, "load"),
    "masked store": lambda w, type_, place, lanes, mask: _beside("store", w, place, lanes, mask, type_),
    "gather": functools.partial(_apart, "load"),
    "scatter": lambda w, type_, places, lanes, mask: _apart("store", w, places, lanes, mask, type_),
    "copy": _copy,
    "fill": lambda w, to, nbytes: w.check("store", to, nbytes),
}


def addresses() -> dict[str, int]:
    """The checks that instrumented text calls, in a process that runs with the sanitizer's library."""
    found = {name: ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value for name in CHECKS.values()}
    return {name: address for name, address in found.items() if address is not None}


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """A new array between bytes that may not be touched. Its own first and last bytes are where the sanitizer tells single ones apart."""
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(2 * FENCE + nbytes + 64, np.uint8)
    begin = FENCE + -raw.ctypes.data % 64
    for start, end in ((0, begin), (begin + nbytes, raw.size)):
        _poison(raw.ctypes.data + start, end - start)
    return np.ndarray(shape, dtype, raw, begin)  # the sanitizer's free() and malloc() set the rules for these bytes anew


def copy(array: Any) -> np.ndarray:
    """An array's elements between bytes that may not be touched."""
    array = np.asarray(array)
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def bytes_copy(data: Any) -> np.ndarray:
    """In place of ``tensors.aligned_copy``, which leaves a page behind weights: no byte behind them may be read."""
    return copy(np.frombuffer(data, np.uint8))


def capture_apart(built: Any) -> None:
    """In place of ``Built.capture``, by which weights lie side by side: no byte between them may be read."""
    from roundel.build.build import constant_bytes

    for key in list(built.weights):
        built.captured[key] = bytes_copy(constant_bytes(built.weights.pop(key)))


@functools.cache
def _poison_function() -> Any:
    function = ctypes.CDLL(None).__asan_poison_memory_region
    function.restype, function.argtypes = None, (ctypes.c_void_p, ctypes.c_size_t)
    return function


def _poison(address: int, nbytes: int) -> None:
    _poison_function()(address, nbytes)


def patches() -> Iterator[Any]:
    """What has to be replaced in Roundel, so that what is compiled is checked, and weights and results lie between forbidden bytes."""
    from unittest.mock import patch

    from roundel.build.build import Built
    from roundel.codegen.llvm import machine
    from roundel.runtime import library, tensors

    to_object = machine.to_object

    def checked(text: str, spec: Any, pipeline: str = "light") -> bytes:
        return to_object(instrument(text), spec, pipeline)

    imported = {**library.symbols(), **addresses()}
    yield patch.object(machine, "to_object", checked)
    yield patch.object(library, "symbols", lambda: imported)
    yield patch.object(tensors, "aligned_copy", bytes_copy)
    yield patch.object(Built, "capture", capture_apart)
    yield patch.object(tensors, "empty", empty)
