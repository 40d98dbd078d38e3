# SPDX-License-Identifier: Apache-2.0
"""Generated objects, the C runtime and the weights become one shared library, or one object to link, that needs the C library alone."""

from __future__ import annotations

import hashlib
import mmap
import platform
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from .. import __version__
from ..ir import escape
from ..ir.dataclass import dataclass
from ..ir.errors import BuildError, OptionError
from ..ir.escape import c_string
from ..ir.processors import FAMILIES, family_of, this_family
from ..runtime import library, toolchain
from ..runtime.integrity import NAME_ROOM, Trailer, encoded_name, weights_name
from ..runtime.metadata import FunctionInfo
from ..target import Target
from ..target.spec import library_ending, system_of
from .elf import write_data_object
from .header import c_prefix, entry_name, write_header
from .limits import read_bytes
from .systems import IMPORTS, SYSTEMS, link_for
from .weights import Blob, nbytes_of, write_beside, write_content

_EMBED_AT_MOST = 1 << 30  # bytes; more would push code and data out of each other's reach
_PLACE = hashlib.sha256(b"the place of the weights").digest()  # what the linker sees of them
_NAME = hashlib.sha256(b"the name of the weights' file").digest()  # what lies before it
_EXPORTS = (
    "{ global: roundel_*; rd_fail; rd_failf; rd_package_*; rd_invoke; rd_call_arrays; rd_ffi_*; rd_python_*; __tvm_ffi_*; %s_*; local: *; };\n"
)
_LINK = (
    "-shared",
    "-O1",
    "-fPIC",
    "-fvisibility=hidden",
    "-w",
    "-Wl,-Bsymbolic",
    "-Wl,--gc-sections",
    "-Wl,--as-needed",
    "-Wl,-z,noexecstack",
    "-Wl,-z,relro",
    "-Wl,--build-id=none",
    "-Wl,--strip-debug",  # of the compiler's own functions, which zig links with a megabyte of it
)
_RELOCATABLE = ("-r", "-nostdlib", "-O1", "-fPIC", "-w")

_STUB = """\
#include "runtime.h"
extern const char roundel_weights[];
{levels}{side_file}RD_API RdPackage roundel_package = {{&{library}, {weights}, {weights_file}, {digest}, 0, 0, {num_levels}, {known}, {nbytes}}};
RD_API const char *{name}_last_error(void) {{ return roundel_last_error(); }}
RD_API void {name}_release(DLTensor *output) {{
  RdModel *model;
  if (!rd_package_open(&roundel_package, 0, &model)) roundel_release(model, output);
}}
RD_API int {name}_register(const char *function, RdPacked packed, void *user) {{
  return roundel_register(function, packed, user);
}}
RD_API int {name}_set_num_threads(int num_threads) {{ return rd_package_set_num_threads(&roundel_package, num_threads); }}
RD_API int {name}_num_threads(void) {{ return rd_package_num_threads(&roundel_package); }}
RD_API int {name}_set_interrupt(RdInterrupt ask, void *user) {{ return roundel_set_interrupt(ask, user); }}
RD_API void {name}_close(void) {{ rd_package_close(&roundel_package); }}
RD_API const char *{name}_version(void) {{ return "{version}"; }}
RD_API int {name}_abi(void) {{ return (int)roundel_abi(); }}
RD_API int {name}_open(const RdOptions *options, RdModel **model) {{
  RdOptions none = {{0}};
  return rd_package_open(&roundel_package, options ? options : &none, model);
}}
"""

_ENTRY = """\
RD_API int {entry}(const DLTensor *inputs, DLTensor *outputs) {{
  return rd_package_run(&roundel_package, "{function}", inputs, outputs);
}}
"""

_FFI_ENTRY = """\
RD_API int __tvm_ffi_{function}(void *self, const RdAny *args, int32_t nargs, RdAny *result) {{
  (void)self;
  return rd_package_ffi(&roundel_package, "{function}", args, nargs, result);
}}
"""


def link(
    objects: Sequence[bytes],
    weights: Blob | None,
    out: str | Path,
    target: Target | None = None,
    *,
    functions: Sequence[str] = ("main",),
    name: str | None = None,
    side_file: bool = False,
    header: Sequence[FunctionInfo] = (),
    levels: Sequence[tuple[str, str]] = (),
    max_size: str | int | None = None,
) -> Path:
    """Write ``out``, a shared library or, where its name ends in ``.o``, an object to link statically (with ``-lm -lpthread``);
    returns its path. One of ``objects`` defines ``roundel_library``.

    ``weights`` is the blob that the library's constants point into; it is embedded, or with ``side_file`` (and always
    above 1 GiB) written to ``<stem>.weights`` (of an object: ``<name>.weights``) beside ``out`` and mapped when the model is opened. ``name`` (default:
    the file's) begins the names of the C functions; those in ``header`` are declared in ``<stem>.h`` beside ``out``, and a DLL's are in
    ``<stem>.lib`` too. ``target`` gives the triple of another machine; None is this one. ``levels``: where there are several libraries, name and symbol
    of each, the best first.
    ``max_size``: the most bytes that the file and its weights may have, ``"40M"`` or a number. Raises BuildError with the linker's words or the disk's,
    OptionError for another ending; nothing is left behind then.
    """
    out, system = Path(out), "linux" if target is None else system_of(target.triple)
    toolchain.check_output(out, ending="" if target is None else library_ending(target.triple))
    if name is not None and not isinstance(name, str):
        raise OptionError(f"the beginning of names cannot be {escape.value(name)}", hint="give a text, such as my_model")
    name = c_prefix(name or out.stem)
    triple = foreign_triple(None if target is None else target.triple)
    runtime = (
        library.compiled(toolchain.compiler(triple), shared=False) / "libroundel_rt.a"
        if triple
        else library.static_library()
    )
    with ExitStack() as outputs:  # which appear together, or not at all
        temporary = outputs.enter_context(toolchain.atomic_output(out))
        work = toolchain.temporary_folder("roundel-link-")
        outputs.callback(shutil.rmtree, work, ignore_errors=True)
        placed = _place_weights(weights, out, work, side_file, this_family() if target is None else family_of(target.triple), system, outputs)
        (work / "stub.c").write_text(_stub(name, functions, placed, levels))
        (work / "exports.map").write_text(_EXPORTS % name)
        paths = [*work.glob("weights.[oS]")]
        for i, content in enumerate(objects):
            paths.append(work / f"part{i}.o")
            paths[-1].write_bytes(content)
        linked = work / f"linked{out.suffix}"
        if system in SYSTEMS:
            made = link_for(SYSTEMS[system], toolchain.compiler(triple), [work / "stub.c", *paths], runtime, out.name)
            shutil.copyfile(made, temporary)
            _check_size(temporary, placed, max_size, levels)
            if header and (imports := made.with_suffix(IMPORTS)).exists():
                shutil.copyfile(imports, outputs.enter_context(toolchain.atomic_output(out.with_suffix(IMPORTS))))
            return _with_header(out, header, name)
        parts = [f"-I{library.source_dir()}", str(work / "stub.c"), *map(str, paths), "-Wl,--whole-archive", str(runtime), "-Wl,--no-whole-archive"]
        command = toolchain.compiler(triple)
        if out.suffix == ".o":
            toolchain.run([*command, *_RELOCATABLE, *parts, "-o", linked])
            toolchain.keep_symbols(linked, (f"{name}_*",), triple)
        else:
            libraries = ("-lm", "-lpthread", *(() if triple else ("-ldl",)))
            exports = f"-Wl,--version-script={work / 'exports.map'}"
            toolchain.run([*command, *_LINK, exports, *parts, *libraries, "-o", linked])
        _fill(linked, placed, temporary, closed=out.suffix != ".o")
        _check_size(temporary, placed, max_size, levels)
    return _with_header(out, header, name)


def _with_header(out: Path, header: Sequence[FunctionInfo], name: str) -> Path:
    if header:
        write_header(out.with_suffix(".h"), header, name)
    return out


def foreign_triple(triple: str | None) -> str | None:
    """What C compilers call a machine, given LLVM's triple, whose files are not linked by this machine's own compiler: another processor, another C library
    (``musl``), or the oldest version of it to run with (``gnu.2.17``, which zig's compiler knows); else None, as for no triple. Raises BuildError
    for systems that nothing links files for here."""
    if not triple:
        return None
    if (system := system_of(triple)) in SYSTEMS:
        return f"{family_of(triple)}-{SYSTEMS[system].name}"
    if "linux" not in triple:
        raise BuildError(
            f"a shared library for {triple} cannot be linked here",
            hint="`roundel targets` lists what can be linked here; C source can be had for all others: target=\"c\", or `-o model.c`",
        )
    family, last = family_of(triple), triple.split("-")[-1]
    library = "gnu" if last in ("linux", "unknown") else last
    if family == this_family() and library == _c_library():
        return None
    return f"{family}-linux-{library}"


def linker_of(triple: str) -> str | None:
    """The program that links files for a machine here: a linker's name, or ``zig``; None where there is none."""
    try:
        command = toolchain.module_linker() if triple.startswith("wasm") else toolchain.compiler(foreign_triple(triple))
    except BuildError:
        return None
    return "zig" if "ziglang" in command else Path(command[0]).name


def _c_library() -> str:
    """The last part of this machine's triple: the C library that Python runs with."""
    return "gnu" if platform.libc_ver()[0] == "glibc" else "musl"


@dataclass(frozen=True)
class _Placed:
    """Where ``nbytes`` of weights are: ``embedded`` (put in afterwards, or by the linker: ``is_linked``), or in a file beside the library that ends in
    ``digest``."""

    nbytes: int = 0
    embedded: Blob = b""
    is_linked: bool = False
    weights_file: str = ""
    digest: str = ""


def _levels(levels: Sequence[tuple[str, str]]) -> str:
    """The table of a file's libraries."""
    declared = "".join(f"extern const RdLibrary {symbol};\n" for _, symbol in levels or [("", "roundel_library")])
    listed = ", ".join(f'{{"{c_string(name)}", &{symbol}}}' for name, symbol in levels)
    return declared + (f"static const RdLevel levels[] = {{{listed}}};\n" if levels else "")


def _stub(name: str, functions: Sequence[str], placed: _Placed, levels: Sequence[tuple[str, str]]) -> str:
    side_file, weights_file, digest = "", "0", "0"
    if placed.weights_file:
        mark, kept = (",".join(map(str, data)) for data in (_NAME, encoded_name(placed.weights_file)))
        side_file = f"static const struct {{ unsigned char mark[{len(_NAME)}], name[{NAME_ROOM}]; }} side_file = {{ {{{mark}}}, {{{kept}}} }};\n"
        weights_file, digest = "(const char *)side_file.name", f'"{placed.digest}"'
    weights = "roundel_weights" if placed.embedded or placed.is_linked else "0"
    text = _STUB.format(name=name, version=c_string(__version__), weights=weights, side_file=side_file, weights_file=weights_file, digest=digest,
                        levels=_levels(levels), library=levels[-1][1] if levels else "roundel_library", num_levels=len(levels),
                        known="levels" if levels else "0", nbytes=placed.nbytes)
    for function in functions:
        text += _ENTRY.format(entry=entry_name(name, function), function=c_string(escape.name(function)))
        if function.isidentifier() and function.isascii():
            text += _FFI_ENTRY.format(function=function)
    return text


def _place_weights(weights: Blob | None, out: Path, work: Path, side_file: bool, architecture: str, system: str, outputs: ExitStack) -> _Placed:
    """Write the weights to the file that they will be mapped from, or keep a place for them in an object to link."""
    size = nbytes_of(weights)
    if weights is None or not size:
        return _Placed()
    if side_file or size > _EMBED_AT_MOST:
        beside = out.with_name(weights_name(out))
        return _Placed(size, weights_file=beside.name, digest=write_beside(weights, beside, outputs))
    if system in SYSTEMS:
        with (work / "weights.bin").open("wb") as sink:
            write_content(weights, sink)
        (work / "weights.S").write_text(SYSTEMS[system].data.format(symbol="roundel_weights", file=work / "weights.bin"))
        return _Placed(size, is_linked=True)
    if architecture not in FAMILIES:
        raise BuildError(f"weights cannot be embedded in a file for {architecture}", hint="use side_file=True")
    write_data_object(work / "weights.o", architecture, "roundel_weights", max(size, len(_PLACE)), _PLACE)
    return _Placed(size, weights)


def _fill(linked: Path, placed: _Placed, out: Path, closed: bool) -> None:
    """Copy what was linked, with the weights in the place that was kept for them. ``closed``: and with a trailer."""
    with linked.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as image, out.open("wb") as sink:
        start = content.find(_PLACE) if placed.embedded else 0
        with image[: start or len(image)] as head, image[start + placed.nbytes if start else len(image) :] as tail:
            sink.write(head)
            digest = write_content(placed.embedded, sink) if start else bytes.fromhex(placed.digest or "00" * 32)
            sink.write(tail)
            name_at = content.find(_NAME) + len(_NAME) if placed.weights_file else 0
            if closed:
                sink.write(Trailer(len(image), start, placed.nbytes, name_at, digest).sealed(head, tail).pack())


def _check_size(made: Path, placed: _Placed, max_size: str | int | None, levels: Sequence[tuple[str, str]]) -> None:
    nbytes = made.stat().st_size + (placed.nbytes if placed.weights_file else 0)
    if max_size is None or nbytes <= (most := read_bytes(str(max_size))):
        return
    names = ", ".join(name for name, _ in levels)
    why = f"its weights are {placed.nbytes:,} of them" + (f", laid out for each size of vectors of its levels ({names})" if levels else "")
    ways = ["leave out levels"] if levels else []
    if nbytes - placed.nbytes // 2 <= most:
        ways.append('store the weights in 16 bits (weights="float16")')
    elif not levels:
        why += f", and code and tables {nbytes - placed.nbytes:,}"
    raise BuildError(f"the model takes {nbytes:,} bytes, and may take {most:,}", why=why, hint=f"{', or '.join([*ways, f'allow it {nbytes:,} bytes'])}")
