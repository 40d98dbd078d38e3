# SPDX-License-Identifier: Apache-2.0
"""What a library says about its exports, the structures of ``csrc/roundel.h``, and the functions in them that the runtime calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen import Array, Data, Emitted, Function, Number, Record, Symbol, Text, backend_of
from ..ir import escape, tir
from ..ir.attrs import Attrs
from ..ir.dtype import HANDLE, INT32, INT64, VOID
from ..ir.errors import BuildError
from ..ir.graph import GlobalVar
from ..ir.visit import free_vars
from ..runtime.native import ABI, COMPUTED, SCALAR, dlpack_code
from ..target.spec import MachineSpec
from .interface import Interface, Parameter, arena_bytes


def host_module(
    functions: Sequence[Interface],
    hosts: Sequence[Function],
    spec: MachineSpec,
    features: Sequence[str],
    offsets: Mapping[str, tuple[int, int]],
    weights_nbytes: int,
    metadata: str,
    label: str = "",
) -> Emitted:
    """The unit of the host functions ``hosts`` and of the library's description, with a ``label`` in its symbols. ``features``: those that it demands
    of a processor; ``offsets``: offset and bytes of each constant by key.
    Raises BuildError."""
    backend, written = backend_of(spec.backend), list(hosts)
    described = []
    for k, f in enumerate(functions):
        made = _Described(f, f"rd{label}.{k}")
        described.append(made.record(offsets, features))
        written += made.functions
    library = Record("RdLibrary", (Number(32, ABI), Number(32, len(functions)), Array.of(described), Number(64, weights_nbytes), Text(metadata)))
    return backend.emit(written, spec, [Data(f"roundel_library{label}", library)])


def _texts(names: Sequence[str]) -> Array:
    return Array.of([Text(escape.name(n)) for n in names])


class _Described:
    """One exported function: what is said of it, and the functions that go with it."""

    def __init__(self, interface: Interface, prefix: str) -> None:
        self.interface, self.prefix = interface, prefix
        self.index = {v: k for k, v in enumerate(interface.symbols)}
        self.functions: list[Function] = []

    def record(self, offsets: Mapping[str, tuple[int, int]], features: Sequence[str]) -> Record:
        """``RdFunction``."""
        f = self.interface
        run = self._add("run", _run(f), ("RdContext *", "const int64_t *", "void **"))
        computed = any(type(d) not in (tir.IntImm, tir.Var) for p in f.params for d in p.dims)
        shapes = self._add("shapes", _shapes(f), ("const int64_t *", "int64_t *")) if computed else Symbol(None)
        size = arena_bytes(f.func)
        arena = self._add("arena", _arena(f, size), ("const int64_t *",)) if size is not None else Symbol(None)
        constants = [Record("RdConstant", (Number(64, offsets[key][0]), Number(64, offsets[key][1]), Text(key))) for key in f.constants]
        caches = [Record("RdCache", tuple(Number(32, n) for n in (i, k, axis, self.index[room]))) for i, k, axis, room in f.caches]
        counts = (len(f.inputs), len(f.outputs), len(f.symbols), len(constants))
        return Record("RdFunction", (
            Number(32, ABI), Text(escape.name(f.name)), Text(",".join(features)), *(Number(32, n) for n in counts), _texts(f.symbol_names),
            Array.of([self._param(p) for p in f.params]), shapes, arena, run, Array.of(constants),
            Number(32, len(f.kernels)), _texts(f.kernels), Number(32, len(caches)), Array.of(caches)))

    def _add(self, name: str, program: tir.PrimFunc, parameters: tuple[str, ...]) -> Symbol:
        made = Function(f"{self.prefix}.{name}", program)
        self.functions.append(made)
        return Symbol(made.symbol, 32 if name == "run" else program.ret_dtype.bits, parameters)

    def _param(self, p: Parameter) -> Record:
        code, bits, lanes = dlpack_code(p.dtype)
        if p.buffer is None:
            ndim, dims = SCALAR, [-1 - self.index[p.var]] if p.var in self.index else []
        else:
            ndim = len(p.dims)
            dims = [d.value if type(d) is tir.IntImm else -1 - self.index[d] if d in self.index else COMPUTED for d in p.dims]
        return Record("RdParam", (Text(escape.name(p.name)), Number(8, code), Number(8, bits), Number(16, lanes), Number(32, ndim),
                                  Array.of([Number(64, d) for d in dims]), Number(32, 1 if p.inout else 0)))


def _symbols_around(f: Interface, handle: tir.Var, body: tir.Stmt) -> tuple[tir.Stmt, tir.Buffer]:
    """A body that may use the symbols, whose values lie behind ``handle``."""
    table = tir.decl_buffer((len(f.symbols),), "int64", "symbols", data=handle)
    for k, v in reversed(list(enumerate(f.symbols))):
        body = tir.Let(v, tir.cast(tir.BufferLoad(table, (tir.index_const(k),)), v.dtype), body)
    return body, table


def _run(f: Interface) -> tir.PrimFunc:
    """``int32_t run(ctx, symbols, buffers)``: takes the arguments apart and calls the function."""
    symbols, buffers = tir.Var("symbols", HANDLE), tir.Var("buffers", HANDLE)
    pointers = tir.decl_buffer((len(f.params),), "handle", "buffers", data=buffers)
    call = tir.Call(GlobalVar(f.symbol), tuple(f.func.params), INT32 if f.is_host else VOID)
    body: tir.Stmt = tir.Evaluate(tir.Call("ret", (call,), INT32)) if f.is_host else tir.Evaluate(call)
    for k, p in reversed(list(enumerate(f.params))):
        if p.var in f.symbols:
            continue
        where = tir.BufferLoad(pointers, (tir.index_const(k),))
        if p.buffer is not None:
            body = tir.Let(p.var, where, body)
            continue
        place = tir.Var(f"{p.name}_data", HANDLE)
        scalar = tir.decl_buffer((1,), str(p.dtype), p.name, data=place)
        body = tir.Let(place, where, tir.Let(p.var, tir.BufferLoad(scalar, (tir.index_const(0),)), body))
    body, table = _symbols_around(f, symbols, body)
    return tir.PrimFunc((symbols, buffers), body, ((symbols, table), (buffers, pointers)), Attrs(kind="host", noalias=False))


def _with_symbols(f: Interface, body: tir.Stmt, more: tuple[tir.Var, ...], result: bool) -> tir.PrimFunc:
    """A helper that takes the symbols' values and whose body may use the symbols."""
    handle = tir.Var("symbols", HANDLE)
    body, table = _symbols_around(f, handle, body)
    return tir.PrimFunc((handle, *more), body, ((handle, table),), Attrs(kind="plain", noalias=False), INT64 if result else VOID)


def _shapes(f: Interface) -> tir.PrimFunc:
    """``void shapes(symbols, dims)``; dimensions that only the run can tell are ``RD_COMPUTED``."""
    out = tir.Var("dims", HANDLE)
    known = set(f.symbols)
    dims = [d for p in f.params for d in p.dims]
    table = tir.decl_buffer((len(dims),), "int64", "dims", data=out)
    values = [tir.cast(d, "int64") if free_vars(d) <= known else tir.IntImm(COMPUTED, INT64) for d in dims]
    body = tir.seq(*(tir.BufferStore(table, v, (tir.index_const(k),)) for k, v in enumerate(values)))
    return _with_symbols(f, body, (out,), False)


def _arena(f: Interface, size: tir.Expr) -> tir.PrimFunc:
    """``int64_t arena_size(symbols)``."""
    if free_vars(size) - set(f.symbols):
        raise BuildError(f"a size of {f.name} depends on more than the shapes of its parameters")
    return _with_symbols(f, tir.Evaluate(tir.Call("ret", (tir.cast(size, "int64"),), INT64)), (), True)
