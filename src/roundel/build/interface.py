# SPDX-License-Identifier: Apache-2.0
"""What an exported function takes and gives, from its tensor program: parameters, symbols, constants, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from ..arith import Analyzer
from ..ir import DType, IRModule, tir
from ..ir.annotations import ARENA
from ..ir.dataclass import dataclass
from ..ir.errors import BuildError
from ..ir.visit import free_vars, substitute, walk
from ..lower.facts import read_data, written_data
from ..runtime.metadata import FunctionInfo, TensorInfo

BOUNDARY = ("complex_inputs", "complex_outputs", "text_inputs", "text_outputs", "texts", "maps",
            "sequence_inputs", "sequence_outputs", "updates", "python", "object_inputs", "object_outputs")
"""Attributes of a host function that its callers must know (see runtime/boundary)."""
COMPLEX = "complex numbers"
_VALUES = {f"{kind}_{way}": what for kind, what in (("complex", COMPLEX), ("text", "texts"), ("sequence", "sequences"), ("object", "objects"))
           for way in ("inputs", "outputs")} | {"maps": "maps"}


@dataclass(frozen=True)
class Parameter:
    """One input or output. ``var`` is the tensor program's parameter; a scalar has no buffer."""

    var: tir.Var
    buffer: tir.Buffer | None
    name: str
    inout: bool = False

    @property
    def dtype(self) -> DType:
        """Of its elements, or of the scalar."""
        return self.buffer.dtype if self.buffer is not None else self.var.dtype

    @property
    def dims(self) -> tuple[tir.Expr, ...]:
        """Its shape; of a scalar none."""
        return self.buffer.shape if self.buffer is not None else ()


@dataclass
class Interface:
    """An exported function: what ``RdFunction`` says about it."""

    name: str
    func: tir.PrimFunc
    symbol: str
    inputs: list[Parameter]
    outputs: list[Parameter]
    symbols: list[tir.Var]
    info: FunctionInfo
    symbol_names: list[str]
    caches: list[tuple[int, int, int, tir.Var]] = field(default_factory=list)  # (input, output, axis, room behind its rows)
    constants: list[str] = field(default_factory=list)  # keys, in the order of the context's table
    kernels: list[str] = field(default_factory=list)

    @property
    def params(self) -> list[Parameter]:
        """Inputs, then outputs."""
        return [*self.inputs, *self.outputs]

    @property
    def is_host(self) -> bool:
        """Whether it was a graph function."""
        return self.func.attrs.get("kind") == "host"


def exported(mod: IRModule) -> list[str]:
    """Names of what callers see: host functions and what has a ``global_symbol``; without any, every tensor program."""
    programs = {n: f for n, f in mod.items() if isinstance(f, tir.PrimFunc) and f.attrs.get("kind") != "task"}
    hosts = [n for n, f in programs.items() if f.attrs.get("kind") == "host"]
    named = [n for n, f in programs.items() if "global_symbol" in f.attrs and n not in hosts]
    return [*hosts, *named] or list(programs)


def told_apart(mod: IRModule) -> IRModule:
    """The module in which functions that have one ``global_symbol`` together are exported by their names in the module."""
    symbols = Counter(f.attrs["global_symbol"] for _, f in mod.items() if f.attrs.get("global_symbol"))
    if not symbols or max(symbols.values()) == 1:
        return mod
    renamed = {n: f.with_attr("global_symbol", n) for n, f in mod.items() if symbols[f.attrs.get("global_symbol")] > 1}
    return told_apart(mod.with_functions(renamed))  # a name may be the symbol of another


def values_beside_tensors(functions: Sequence[Interface]) -> list[str]:
    """What a model takes or gives that are no tensors of numbers, in words: in Python they are objects, which nothing else knows."""
    return sorted({_VALUES[key] for f in functions for key in f.info.extra if key in _VALUES})


def with_sizes(func: tir.PrimFunc) -> tir.PrimFunc:
    """A host function with the sizes that its inputs' shapes name as further parameters, as kernels have them."""
    inputs = func.params[: func.attrs["num_inputs"]]
    sizes = {
        d: None
        for p in inputs
        if p in func.buffers
        for d in func.buffers[p].shape
        if type(d) is tir.Var and d not in func.params
    }
    return func.replace(params=(*func.params, *sizes))


def describe(mod: IRModule, name: str, symbol: str, func: tir.PrimFunc) -> Interface:
    """The interface of an exported function. Raises BuildError when a size of it cannot be known to the caller."""
    public = func.attrs.get("global_symbol") or name
    hidden = _hidden(func)
    caches = _caches(func)
    params = [_parameter(func, p, [room for *_, room in caches]) for p in func.params if p not in hidden]
    inputs = params[: func.attrs["num_inputs"]] if func.attrs.get("kind") == "host" else params
    symbols = _symbols(inputs, [*(d for p in params for d in p.dims), *([arena] if (arena := arena_bytes(func)) is not None else [])])
    symbols += [room for *_, room in caches]
    for v in hidden:
        if v not in symbols:
            raise BuildError(
                f"the size {v.name} of {public} does not follow from its parameters",
                where=public,
                hint="it must be a whole dimension of some buffer, or a scalar parameter",
            )
    lookup: Callable[[str], Any] = mod.functions.__getitem__
    if func.attrs.get("kind") == "host":
        count = func.attrs["num_inputs"]
        inputs, outputs = params[:count], params[count:]
    else:
        written, read = written_data(func, lookup), read_data(func, lookup)
        inputs = [p for p in params if p.buffer is None or p.buffer.data not in written]
        outputs = [
            Parameter(p.var, p.buffer, p.name, p.buffer.data in read)
            for p in params
            if p.buffer is not None and p.buffer.data in written
        ]
    names = _unique([v.name for v in symbols])
    texts = dict(zip(symbols, names))
    info = _info(func, public, params, inputs, outputs, texts)
    return Interface(public, func, symbol, inputs, outputs, symbols, info, names, caches)


def _caches(func: tir.PrimFunc) -> list[tuple[int, int, int, tir.Var]]:
    """Outputs that have room behind their rows, which the caller tells."""
    count, buffers, found = func.attrs.get("num_inputs", 0), func.buffers, []
    known = {v for p in func.params[:count] if p in buffers for d in buffers[p].shape for v in free_vars(d)} | set(func.params[:count])
    for i, k, axis in func.attrs.get("caches", ()):
        (room,) = free_vars(buffers[func.params[count + k]].shape[axis]) - known
        found.append((i, k, axis, room))
    return found


def arena_bytes(func: tir.PrimFunc) -> tir.Expr | None:
    """The size of a host function's arena, or None when it has none."""
    if func.attrs.get("kind") != "host":
        return None
    for n in walk(func.body):
        if type(n) is tir.Allocate and n.annotations.get(ARENA):
            return n.buffer.shape[0]
    return None


def _hidden(func: tir.PrimFunc) -> list[tir.Var]:
    """Sizes that lowering has appended: the caller gives them through the shapes."""
    whole = {d for b in func.buffer_params for dim in b.shape for d in free_vars(dim)}
    hidden: list[tir.Var] = []
    for p in reversed(func.params):
        if p in func.buffers or not p.size or p not in whole:
            break
        hidden.append(p)
    return hidden[::-1]


def _parameter(func: tir.PrimFunc, var: tir.Var, rooms: list[tir.Var]) -> Parameter:
    buffer = func.buffers.get(var)
    if buffer is not None and rooms:  # callers see the rows that are used
        an, none = Analyzer(), dict.fromkeys(rooms, tir.index_const(0))
        buffer = buffer.replace(shape=tuple(an.simplify(substitute(d, none)) if free_vars(d) & none.keys() else d for d in buffer.shape))
    if buffer is None and var.dtype.is_handle:
        raise BuildError(
            f"parameter {var.name} is a pointer without a buffer",
            where=func.attrs.get("global_symbol"),
            hint="give its shape with T.match_buffer",
        )
    return Parameter(var, buffer, buffer.name if buffer is not None else var.name)


def _symbols(params: list[Parameter], sizes: list[tir.Expr]) -> list[tir.Var]:
    """Variables that the call solves from these parameters: whole dimensions, and integer scalars that sizes are made of."""
    found: dict[tir.Var, None] = {}
    needed = {v for d in sizes for v in free_vars(d)}
    for p in params:
        for v in (d for d in p.dims if type(d) is tir.Var):
            found[v] = None
        if p.buffer is None and p.var in needed:
            found[p.var] = None
    return list(found)


def _unique(names: list[str]) -> list[str]:
    out: list[str] = []
    for name in names:
        k, unique = 0, name
        while unique in out:
            k += 1
            unique = f"{name}_{k}"
        out.append(unique)
    return out


def dim_text(dim: tir.Expr, names: dict[tir.Var, str]) -> int | str:
    """A size as people read it: its number, or an expression in the names of variables (their own where ``names`` has none)."""
    if type(dim) is tir.IntImm:
        return dim.value
    if type(dim) is tir.Var:
        return names.get(dim, dim.name)
    return _formula(dim, names)


_SIGNS = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*", tir.FloorDiv: "//", tir.FloorMod: "%"}


def _formula(e: tir.Expr, names: dict[tir.Var, str]) -> str:
    sign = _SIGNS.get(type(e))
    if sign is None:
        kind = type(e)
        inner = ", ".join(str(dim_text(getattr(e, f), names)) for f in e._children)
        return f"{kind.__name__.lower()}({inner})"
    parts = [str(dim_text(x, names)) for x in (e.a, e.b)]
    return " ".join((f"({p})" if " " in p and sign != "+" else p) for p in (parts[0], sign, parts[1]))


def _info(
    func: tir.PrimFunc,
    name: str,
    params: list[Parameter],
    inputs: list[Parameter],
    outputs: list[Parameter],
    symbols: dict[tir.Var, str],
) -> FunctionInfo:
    def tensor(p: Parameter, label: str | None = None) -> TensorInfo:
        return TensorInfo(label or p.name, str(p.dtype), tuple(dim_text(d, symbols) for d in p.dims), p.buffer is None)

    attrs = func.attrs
    if attrs.get("kind") == "host":
        in_names, out_names = attrs.get("input_names") or (), attrs.get("output_names") or ()
        arguments = attrs.get("arguments") or tuple(range(len(inputs)))
        result = attrs.get("result")
        if result is None:
            result = list(range(len(outputs))) if attrs.get("returns_tuple") else 0
        return FunctionInfo(
            name,
            "graph",
            tuple(map(tensor, inputs, _padded(in_names, len(inputs)))),
            tuple(map(tensor, outputs, _padded(out_names, len(outputs)))),
            _listed(arguments),
            _listed(result),
            caches=attrs.get("caches", ()),
            extra={k: _listed(attrs[k]) for k in BOUNDARY if k in attrs},
        )
    places = {p.var: i for i, p in enumerate([*inputs, *outputs])}
    return FunctionInfo(
        name,
        "tensor",
        tuple(map(tensor, inputs)),
        tuple(map(tensor, outputs)),
        tuple(places[p.var] for p in params),
        extra={"returns": True} if attrs.get("returns") else {},
    )


def _padded(names: tuple[str, ...], count: int) -> list[str | None]:
    return [names[i] if i < len(names) else None for i in range(count)]


def _listed(template: Any) -> Any:
    """Templates hold lists below the top (attributes hold tuples)."""
    if isinstance(template, tuple | list):
        return type(template)(_inner(t) for t in template)
    return template


def _inner(template: Any) -> Any:
    return [_inner(t) for t in template] if isinstance(template, tuple | list) else template
