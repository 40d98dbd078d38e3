# SPDX-License-Identifier: Apache-2.0
"""Branches and loops in a host function, their results held by tensors of fixed shape or, where the shape differs, on the heap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, repeat
from typing import Any

from ..ir import graph, tir
from ..ir.dtype import HANDLE, VOID
from ..ir.escape import assertion
from ..ir.visit import free_vars
from .caches import held
from .host_builder import HostBuilder, Shape, flatten, unless_empty
from .host_memory import Entry, Storage, Tensor, address, close, fits, nbytes
from .inplace import keep_in_place

_NONE: Iterator[None] = repeat(None)


class Fixed:
    """Holds a tensor whose shape is known before the branch or loop."""

    def __init__(self, host: HostBuilder, info: graph.TensorInfo, name: str) -> None:
        self.name = name
        self.tensor = host.allocate(info, name)

    def get(self, host: HostBuilder) -> Any:
        """The value, read here."""
        return host.touch(self.tensor)

    def stage(self, host: HostBuilder, value: Any, held: Counter[Storage]) -> Any:
        """First half of an update: the value, in memory that no other update writes. ``held``: how many values each storage holds."""
        source = host.touch(host.tensor(value))
        _same_shape(host, self.tensor.buffer, source.buffer, self.name)
        now = source.storage.settled()
        if held[now] == (now is self.tensor.storage.settled()):
            return source
        copy = host.allocate(graph.TensorInfo(source.buffer.shape, source.buffer.dtype), self.name)
        host.copy(copy.buffer, source.buffer)
        return copy

    def settle(self, host: HostBuilder, staged: Any) -> None:
        """Second half: the value becomes the held one."""
        if staged.storage.settled() is not self.tensor.storage.settled():
            host.copy(host.touch(self.tensor).buffer, host.touch(staged).buffer)


class Grown(Fixed):
    """Holds a cache: each branch has written its rows where they are to be."""

    def __init__(self, cache: Tensor, name: str) -> None:
        self.tensor, self.name = cache, name


class FixedShape(Fixed):
    """Holds a shape or a number, as integers in a tensor."""

    def __init__(self, host: HostBuilder, info: graph.ShapeInfo | graph.PrimInfo, name: str) -> None:
        self.scalar = isinstance(info, graph.PrimInfo)
        super().__init__(host, graph.TensorInfo((), info.dtype) if self.scalar else graph.TensorInfo((info.ndim,), "int64"), name)

    def get(self, host: HostBuilder) -> Any:
        tensor = super().get(host)
        if self.scalar:
            return host.read(tensor, self.name)
        return Shape(host.load_integers(tensor, [f"{self.name}_{k}" for k in range(tensor.buffer.shape[0].value)]))


class Varying:
    """Holds a tensor whose shape only the run can tell: its memory on the heap, its dimensions beside it."""

    def __init__(self, host: HostBuilder, info: graph.TensorInfo, name: str) -> None:
        if info.ndim < 0 or info.dtype is None:
            raise host.error(f"the rank or dtype of {name} is not known", why=f"it is {info!r}", hint="annotate it, as in R.Tensor(ndim=2, dtype=\"float32\")")
        self.name, self.dtype, self.ndim = name, info.dtype, info.ndim
        self.dims = host.allocate(graph.TensorInfo((max(info.ndim, 1),), "int64"), f"{name}_shape")
        self.slot = tir.index_const(host.slots)
        host.slots += 1

    def get(self, host: HostBuilder) -> Any:
        """The value, read here, under sizes of its own."""
        dims = host.touch(self.dims)
        sizes = [tir.Var(f"{self.name}_{k}", tir.index_const(0).dtype, True) for k in range(self.ndim)]
        for k, size in enumerate(sizes):
            value = tir.BufferLoad(dims.buffer, (tir.index_const(k),))
            host.env[size] = size
            host.emit(lambda body, size=size, value=value: tir.Let(size, value, body))
        host.sizes.open(host.entries, sizes, {})
        return host.made(sizes, self.dtype, tir.Call("heap_kept", (self.slot,), HANDLE), self.name)

    def stage(self, host: HostBuilder, value: Any, held: Counter[Storage]) -> Any:
        """First half of an update: a copy on the heap, and its dimensions."""
        source = host.touch(host.tensor(value)).buffer
        for check in fits(source, self.name, host.sizes.late):
            host.emit(check)
        size = host.an.simplify(nbytes(source))
        memory = host.let(f"{self.name}_memory", tir.Call("heap_alloc", (tir.max_(size, 1),), HANDLE))
        host.emit(unless_empty(tir.Evaluate(tir.Call("copy_bytes", (memory, address(source), size), VOID)), source.shape))
        return memory, source.shape

    def settle(self, host: HostBuilder, staged: Any) -> None:
        """Second half: the copy is held, and what was held is freed."""
        memory, shape = staged
        host.emit(tir.Evaluate(tir.Call("heap_keep", (self.slot, memory), VOID)))
        for k, n in enumerate(shape):
            host.emit(tir.BufferStore(host.touch(self.dims).buffer, tir.cast(n, "int64"), (tir.index_const(k),)))


def _same_shape(host: HostBuilder, target: tir.Buffer, source: tir.Buffer, name: str) -> None:
    if target.dtype is not source.dtype or target.ndim != source.ndim:
        raise host.error(f"{name} is {target.dtype} of {target.ndim} dimensions in one place, {source.dtype} of {source.ndim} in another")
    for k, (a, b) in enumerate(zip(target.shape, source.shape, strict=True)):
        if not host.an.prove_equal(host.sizes.resolve(a), host.sizes.resolve(b)):
            host.emit(tir.Assert(tir.eq(a, b), f"dimension {k} of {assertion(name)} is {{1}}, not {{0}}"))


def _holder(host: HostBuilder, info: graph.StructInfo, name: str, grown: Iterator[Tensor | None] = _NONE) -> Any:
    """What holds a value of this struct info; tuples give tuples. ``grown``: the caches that its leaves are."""
    if isinstance(info, graph.TupleInfo):
        return tuple(_holder(host, f, f"{name}_{i}", grown) for i, f in enumerate(info.fields))
    if (cache := next(grown)) is not None:
        return Grown(cache, name)
    if isinstance(info, graph.PrimInfo) or (isinstance(info, graph.ShapeInfo) and info.ndim >= 0):
        return FixedShape(host, info, name)
    if not isinstance(info, graph.TensorInfo):
        raise host.error(f"{name} is not a tensor, a shape or a number", why=f"it is {info!r}")
    known = info.shape is not None and all(v in host.env for d in info.shape for v in free_vars(d))
    return (Fixed if known and info.dtype is not None else Varying)(host, info, name)


def _get(host: HostBuilder, holder: Any) -> Any:
    return tuple(_get(host, h) for h in holder) if isinstance(holder, tuple) else holder.get(host)


def _put(host: HostBuilder, holders: list[Any], values: list[Any]) -> None:
    """Update all at once: no value is overwritten before it is read."""
    if len(holders) != len(values):
        raise host.error(f"{len(holders)} values were expected, {len(values)} are given")
    held = Counter(h.tensor.storage.settled() for h in holders if isinstance(h, Fixed))
    staged = [h.stage(host, v, held) for h, v in zip(holders, values, strict=True)]
    for h, s in zip(holders, staged, strict=True):
        h.settle(host, s)


def _condition(host: HostBuilder, value: Any) -> tir.Expr:
    if isinstance(value, Tensor):
        value = tir.BufferLoad(value.buffer, (tir.index_const(0),) * value.buffer.ndim)
    return value if value.dtype.is_bool else tir.ne(value, tir.const(0, value.dtype))


def branch(host: HostBuilder, value: graph.If, var: graph.Var) -> Any:
    """``if``: each branch leaves its results in the same holders."""
    given = host.use(value.condition)
    condition = _condition(host, given)
    holder = _holder(host, value.sinfo, var.name, chain(held(host, var), _NONE))
    parts = []
    for body, fact in ((value.true_branch, condition), (value.false_branch, tir.logical_not(condition))):
        with host.nested() as entries, nullcontext() if isinstance(given, Tensor) else host.an.constraint(fact):
            result = host.seq(body)
            host.clock += 1
            _adopt(host, flatten(holder), flatten(result))
            _put(host, flatten(holder), flatten(result))
            parts.append(close(entries))
    host.emit(tir.If(condition, *parts))
    host.clock += 1
    return _get(host, holder)


def _adopt(host: HostBuilder, holders: list[Any], values: list[Any]) -> None:
    """What a branch made itself it makes where the result is held, so that nothing is copied."""
    for holder, value in zip(holders, values, strict=False):
        if not isinstance(holder, Fixed) or not isinstance(value, Tensor) or value.offset is not None:
            continue
        made, held = value.storage.settled(), holder.tensor.storage
        inside = made.kind == "arena" and made.depth > held.depth and made.region is held.region
        if inside and host.an.prove_equal(made.nbytes, held.nbytes):
            made.merged = held


def loop(host: HostBuilder, value: graph.While, var: graph.Var) -> Any:
    """``while``: the loop variables live in holders; the condition is evaluated before the loop and at the end of its body."""
    start = host.clock
    holders = [_holder(host, v.sinfo, v.name) for v in value.loop_vars]
    state = [h for v in holders for h in flatten(v)]
    _put(host, state, [v for initial in value.init for v in flatten(host.use(initial))])
    flag = host.allocate(graph.TensorInfo((), "bool"), "go_on")
    host.emit(_test(host, value, holders, flag))
    with host.nested() as entries:
        _enter(host, value, holders)
        result = host.seq(value.body)
        host.clock += 1
        for holder, new in zip(state, flatten(result), strict=False):
            if isinstance(holder, Fixed) and isinstance(new, Tensor):
                keep_in_place(host, holder.tensor.storage.settled(), new)
        _put(host, state, flatten(result))
        entries.append(_test(host, value, holders, flag))
        body = close(entries)
    host.emit(tir.While(tir.BufferLoad(flag.buffer, ()), body))
    host.clock += 1
    _outlive(host, start)
    return tuple(_get(host, h) for h in holders)


def _enter(host: HostBuilder, value: graph.While, holders: list[Any]) -> None:
    host.env.update((v, _get(host, h)) for v, h in zip(value.loop_vars, holders, strict=True))


def _test(host: HostBuilder, value: graph.While, holders: list[Any], flag: Tensor) -> Entry:
    """Evaluate the condition into ``flag``. It is evaluated in two places: the sizes that it finds are forgotten after each."""
    known = set(host.env)
    with host.nested() as entries:
        _enter(host, value, holders)
        result = host.seq(value.condition)
        entries.append(tir.BufferStore(host.touch(flag).buffer, _condition(host, result), ()))
        for var in [v for v in host.env if isinstance(v, tir.Var) and v not in known]:
            del host.env[var]
        return close(entries)


def _outlive(host: HostBuilder, start: int) -> None:
    """What a loop uses and did not make must last until its end: the next iteration needs it again."""
    for t in host.tensors:
        storage = t.storage.settled()
        if storage.first <= start < storage.last:
            storage.last = max(storage.last, host.clock)
