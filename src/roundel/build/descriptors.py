# SPDX-License-Identifier: Apache-2.0
"""The host module as LLVM text: host functions, and the structures of ``csrc/roundel.h`` that describe the exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.llvm import MachineSpec, Piece, emit_function, module_text, platform_of
from ..codegen.llvm.types import llvm_type
from ..ir import escape, tir
from ..ir.attrs import Attrs
from ..ir.dtype import HANDLE, INT64, VOID
from ..ir.errors import BuildError
from ..ir.visit import free_vars
from ..runtime.native import ABI, COMPUTED, SCALAR, dlpack_code
from .interface import Interface, Parameter, arena_bytes

# LLVM's names of the features that code needs which was generated with them, so that the runtime checks for them (csrc/cpu.c); the rest come with
# these or are not used by choice
_CHECKED = (
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512vnni",
    "avx512bf16",
    "avx512fp16",
    "avx512vbmi",
    "avxvnni",
    "avx2",
    "fma",
    "f16c",
    "bmi2",
    "avx",
    "sse4.2",
    "amx-int8",
    "amx-bf16",
    "neon",
    "dotprod",
    "i8mm",
    "sve",
    "bf16",
    "fullfp16",
    "avx512bitalg",
    "avx512cd",
    "avx512ifma",
    "avx512vbmi2",
    "avx512vpopcntdq",
    "avxifma",
    "avxneconvert",
    "avxvnniint8",
    "bmi",
    "fma4",
    "gfni",
    "lse",
    "lzcnt",
    "movbe",
    "popcnt",
    "rdm",
    "sse3",
    "sse4.1",
    "ssse3",
    "sve2",
    "xop",
)

_PARAM = "{ ptr, i8, i8, i16, i32, ptr, i32 }"
_FUNCTION = "{ i32, ptr, ptr, i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, i32, ptr, i32, ptr }"


class Globals:
    """Constants of the module, each different one once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def add(self, value: str) -> str:
        """The name of a private constant with this type and value."""
        name = self.known.get(value)
        if name is None:
            name = self.known[value] = f"@.rd{len(self.known)}"
            self.lines.append(f"{name} = private constant {value}")
        return name

    def string(self, text: str) -> str:
        """The name of a constant that holds a text, ended by a zero byte."""
        raw = escape.encoded(text) + b"\0"
        return self.add(f'[{len(raw)} x i8] c"{escape.llvm_string(raw)}"')

    def array(self, kind: str, items: Sequence[str]) -> str:
        """``null`` when empty."""
        return self.add(f"[{len(items)} x {kind}] [{', '.join(f'{kind} {i}' for i in items)}]") if items else "null"


def host_module(
    functions: Sequence[Interface],
    hosts: Mapping[str, Piece],
    spec: MachineSpec,
    offsets: Mapping[str, tuple[int, int]],
    weights_nbytes: int,
    metadata: str,
) -> str:
    """The text. ``hosts``: host functions by symbol; ``offsets``: offset and bytes of each constant by key."""
    table, pieces = Globals(), list(hosts.values())
    described = [_function(f, table, pieces, spec, offsets) for f in functions]
    array = table.array(_FUNCTION, described)
    library = (
        f"@roundel_library = constant {{ i32, i32, ptr, i64, ptr }} {{ i32 {ABI}, i32 {len(functions)}, ptr {array}, "
        f"i64 {weights_nbytes}, ptr {table.string(metadata)} }}"
    )
    return module_text(pieces, "\n".join([*table.lines, library]))


def checked_features(spec: MachineSpec) -> list[str]:
    """The features of a CPU without which a library for that machine is not opened."""
    return [name for name in _CHECKED if f"+{name}" in spec.features.split(",")]


def _function(
    f: Interface, table: Globals, pieces: list[Piece], spec: MachineSpec, offsets: Mapping[str, tuple[int, int]]
) -> str:
    index = {v: k for k, v in enumerate(f.symbols)}
    computed = any(type(d) not in (tir.IntImm, tir.Var) for p in f.params for d in p.dims)
    prefix = f"rd.{len(pieces)}"
    pieces.append(_run(f, prefix + ".run", index))
    shapes = arena = "null"
    if computed:
        shapes = f"@{prefix}.shapes"
        pieces.append(_shapes(f, shapes[1:], spec))
    size = arena_bytes(f.func)
    if size is not None:
        arena = f"@{prefix}.arena"
        pieces.append(_arena(f, arena[1:], size, spec))
    params = [_param(p, table, index) for p in f.params]
    constants = [f"{{ i64 {offsets[key][0]}, i64 {offsets[key][1]}, ptr {table.string(key)} }}" for key in f.constants]
    features = checked_features(spec)
    strings = [table.string(escape.name(n)) for n in f.symbol_names]
    kernels = [table.string(escape.name(n)) for n in f.kernels]
    caches = [f"{{ i32 {i}, i32 {k}, i32 {axis}, i32 {index[room]} }}" for i, k, axis, room in f.caches]
    fields = [
        f"i32 {ABI}",
        f"ptr {table.string(escape.name(f.name))}",
        f"ptr {table.string(','.join(features))}",
        f"i32 {len(f.inputs)}",
        f"i32 {len(f.outputs)}",
        f"i32 {len(f.symbols)}",
        f"i32 {len(constants)}",
        f"ptr {table.array('ptr', strings)}",
        f"ptr {table.array(_PARAM, params)}",
        f"ptr {shapes}",
        f"ptr {arena}",
        f"ptr @{prefix}.run",
        f"ptr {table.array('{ i64, i64, ptr }', constants)}",
        f"i32 {len(kernels)}",
        f"ptr {table.array('ptr', kernels)}",
        f"i32 {len(caches)}",
        f"ptr {table.array('{ i32, i32, i32, i32 }', caches)}",
    ]
    return "{ " + ", ".join(fields) + " }"


def _param(p: Parameter, table: Globals, index: Mapping[tir.Var, int]) -> str:
    code, bits, lanes = dlpack_code(p.dtype)
    if p.buffer is None:
        ndim, dims = SCALAR, [str(-1 - index[p.var])] if p.var in index else []
    else:
        ndim = len(p.dims)
        dims = [
            str(d.value) if type(d) is tir.IntImm else str(-1 - index[d]) if d in index else str(COMPUTED)
            for d in p.dims
        ]
    flags = 1 if p.inout else 0
    name, array = table.string(escape.name(p.name)), table.array("i64", dims)
    return f"{{ ptr {name}, i8 {code}, i8 {bits}, i16 {lanes}, i32 {ndim}, ptr {array}, i32 {flags} }}"


def _run(f: Interface, name: str, index: Mapping[tir.Var, int]) -> Piece:
    """``i32 run(ctx, symbols, buffers)``: takes the arguments apart and calls the function."""
    lines, values = [], {}
    for k, v in enumerate(f.symbols):
        lines += [f"  %sp{k} = getelementptr i64, ptr %symbols, i64 {k}", f"  %s{k} = load i64, ptr %sp{k}, align 8"]
        values[v] = f"i64 %s{k}"
        if v.dtype != INT64:
            lines.append(f"  %st{k} = trunc i64 %s{k} to {llvm_type(v.dtype)}")
            values[v] = f"{llvm_type(v.dtype)} %st{k}"
    for k, p in enumerate(f.params):
        if p.var in values:
            continue
        lines += [f"  %bp{k} = getelementptr ptr, ptr %buffers, i64 {k}", f"  %b{k} = load ptr, ptr %bp{k}, align 8"]
        values[p.var] = f"ptr %b{k}"
        if p.buffer is None:
            t = llvm_type(p.dtype)
            if p.dtype.is_bool:
                lines += [f"  %x{k} = load i8, ptr %b{k}", f"  %v{k} = icmp ne i8 %x{k}, 0"]
            else:
                lines.append(f"  %v{k} = load {t}, ptr %b{k}, align 1")
            values[p.var] = f"{t} %v{k}"
    arguments = ", ".join(["ptr %ctx", *(values[v] for v in f.func.params)])
    if f.is_host:
        lines += [f"  %status = call i32 @{f.symbol}({arguments})", "  ret i32 %status"]
    else:
        lines += [f"  call void @{f.symbol}({arguments})", "  ret i32 0"]
    types = ", ".join(["ptr", *(llvm_type(v.dtype) for v in f.func.params)])
    text = f"define internal i32 @{name}(ptr %ctx, ptr %symbols, ptr %buffers) {{\n" + "\n".join(lines) + "\n}"
    declares = {} if f.is_host else {f.symbol: f"declare void @{f.symbol}({types})"}
    return Piece(text, declares)


def _with_symbols(
    f: Interface,
    body: tir.Stmt,
    name: str,
    extra: tuple[tir.Var, ...],
    result: bool,
    spec: MachineSpec,
) -> Piece:
    """A helper that takes the symbols' values and whose body may use the symbols."""
    handle = tir.Var("symbols", HANDLE)
    table = tir.decl_buffer((len(f.symbols),), "int64", "symbols", data=handle)
    for k, v in reversed(list(enumerate(f.symbols))):
        body = tir.Let(v, tir.cast(tir.BufferLoad(table, (tir.index_const(k),)), v.dtype), body)
    attrs = Attrs(kind="plain", noalias=False)
    func = tir.PrimFunc((handle, *extra), body, ((handle, table),), attrs, INT64 if result else VOID)
    try:
        piece = emit_function(func, name, platform_of(spec.triple, spec.features), str)
    except BuildError as error:
        raise BuildError(
            f"a size of {f.name} depends on more than the shapes of its parameters", why=error.what
        ) from error
    return piece


def _shapes(f: Interface, name: str, spec: MachineSpec) -> Piece:
    """``void shapes(symbols, dims)``; dimensions that only the run can tell are ``RD_COMPUTED``."""
    out = tir.Var("dims", HANDLE)
    known = set(f.symbols)
    dims = [d for p in f.params for d in p.dims]
    table = tir.decl_buffer((len(dims),), "int64", "dims", data=out)

    values = [tir.cast(d, "int64") if free_vars(d) <= known else tir.IntImm(COMPUTED, INT64) for d in dims]
    body = tir.seq(*(tir.BufferStore(table, v, (tir.index_const(k),)) for k, v in enumerate(values)))
    return _with_symbols(f, body, name, (out,), False, spec)


def _arena(f: Interface, name: str, size: tir.Expr, spec: MachineSpec) -> Piece:
    body = tir.Evaluate(tir.Call("ret", (tir.cast(size, "int64"),), INT64))
    return _with_symbols(f, body, name, (), True, spec)
