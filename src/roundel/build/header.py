# SPDX-License-Identifier: Apache-2.0
"""The C interface of a model: the names of its functions, and the header that declares them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..ir import escape
from ..ir.escape import c_comment, c_identifier
from ..runtime import library, toolchain
from ..runtime.metadata import FunctionInfo, TensorInfo
from ..runtime.native import ABI, dlpack_code

_RUNTIME = {"roundel", "rd", "rd_package", "rd_ffi", "__tvm_ffi"}  # its functions begin like that
_LONGEST_NAME = 100  # of a C function, without the model's name
_TAKEN = re.compile(r"^(run|open|close|release|register|last_error|num_threads|set_num_threads|set_interrupt|version|abi)$"
                    r"|_(in|out)puts?\d*$|_[0-9a-f]{8}$", re.IGNORECASE)

# What a library with threads says of them and of its end, and what a C file without says.
_SYSTEM = (
    ("/* The most threads that a run uses, from the next run on; may be called before the first. 0: ROUNDEL_NUM_THREADS, or the cores that this",
     " * process may use. Returns 0, or RD_VALUE_ERROR for a negative number. */"),
    "/* Gives back memory and threads, when no run is under way; the next run opens the model again. Before dlclose it must be called. */",
)
_ALONE = (
    ("/* A run uses one thread, whatever is asked. Returns 0, or RD_VALUE_ERROR for a negative number. */",),
    "/* Does nothing: the model's memory is its own. */",
)


def c_prefix(text: str) -> str:
    """``text`` as the beginning of a model's C names, which are not those of the runtime."""
    plain = c_identifier(text)
    return f"model_{plain}" if plain in _RUNTIME else plain


def entry_name(name: str, function: str) -> str:
    """The C function that runs ``function`` of the model called ``name``: ``name_run`` for ``main``, else ``name_function``.

    What C would not take, or what would be the name of something else in the header, is changed and told apart by a hash."""
    if function == "main":
        return f"{name}_run"
    plain = c_identifier(function)
    clean = plain == function and len(plain) <= _LONGEST_NAME and not _TAKEN.search(plain)
    return f"{name}_{plain}" if clean else f"{name}_{plain[:_LONGEST_NAME]}_{escape.digest(function)}"


def weights_declaration(name: str, nbytes: int) -> list[str]:
    """The function that gives a model weights which are in a file of their own, of ``nbytes`` bytes."""
    return [f"/* The content of the weights' file, {nbytes} bytes, at an address that 8 divides (best 64), before the first run.",
            " * Returns 0, or RD_VALUE_ERROR for anything else: every byte is compared. The weights are not copied: they must stay there. */",
            f"int {name}_set_weights(const void *weights, size_t nbytes);"]


def write_header(path: str | Path, functions: Sequence[FunctionInfo], name: str | None = None, source: str = "", beside: int | None = None) -> Path:
    """The C header of a model, complete by itself: entry points and a constructor for each tensor; returns its path. ``source``: the C file, or the object
    made of one, that has these functions; a shared library has them otherwise. ``beside``: the bytes of weights that the program gives to the model."""
    path = Path(path)
    name = c_prefix(name or path.stem)
    guard = f"{name.upper()}_H_"
    lines = [
        f"/* {name}: a model compiled by Roundel. {_where(name, source)} */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(["#include <stddef.h>"] if beside is not None else []),
        "#include <stdint.h>",
        "",
        _guarded("DLPACK_DLPACK_H_"),
        _guarded("ROUNDEL_STATUS_"),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for info in functions:
        lines += _declare(name, info, is_alone=bool(source))
    threads, closing = _ALONE if source else _SYSTEM
    lines += [
        *([*weights_declaration(name, beside), ""] if beside is not None else []),
        "/* Why the last call of this thread returned something else than 0. */",
        f"const char *{name}_last_error(void);",
        "",
        "/* Does nothing: outputs bring their memory. */" if source else "/* Frees an output that came without `data` and got its memory from the model. */",
        f"void {name}_release(DLTensor *output);",
        "",
        *threads,
        f"int {name}_set_num_threads(int num_threads);",
        f"int {name}_num_threads(void);",
        "",
        "/* Runs that take longer than 0.2 s call this function about as often, on the thread that runs the model, until it returns something else",
        " * than 0: then the run ends with RD_INTERRUPTED, and the model can be run again. NULL (at first): nobody is asked. */",
        f"int {name}_set_interrupt(int (*ask)(void *user), void *user);",
        "",
        closing,
        f"void {name}_close(void);",
        "",
        "/* The version of Roundel that made the model, and of its C interface: that of this header is the constant. */",
        f"const char *{name}_version(void);",
        f"int {name}_abi(void);",
        f"enum {{ {name.upper() if name == name.lower() else name}_ABI = {ABI} }};",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
        "",
    ]
    with toolchain.atomic_output(path) as temporary:
        temporary.write_text("\n".join(lines))
    return path


def _where(name: str, source: str) -> str:
    return f"Compile or link {source} with the program; nothing else is needed." if source else f"Link with lib{name}.so or {name}.so; nothing else is needed."


def _guarded(guard: str) -> str:
    """A part of ``roundel.h`` that may be repeated."""
    text = library.header().read_text()
    start = text.index(f"#ifndef {guard}")
    return text[start : text.index("#endif\n", start) + len("#endif\n")]


def _shown(tensor: TensorInfo) -> str:
    return c_comment(tensor.name) + c_comment(str(tensor).removeprefix(tensor.name))


def _declare(name: str, info: FunctionInfo, is_alone: bool = False) -> list[str]:
    entry = entry_name(name, info.name)
    count = entry.upper() if entry == entry.lower() else entry  # functions called `f` and `F` have each their own
    lines = ["/* Inputs:"]
    lines += [f" *   [{i}] {_shown(t)}" for i, t in enumerate(info.inputs)]
    lines += [" * Outputs:" if is_alone else " * Outputs (a tensor whose data is NULL gets its memory from the model):"]
    grown = {output: f": input {past} with more along axis {axis}, in place if it has that input's data and strides" for past, output, axis in info.caches}
    lines += [f" *   [{i}] {_shown(t)}{grown.get(i, '')}" for i, t in enumerate(info.outputs)]
    at_once = "One run at a time." if is_alone else "May be called from several threads at once."
    lines += [
        f" * Returns 0, or a RdStatus with a message in {name}_last_error(). {at_once} */",
        f"int {entry}(const DLTensor *inputs, DLTensor *outputs);",
        f"enum {{ {count}_INPUTS = {len(info.inputs)}, {count}_OUTPUTS = {len(info.outputs)} }};",
        "",
    ]
    for role, tensors in (("input", info.inputs), ("output", info.outputs)):
        for index, tensor in enumerate(tensors):
            (code, bits, lanes), rank = dlpack_code(tensor.dtype), len(tensor.shape)
            lines += [
                f"static inline DLTensor {entry}_{role}{index}(void *data, int64_t *shape) {{ /* {_shown(tensor)} */",
                f"  DLTensor t = {{data, {{kDLCPU, 0}}, {rank}, {{{code}, {bits}, {lanes}}}, shape, 0, 0}};",
                "  return t;",
                "}",
            ]
    return [*lines, ""]
