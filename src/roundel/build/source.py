# SPDX-License-Identifier: Apache-2.0
"""A model as one file of C99: generated functions, a runtime without threads or allocation, the weights as arrays or in a file beside it."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import __version__
from ..arith import Analyzer
from ..codegen.c.backend import PRELUDE, is_source, joined
from ..ir import tir
from ..ir.errors import BuildError
from ..ir.escape import c_comment, c_string
from ..runtime import library, toolchain
from ..runtime.native import ABI
from ..target.spec import MachineSpec
from .header import c_prefix, entry_name, weights_declaration, write_header
from .interface import COMPLEX, Interface, arena_bytes, values_beside_tensors
from .weights import Pieces

_HEAP = re.compile(r"rd_heap_alloc\(ctx, ([^)]*)\)")
_RESERVED = 128  # bytes ahead of what is asked for, and to the next multiple of 64
_PER_LINE = 6  # words of the weights

_UNSUPPORTED = {
    "rd_alloc_output": ("the shape of an output is known only when the model has run", "a C file has no memory for it"),
    "rd_call_packed": ("the model calls functions that are registered with the runtime", "a C file has no such runtime"),
}


BARE = """#define RD_ALIGNMENT 8
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns") /* what is loaded earlier than it is needed has no register on small processors */
#endif
"""
"""Ahead of source for machines without a system."""


def write_source(sources: Sequence[bytes], functions: Sequence[Interface], weights: Pieces | None, out: Path, *, spec: MachineSpec, name: str | None = None,
                 side_file: bool = False, header: bool = False) -> Path:
    """Write ``out`` from the units of a module, and with ``header`` its C header; with ``side_file`` the weights go to ``<stem>.weights``, which the
    program gives to ``<name>_set_weights``. Raises BuildError for a model that needs more than C has; nothing is left behind then."""
    if values := [v for v in values_beside_tensors(functions) if v != COMPLEX]:
        raise BuildError("the model cannot be C source", why=f"it takes or gives {', '.join(values)}, which are objects of Python",
                         hint="compile a part of it that takes and gives tensors of numbers")
    name = c_prefix(name or out.stem)
    text = text_of(sources, functions, spec)
    needed = memory_bytes(text, functions)
    aligned = BARE if spec.is_bare else ""
    parts = [_head(name, functions, needed), _interface(), aligned + PRELUDE, "#define RD_KERNEL static\n#define RD_TABLE static\n",
             _limits(name, functions, needed), _below_comment((library.source_dir() / "alone.h").read_text()), text]
    with toolchain.atomic_output(out) as temporary:
        beside = out.with_suffix(".weights") if side_file and weights is not None and len(weights) else None
        crc = 0
        if beside is not None and weights is not None:
            with toolchain.atomic_output(beside) as content, content.open("wb") as binary:
                for chunk in weights:
                    binary.write(chunk)
                    crc = zlib.crc32(chunk, crc)
        with temporary.open("w") as sink:
            sink.write("\n".join(parts))
            sink.writelines(_weights(None if beside is not None else weights))
            sink.write(_entries(name, functions, (len(weights), crc) if beside is not None and weights is not None else None))
    if header:
        write_header(out.with_suffix(".h"), [f.info for f in functions], name, out.name, len(weights) if beside is not None and weights is not None else None)
    return out


def text_of(sources: Sequence[bytes], functions: Sequence[Interface], spec: MachineSpec) -> str:
    """The functions of a module as one text. Raises BuildError for a model that needs more than C has."""
    hint = "let the model end before that, or run it on a machine with a system" if spec.is_bare else "save a shared library (.so)"
    if not all(map(is_source, sources)):
        raise BuildError("the model cannot be one C file: parts of it were compiled by others",
                         hint=f'compile it with target="c -mcpu={spec.cpu}"' if spec.is_bare else hint)
    text = joined(s.decode() for s in sources)
    for symbol, (what, why) in _UNSUPPORTED.items():
        if f"{symbol}(" in text or f"{symbol}_into(" in text:
            raise BuildError(f"the model cannot be one C file: {what}", why=why, hint=hint)
    if any(f.caches for f in functions):
        raise BuildError("the model cannot be one C file: caches of it grow in place", hint=hint)
    return text


def memory_bytes(text: str, functions: Sequence[Interface]) -> int | None:
    """Bytes of memory that a run takes at most, besides its stack, tensors and weights; None where sizes that the run tells decide."""
    sizes = [size for f in functions if (size := arena_bytes(f.func)) is not None]
    known = [Analyzer().simplify(s) for s in sizes]
    asked = heap_bytes(text)
    if any(type(s) is not tir.IntImm for s in known) or asked is None:
        return None
    return max((s.value for s in known), default=0) + asked


def heap_bytes(text: str) -> int | None:
    """Bytes that functions ask for besides: a kernel and its tasks give theirs back before the next one runs. None where sizes of the run decide."""
    of_kernels: Counter[str] = Counter()
    nested = False
    for part in re.split(r"\n(?=static )", text):
        name = re.match(r"static \w+ (rk_[0-9a-f]+)?", part)
        own = (name and name[1]) or ""
        nested |= bool(own and set(re.findall(r"\b(rk_[0-9a-f]+)\(ctx", part)) - {own})  # a kernel that calls another one
        for size in _HEAP.findall(part):
            if not size.isdecimal():
                return None
            of_kernels[own] += int(size) + _RESERVED
    host = of_kernels.pop("", 0)
    return host + (sum if nested else max)(of_kernels.values() or (0,))


def _head(name: str, functions: Sequence[Interface], needed: int | None) -> str:
    shown = "\n".join(f" *   {entry_name(name, f.name)}: {', '.join(c_comment(str(t)) for t in f.info.inputs)}"
                      f" -> {', '.join(c_comment(str(t)) for t in f.info.outputs)}" for f in functions)
    memory = f"{needed:,} bytes of memory" if needed is not None else f"{name.upper()}_MEMORY_BYTES of memory, which whoever compiles it says"
    return (f"/* {name}: a model compiled by Roundel {__version__} to C99. Compile it with optimisation, and link with -lm where that is needed.\n"
            f" * It has {memory}, which are its own: one run at a time. Nothing is allocated.\n{shown} */\n")


def _interface() -> str:
    """What the file needs of ``roundel.h``: tensors, the description of functions, statuses, the context."""
    text = library.header().read_text()
    start, end = text.index("/* ---- Tensors"), text.index("/* ---- Part 2")
    status = text.index("#ifndef ROUNDEL_STATUS_")
    codes = text[status : text.index("#endif\n", status) + len("#endif\n")]
    return (f"#include <stddef.h>\n#include <stdint.h>\n\n#define RD_ABI {ABI}u\n{text[start:end]}\n"
            f"struct RdContext {{ void *arena; const void **constants; int32_t status; }};\ntypedef int (*RdInterrupt)(void *user);\n{codes}")


def _below_comment(text: str) -> str:
    return text[text.index("*/") + 2 :].lstrip()


def _limits(name: str, functions: Sequence[Interface], needed: int | None) -> str:
    most = {
        "SYMBOLS": max(len(f.symbols) for f in functions),
        "DIMS": max(sum(len(p.dims) for p in f.params) for f in functions),
        "PARAMS": max(len(f.params) for f in functions),
        "CONSTANTS": max(len(f.constants) for f in functions),
    }
    variable = f"{name.upper()}_MEMORY_BYTES"
    given = (f"#ifndef {variable}\n#error \"how much memory the model needs depends on its inputs: compile with -D{variable}=...\"\n"
             f"#define {variable} 64\n#endif\n#define RD_MEMORY_BYTES {variable}\n") if needed is None else f"#define RD_MEMORY_BYTES {needed}\n"
    told = f", {variable}," if needed is None else ""
    given += f'#define RD_TOO_SMALL "the memory in bytes that the model was given{told} is too small"\n'
    return given + "".join(f"#define RD_MOST_{k} {v}\n" for k, v in most.items())


def _weights(weights: Pieces | None) -> Iterator[str]:
    """The blob as words, the first byte of each in its lowest bits."""
    if weights is None or not len(weights):
        return
    yield ("\n#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == 4321\n#error \"these weights are for machines with the lowest byte first\"\n#endif\n"
           f"static const RD_ALIGNED uint64_t rd_weights[{-(-len(weights) // 8)}] = {{\n")
    rest = b""
    for chunk in weights:
        rest += bytes(chunk)
        whole = len(rest) // (8 * _PER_LINE) * 8 * _PER_LINE
        yield from _words(rest[:whole])
        rest = rest[whole:]
    yield from _words(rest + bytes(-len(rest) % 8))
    yield "};\n"


def _words(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), 8 * _PER_LINE):
        line = data[start : start + 8 * _PER_LINE]
        yield " ".join(f"0x{int.from_bytes(line[k : k + 8], 'little'):x}," for k in range(0, len(line), 8)) + "\n"


def _entries(name: str, functions: Sequence[Interface], beside: tuple[int, int] | None) -> str:
    """The C functions that ``write_header`` declares; ``beside``: the size and the CRC-32 of weights in a file of their own."""
    stored = any(f.constants for f in functions)
    weights = "rd_given_weights" if beside is not None else "(const unsigned char *)rd_weights" if stored else "0"
    lines = ["", f"const char *{name}_last_error(void);", f"void {name}_release(DLTensor *output);", f"int {name}_set_num_threads(int num_threads);",
             f"int {name}_num_threads(void);", f"int {name}_set_interrupt(RdInterrupt ask, void *user);", f"void {name}_close(void);",
             f"const char *{name}_version(void);", f"int {name}_abi(void);"]
    if beside is not None:
        nbytes, crc = beside
        lines += ["static const unsigned char *rd_given_weights;",
                  *weights_declaration(name, nbytes),
                  f"int {name}_set_weights(const void *weights, size_t nbytes) {{",
                  '  if (!weights) return rd_refused("the weights are a null pointer");',
                  f'  if (nbytes != {nbytes}u) return rd_refused("the weights have another size than those of the model");',
                  '  if ((uintptr_t)weights % 8) return rd_refused("the weights do not lie at an address that 8 divides");',
                  f'  if (rd_crc32((const unsigned char *)weights, nbytes) != {crc:#x}u)',
                  '    return rd_refused("the weights are damaged, or those of another model");',
                  "  rd_given_weights = (const unsigned char *)weights;", "  return RD_OK;", "}"]
    for k, f in enumerate(functions):
        entry = entry_name(name, f.name)
        why = f"the weights were not given to {c_string(name)}_set_weights"
        missing = f'  if (!rd_given_weights) return rd_refused("{why}");'
        lines += [f"int {entry}(const DLTensor *inputs, DLTensor *outputs);", f"int {entry}(const DLTensor *inputs, DLTensor *outputs) {{",
                  *([missing] if beside is not None else []),
                  f"  return rd_run(&roundel_library.functions[{k}], {weights}, inputs, outputs);", "}"]
    lines += [f"const char *{name}_last_error(void) {{ return rd_message; }}",
              f"void {name}_release(DLTensor *output) {{ (void)output; }}",
              f"int {name}_set_num_threads(int num_threads) {{ return num_threads < 0 ? RD_VALUE_ERROR : RD_OK; }}",
              f"int {name}_num_threads(void) {{ return 1; }}",
              f"int {name}_set_interrupt(RdInterrupt ask, void *user) {{ rd_ask = ask; rd_ask_user = user; return RD_OK; }}",
              f"void {name}_close(void) {{}}",
              f'const char *{name}_version(void) {{ return "{c_string(__version__)}"; }}',
              f"int {name}_abi(void) {{ return {ABI}; }}"]
    return "\n".join(lines) + "\n"


