# SPDX-License-Identifier: Apache-2.0
"""What lowering a graph function to a host function is made of: values, tensors, views, copies, checks of shapes.

A value at run time is a ``Tensor`` (a buffer over a storage), a ``Shape`` (index expressions), a scalar expression, or a
Python tuple of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..arith import Analyzer
from ..graph.programs.appends import Flow
from ..ir import graph, tir
from ..ir.constants import ConstData
from ..ir.dataclass import dataclass
from ..ir.dtype import HANDLE, VOID
from ..ir.errors import LowerError
from ..ir.module import IRModule
from ..ir.tir.expr import StringImm
from ..ir.visit import free_vars
from .host_memory import Entry, Region, Sizes, Storage, Tensor, address, declaration, fits, nbytes


@dataclass(eq=False)
class Shape:
    """A shape value: index expressions, and what each is known to be at most."""

    values: tuple[tir.Expr, ...]
    uppers: tuple[tir.Expr, ...] | None = None


@dataclass(eq=False)
class InPlace:
    """A kernel call at step ``clock`` whose result, the last of ``tensors``, may overwrite an operand that is not needed any more.
    ``held``: the position of the operand that is a loop variable and is overwritten."""

    call: tir.Call
    clock: int
    tensors: list[Tensor]
    held: int | None = None


@dataclass(eq=False)
class Cache:
    """Result ``index`` is ``past`` with ``new`` behind it along ``axis``. It lies in ``tensor``, which has ``room`` more rows."""

    past: graph.Var
    axis: int
    index: int
    room: tir.Var
    tensor: Tensor


class HostBuilder:
    """State of lowering one function, and what is built with by those who lower expressions: ``lowering`` holds one of them for each kind of
    binding (``graph.MatchCast``) or bound value (calls, branches, loops), which takes this builder, the value and its variable."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function, lowering: Mapping[type, Callable[..., Any]]) -> None:
        self.mod, self.name, self.func, self.lowering = mod, name, func, lowering
        self.flow = Flow(func)
        self.caches: dict[graph.Var, Cache] = {}
        self.env: dict[Any, Any] = {}
        self.params: list[tuple[tir.Var, tir.Buffer | None]] = []
        self.outputs: list[tir.Buffer] = []
        self.constants: dict[str, Tensor] = {}
        self.data: dict[str, ConstData] = {}
        self.tensors: list[Tensor] = []
        self.prologue: list[Entry] = []
        self.entries: list[Entry] = []
        self.inplace: list[InPlace] = []
        self.clock = self.depth = self.slots = 0
        self.loaded: set[tir.Var] = set()  # integers that were read from tensors
        self.objects = False  # whether a packed function is called with objects
        self.sizes = Sizes(Region())
        self.an = Analyzer()

    def error(self, what: str, why: str = "", hint: str = "") -> LowerError:
        """An error in this function."""
        return LowerError(what, where=self.name, why=why, hint=hint)

    # -- expressions

    def seq(self, expr: graph.SeqExpr) -> Any:
        """Lower the bindings and return the lowered result."""
        for binding in expr.bindings:
            self.clock += 1
            if isinstance(binding, graph.MatchCast):
                self.lowering[graph.MatchCast](self, binding)
            else:
                self.env[binding.var] = self.value(binding.value, binding.var)
        self.clock += 1
        return self.use(expr.body)

    def value(self, value: graph.GraphExpr, var: graph.Var) -> Any:
        """What a bound expression is at run time."""
        lower = self.lowering.get(type(value))
        return lower(self, value, var) if lower else self.use(value)

    # -- steps and scopes

    def emit(self, entry: Entry) -> None:
        """Append a statement, or what wraps everything that follows."""
        self.entries.append(entry)

    def let(self, name: str, value: tir.Expr, size: bool = False) -> tir.Var:
        """A variable that holds ``value`` from here on."""
        var = tir.Var(name, value.dtype, size)
        self.emit(lambda body: tir.Let(var, value, body))
        return var

    @contextmanager
    def nested(self) -> Iterator[list[Entry]]:
        """A scope of its own (a branch, the body of a loop); close the entries that it yields."""
        saved, self.entries = self.entries, []
        self.depth += 1
        yield self.entries
        self.depth -= 1
        self.entries = saved

    # -- tensors

    def allocate(self, info: graph.TensorInfo, name: str) -> Tensor:
        """A new tensor, declared here; a shape that depends on data is checked first."""
        buffer = tir.decl_buffer(info.shape, info.dtype, name)
        for check in fits(buffer, name, self.sizes.late):
            self.emit(check)
        size, region = self.sizes.bound(nbytes(buffer))
        region.claim()
        return self.declare(buffer, Storage(self.an.simplify(size), "arena", self.clock, self.clock, region, depth=self.depth))

    def view(self, source: Tensor, info: graph.TensorInfo, name: str, offset: tir.Expr | None = None) -> Tensor:
        """The same elements (from ``offset`` bytes on) under another shape."""
        start = source.offset if offset is None else offset if source.offset is None else source.offset + offset
        return self.declare(tir.decl_buffer(info.shape, info.dtype or source.buffer.dtype, name), source.storage, start)

    def declare(self, buffer: tir.Buffer, storage: Storage, offset: tir.Expr | None = None) -> Tensor:
        """A buffer over a storage."""
        tensor = Tensor(buffer, storage, offset)
        if storage.home is None:
            storage.home = buffer
        self.emit(declaration(tensor))
        self.tensors.append(tensor)
        return tensor

    def made(self, shape: Sequence[tir.Expr], dtype: Any, memory: tir.Expr, name: str) -> Tensor:
        """A tensor in memory that is made or looked up here."""
        buffer = tir.decl_buffer(tuple(shape), dtype, name)
        return self.declare(buffer, Storage(nbytes(buffer), "heap", self.clock, self.clock, home=buffer, makes=memory))

    def constant(self, value: graph.Constant) -> Tensor:
        """A constant of the pool."""
        key = value.data.key
        if key not in self.constants:
            buffer = tir.decl_buffer(value.data.shape, value.data.dtype, "const")
            load = tir.Call("constant_ptr", (StringImm(key),), HANDLE)
            self.prologue.append(lambda body: tir.Let(buffer.data, load, tir.DeclBuffer(buffer, body)))
            self.data[key] = value.data
            self.constants[key] = Tensor(buffer, Storage(nbytes(buffer), "constant", home=buffer))
        return self.constants[key]

    def touch(self, tensor: Tensor) -> Tensor:
        """Mark the tensor as needed now."""
        storage = tensor.storage.settled()
        storage.last = max(storage.last, self.clock)
        return tensor

    def copy(self, target: tir.Buffer, source: tir.Buffer) -> None:
        """Copy all elements."""
        call = tir.Call("copy_bytes", (address(target), address(source), self.an.simplify(nbytes(target))), VOID)
        self.emit(unless_empty(tir.Evaluate(call), target.shape))

    # -- values

    def use(self, value: Any) -> Any:
        """An operand: marks its storage as used now."""
        if isinstance(value, graph.Var):
            if value not in self.env:
                raise self.error(f"variable {value.name} has no value here")
            return self.touched(self.env[value])
        handler = _OPERANDS.get(type(value))
        if handler is None:
            raise self.error(f"{type(value).__name__} is not an operand")
        return handler(self, value)

    def touched(self, value: Any) -> Any:
        """The value, with its tensors marked as needed now."""
        for t in flatten(value):
            if isinstance(t, Tensor):
                self.touch(t)
        return value

    def field(self, value: graph.TupleGetItem) -> Any:
        """A field of a tuple, of which only this is used."""
        whole = value.tuple_value
        return self.touched(self.env[whole][value.index]) if whole in self.env else self.use(whole)[value.index]

    def tensor(self, value: Any, what: str = "an operand") -> Tensor:
        """A value as a tensor: shapes and scalars are stored."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Shape):
            tensor = self.allocate(graph.TensorInfo((len(value.values),), "int64"), "shape")
            for i, v in enumerate(value.values):
                self.emit(tir.BufferStore(tensor.buffer, tir.cast(v, "int64"), (tir.index_const(i),)))
            return tensor
        if isinstance(value, tir.Expr):
            tensor = self.allocate(graph.TensorInfo((), value.dtype), "scalar")
            self.emit(tir.BufferStore(tensor.buffer, value, ()))
            return tensor
        raise self.error(f"{what} is not a tensor", why=f"it is a {type(value).__name__}")

    def fresh(self, info: graph.StructInfo, name: str) -> Any:
        """New tensors for a result of this struct info."""
        if isinstance(info, graph.TupleInfo):
            return tuple(self.fresh(f, f"{name}_{i}") for i, f in enumerate(info.fields))
        if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
            raise self.error(f"the shape or dtype of {name} is not known", why=f"it is {info!r}", hint="bind it with R.match_cast")
        return self.allocate(info, name)

    # -- sizes

    def bind_sizes(self, values: dict[tir.Var, tir.Expr], uppers: dict[tir.Var, tir.Expr], what: str) -> None:
        """Let variables be these values from here on. What is not an expression in known sizes opens a region."""
        late = []
        for var, value in values.items():
            self.env[var] = var
            self.emit(lambda body, var=var, value=value: tir.Let(var, tir.cast(value, var.dtype), body))
            if value.is_index and not self.sizes.late(value) and not (free_vars(value) & self.loaded):
                self.sizes.exact[var] = self.sizes.resolve(value)
            else:
                late.append(var)
            if var.size and not self.an.prove(tir.ge(value, 0)):
                self.emit(tir.Assert(tir.ge(var, 0), f"{what}: {var.name} is {{0}}, which is negative"))
            if var in uppers:
                self.emit(tir.Assert(tir.le(var, uppers[var]), f"{what}: {var.name} is {{0}}, at most {{1}} is possible"))
        if late:
            self.sizes.open(self.entries, late, uppers)

    def read(self, tensor: Tensor, name: str) -> tir.Var:
        """A variable that holds a scalar tensor's value as it is now."""
        var = self.let(name, tir.BufferLoad(tensor.buffer, ()))
        self.loaded.add(var)
        return var

    def load_integers(self, tensor: Tensor, names: Sequence[str]) -> tuple[tir.Var, ...]:
        """Variables that hold the elements of a one-dimensional integer tensor, as they are now."""
        out = []
        for i, name in enumerate(names):
            out.append(self.let(name, tir.cast(tir.BufferLoad(tensor.buffer, (tir.index_const(i),)), "int64")))
        self.loaded.update(out)
        return tuple(out)


def flatten(value: Any) -> list[Any]:
    """The leaves of nested tuples."""
    return [t for v in value for t in flatten(v)] if isinstance(value, tuple) else [value]


def unless_empty(stmt: tir.Stmt, *shapes: tuple[tir.Expr, ...]) -> tir.Stmt:
    """The statement, unless all outputs are empty: kernels may assume extents >= 1 for what they compute at all."""
    sizes = [Analyzer().simplify(tir.product_of(s)) for s in shapes]
    if not sizes or any(isinstance(n, tir.IntImm) and n.value > 0 for n in sizes):
        return stmt
    conditions = [tir.gt(n, 0) for n in sizes if not isinstance(n, tir.IntImm)]
    return tir.If(tir.logical_or(*dict.fromkeys(conditions)), stmt) if conditions else tir.Seq(())


_OPERANDS: dict[type, Any] = {
    graph.Constant: HostBuilder.constant,
    graph.Tuple: lambda self, value: tuple(self.use(f) for f in value.fields),
    graph.TupleGetItem: HostBuilder.field,
    graph.ShapeExpr: lambda self, value: Shape(value.values),
    graph.PrimValue: lambda self, value: value.value,
    graph.StringValue: lambda self, value: value.value,
    graph.DTypeValue: lambda self, value: value.value,
}
