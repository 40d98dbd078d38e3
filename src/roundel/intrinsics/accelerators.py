# SPDX-License-Identifier: Apache-2.0
"""Accelerators: chips beside the processor, with memories of their own that DMA engines fill and that instructions compute on.

A user's package describes one by a few calls, and the rule `accelerated` (strategy/product) maps products of the types that it multiplies onto it:

    chip = Accelerator("mychip", source=C_TEXT, begin="my_begin", finish="my_finish", signal="my_signal", wait="my_wait", semaphores=16)
    chip.memory("mychip.left", 32768)
    chip.loads("mychip.left", "my_load", engine="dma", bytes_per_cycle=16)
    chip.computes("my_product", description, engine="array", cycles=16)
    accelerators.register(chip)
    rd.compile(model, target=Target("host -device=mychip"))

Instructions are given to *engines*, each of which runs its own in the order in which they were given, beside the other engines. Between engines there
are counting semaphores: what an engine writes and another reads is signalled by the one and waited for by the other (``lower/engines``). A chip whose
engines all run one after another has one engine, and needs none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod

from roundel import te
from roundel.ir import tir
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import RoundelError
from roundel.ir.visit import statements, substitute, walk
from roundel.script import tir as T

from .chips import ATTRIBUTE, is_scope, of_target, register, unregister
from .registry import Cost, TensorIntrin


@dataclass(frozen=True)
class Memory:
    """A scratchpad of ``nbytes``, the scope of buffers that lie in it. Each buffer begins at a multiple of ``alignment`` bytes. With ``banks`` the
    memory consists of so many equal parts, and buffers that are used together come into different ones where they fit."""

    scope: str
    nbytes: int
    alignment: int = 1
    banks: int = 1


@dataclass(frozen=True)
class Operation:
    """A C function that gives an instruction to an engine. It takes ``start`` cycles and one for each ``rate`` bytes that it moves."""

    function: str
    engine: str
    start: float = 0.0
    rate: float = float("inf")

    def cycles(self, nbytes: float) -> float:
        """Of an instruction for so many bytes."""
        return self.start + nbytes / self.rate


class Accelerator:
    """A chip that C functions drive.

    ``source`` is C text that defines them. ``int32_t begin(void)`` comes before the first instruction of a kernel and ``int32_t finish(void)`` after the
    last; it waits until the chip has done everything. Where one returns another number than 0 the run fails with it, or with what it means in ``statuses``.
    ``void share(const void *memory, int64_t bytes)``, if there is one, is told the memory that a kernel's DMA reads and writes, before its first
    instruction. ``void signal(int64_t from, int64_t to, int64_t semaphore)`` has the engine ``from`` add one to a semaphore when everything that it was
    given is done, and ``wait`` has the engine ``to`` wait for it and take one off; engines have the numbers of their order in ``engines``. ``semaphores``
    is how many there are for each pair of engines.
    """

    def __init__(self, name: str, *, source: str, begin: str, finish: str, engines: Sequence[str], signal: str = "", wait: str = "", share: str = "",
                 semaphores: int = 0, statuses: Mapping[int, str] | None = None) -> None:
        """Raises RoundelError for names that are none, and for several engines without a way to make them wait for each other."""
        if not name.isidentifier():
            raise RoundelError(f"an accelerator cannot be called {name!r}", hint="a name of letters, digits and underscores")
        if len(engines) > 1 and not (signal and wait and semaphores):
            raise RoundelError(f"the engines of {name} run beside each other", why="nothing says how one waits for another",
                               hint="give signal=, wait= and semaphores=, or one engine if they do not")
        self.name, self.source, self.engines = name, source, tuple(engines)
        self.begin, self.finish, self.signal, self.wait, self.share, self.semaphores = begin, finish, signal, wait, share, semaphores
        self.statuses = dict(statuses or {})
        self.memories: dict[str, Memory] = {}
        self.moves: dict[tuple[str, str], Operation] = {}
        self.products: list[TensorIntrin] = []
        self.operations: dict[str, Operation] = {}

    def memory(self, scope: str, nbytes: int, alignment: int = 1, banks: int = 1) -> Memory:
        """A scratchpad (`Memory`). Its scope's name begins with the chip's and a dot. Raises RoundelError otherwise, and for sizes that cannot be."""
        if not scope.startswith(f"{self.name}.") or min(nbytes, alignment, banks) < 1 or nbytes % banks:
            raise RoundelError(f"{self.name} cannot have a memory {scope!r} of {nbytes} bytes in {banks} banks, aligned to {alignment}",
                               hint=f"a scope such as {self.name}.data, and a size that the banks divide")
        self.memories[scope] = Memory(scope, nbytes, alignment, banks)
        return self.memories[scope]

    def loads(self, scope: str, function: str, *, engine: str, bytes_per_cycle: float = float("inf"), start: float = 0.0) -> None:
        """DMA into a memory: ``void function(int64_t to, const void *from, int64_t bytes)``; addresses in memories are bytes from their beginning."""
        self._moves("load", scope, Operation(function, self._engine(engine), start, bytes_per_cycle))

    def stores(self, scope: str, function: str, *, engine: str, bytes_per_cycle: float = float("inf"), start: float = 0.0) -> None:
        """DMA out of a memory: ``void function(void *to, int64_t from, int64_t bytes)``."""
        self._moves("store", scope, Operation(function, self._engine(engine), start, bytes_per_cycle))

    def clears(self, scope: str, function: str, *, engine: str, bytes_per_cycle: float = float("inf"), start: float = 0.0) -> None:
        """Sets bytes of a memory to zero: ``void function(int64_t at, int64_t bytes)``."""
        self._moves("clear", scope, Operation(function, self._engine(engine), start, bytes_per_cycle))

    def computes(self, function: str, description: tir.PrimFunc, *, engine: str, cycles: float) -> TensorIntrin:
        """An instruction: ``void function(int64_t a, int64_t b, ...)`` gets the addresses of the description's parameters, in their order. Each of these
        lies in one of the chip's memories, its elements one after another in the order of its indices. Raises RoundelError where one does not."""
        for b in description.buffer_params:
            if b.scope not in self.memories:
                raise RoundelError(f"operand {b.name} of {function} is in memory {b.scope!r}, which {self.name} does not have",
                                   hint=f"its memories are {', '.join(self.memories) or 'none so far'}")
        if any(isinstance(n, tir.Block) and n.init is not None for n in statements(description.body)):
            raise RoundelError(f"the description of {function} sets its result before it adds to it", hint="describe C[...] = C[...] + A[...] * B[...] alone; "
                               "chip.clears says how sums are set to zero")
        operation = Operation(function, self._engine(engine), cycles)
        made = TensorIntrin.register(f"{self.name}.{function}", description, _issuing(description, operation), override=True, needs=(self.name,),
                                     cost=Cost(latency=cycles), storage={b.name: b.scope for b in description.buffer_params}, has_effects=True)
        self.products.append(made)
        self.operations[made.name] = operation
        return made

    def move(self, kind: str, scope: str, dtype: str, shape: Sequence[int]) -> TensorIntrin:
        """The instruction that loads, stores or clears a block of this shape, all of whose elements follow each other in both memories. Raises RoundelError
        where the chip has none."""
        operation = self.moves.get((kind, scope))
        if operation is None:
            raise RoundelError(f"{self.name} has no instruction to {kind} {scope}", hint=f"describe it: chip.{kind}s({scope!r}, ...)")
        name = f"{scope}.{kind}_{dtype}_{'x'.join(map(str, shape))}"
        if name in TensorIntrin.names():
            return TensorIntrin.get(name)
        source = te.placeholder(tuple(shape), dtype, "S")
        made = te.compute(tuple(shape), (lambda *i: tir.const(0, dtype)) if kind == "clear" else (lambda *i: source[i]), "D")
        inside = {"load": "D", "store": "S", "clear": "D"}[kind]
        desc = _in_scope(te.create_prim_func([made] if kind == "clear" else [source, made]), {inside: scope})
        impl = _issuing(desc, operation, outputs_first=True, numbers=(_nbytes(desc.buffer_params[0]),))
        return TensorIntrin.register(name, desc, impl, needs=(self.name,), storage={inside: scope}, has_effects=True)

    def facts(self) -> str:
        """What lowering has to know, as the attribute of a program."""
        memories = {m.scope: [m.nbytes, m.alignment, m.banks] for m in self.memories.values()}
        return json.dumps({"name": self.name, "begin": self.begin, "finish": self.finish, "signal": self.signal, "wait": self.wait, "share": self.share,
                           "semaphores": self.semaphores, "engines": self.engines, "memories": memories, "statuses": self.statuses})

    def _engine(self, name: str) -> str:
        if name not in self.engines:
            raise RoundelError(f"{self.name} has no engine {name!r}", hint=f"it has {', '.join(self.engines)}")
        return name

    def _moves(self, kind: str, scope: str, operation: Operation) -> None:
        if scope not in self.memories:
            raise RoundelError(f"{self.name} has no memory {scope!r}", hint=f"it has {', '.join(self.memories) or 'none so far'}")
        self.moves[kind, scope] = operation


def _nbytes(buffer: tir.Buffer) -> int:
    return prod(n.value for n in buffer.shape) * buffer.dtype.storage_bits // 8  # type: ignore[attr-defined]


def _in_scope(func: tir.PrimFunc, scopes: Mapping[str, str]) -> tir.PrimFunc:
    """A program some of whose parameters are in other memories."""
    table = {b: b.replace(scope=scopes[b.name], data=tir.Var(b.data.name, b.data.dtype)) for b in func.buffer_params if b.name in scopes}
    pairs = tuple((p, table.get(b, b)) for p, b in func.buffer_map)
    return func.replace(body=substitute(func.body, {}, table), buffer_map=pairs)


def _issuing(desc: tir.PrimFunc, operation: Operation, outputs_first: bool = False, numbers: Sequence[int] = ()) -> tir.PrimFunc:
    """The implementation of a description by one call: the addresses of its parameters, and numbers."""
    made = {b: tir.decl_buffer(b.shape, b.dtype, b.name, scope=b.scope) for b in desc.buffer_params}
    root = desc.root_block
    assert root is not None and isinstance(desc.body, tir.BlockRealize)
    written = {n.buffer for n in statements(root.body) if isinstance(n, tir.BufferStore)}
    loaded = {n.buffer for n in walk(root.body) if isinstance(n, tir.BufferLoad)}
    order = sorted(desc.buffer_params, key=lambda b: b not in written) if outputs_first else desc.buffer_params
    roles = ",".join(f"{'r' * (b in loaded)}{'w' * (b in written)}{_nbytes(b) * 8 // b.dtype.storage_bits}" for b in order)
    addresses = [T.address_of(made[b][(0,) * b.ndim]) for b in order]
    body = tir.Evaluate(T.call_engine("void", operation.function, operation.engine, roles, *addresses, *(T.int64(n) for n in numbers)))
    whole = lambda chosen: tuple(tir.BufferRegion(made[b], tuple(tir.Range.of(n) for n in b.shape)) for b in desc.buffer_params if b in chosen)
    block = tir.Block((), whole(loaded), whole(written), root.name, body)
    return tir.PrimFunc(desc.params, desc.body.replace(block=block), tuple((p, made[b]) for p, b in desc.buffer_map))


__all__ = ["ATTRIBUTE", "Accelerator", "Memory", "Operation", "is_scope", "of_target", "register", "unregister"]
