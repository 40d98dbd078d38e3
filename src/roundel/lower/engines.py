# SPDX-License-Identifier: Apache-2.0
"""Programs for an accelerator: its buffers get places in its memories, and its engines wait for each other.

    for k in range(n):                            begin(); signal(array -> dma); signal(array -> dma)
        a = alloc(256, "uint8", scope="chip.a")   for k in range(n):
        load(a, ...)        # engine dma     ->       wait(array -> dma)                  until the copy is free
        product(c, a, b)    # engine array            load(a_place + k % 2 * 256, ...)
                                                      signal(dma -> array); wait(dma -> array)
                                                      product(...)
                                                      signal(array -> dma)
                                                  wait(array -> dma); wait(array -> dma); finish()

Each engine runs its own instructions in the order in which they are given. Of a buffer in a loop there are two copies, used in turn, where the memory
holds them: an engine then writes one while another one reads the other. The order of engines on a buffer is kept by a semaphore for each place at which one
follows another, and by one that says that a copy is free again; no two places share one, so each counts what it stands for and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from roundel.intrinsics.chips import ATTRIBUTE
from roundel.ir import Var, on, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.dtype import HANDLE, INT32, INT64, VOID
from roundel.ir.errors import LowerError
from roundel.ir.escape import assertion
from roundel.ir.visit import statements

from .kernel_pass import kernel_pass
from .statements import StatementRewriter
from .tile_operands import addresses_of, roles_of

UNBROKEN = "unbroken"  # the attribute of statements inside of which no run ends: the chip would be left to nobody
COPIES = 2  # of a buffer in a loop, so that one engine fills one while another reads the other
_SCOPES = (tir.Let, tir.AttrStmt, tir.Allocate, tir.DeclBuffer)


@kernel_pass("engines")
def engines(func: tir.PrimFunc) -> tir.PrimFunc:
    """Instructions of an accelerator as calls of C functions. Raises LowerError where its memories are too small, or where it cannot be told which of the
    engines comes first."""
    if ATTRIBUTE not in func.attrs or not _instructions(func.body):
        return func
    chip = json.loads(func.attrs[ATTRIBUTE])
    return func.replace(body=_Region(chip).rewrite(func.body), attrs=func.attrs.without(ATTRIBUTE))


def _instructions(stmt: tir.Stmt) -> list[tir.Call]:
    return [s.value for s in statements(stmt) if type(s) is tir.Evaluate and isinstance(s.value, tir.Call) and s.value.op == "call_engine"]


class _Region(StatementRewriter):
    """Finds the smallest statement that has all instructions."""

    def __init__(self, chip: Mapping[str, Any]) -> None:
        self.chip = chip

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, _SCOPES) and not _is_inside(self.chip, node):
            return node.replace(body=self.rewrite(node.body))
        if isinstance(node, tir.Seq):
            users = [k for k, s in enumerate(node.stmts) if _instructions(s)]
            first, last = users[0], users[-1]
            if (first, last) != (0, len(node.stmts) - 1):
                return tir.seq(*node.stmts[:first], self.rewrite(tir.seq(*node.stmts[first : last + 1])), *node.stmts[last + 1 :])
        return self.run(node)

    def run(self, region: tir.Stmt) -> tir.Stmt:
        """The region with everything around it that the chip needs."""
        chip = self.chip
        others = [s for s in statements(region) if type(s) is tir.BufferStore or (type(s) is tir.For and s.kind is tir.ForKind.PARALLEL)]
        if others:
            raise LowerError(f"the processor works between instructions of {chip['name']}", where=getattr(others[0], "span", None), why=others[0].script(),
                             hint="compute it before or after all of them")
        outside = _outside(chip, region)
        places = _places(chip, region)
        order = _Order(chip, places)
        body = _Addressed(chip, places).rewrite(order.rewrite(region))
        shared = [_call(chip["share"], _address(b), _nbytes(b)) for b in outside] if chip["share"] else []
        whole = tir.seq(*shared, *order.before, body, *order.after)
        return tir.seq(_checked(chip, "begin"), tir.AttrStmt(None, UNBROKEN, tir.const(1, INT64), whole), _checked(chip, "finish"))


def _is_inside(chip: Mapping[str, Any], stmt: tir.Stmt) -> bool:
    return type(stmt) is tir.Allocate and stmt.buffer.scope in chip["memories"]


def _outside(chip: Mapping[str, Any], region: tir.Stmt) -> list[tir.Buffer]:
    """The buffers in the processor's memory that DMA touches. Raises LowerError for one that it reads and writes."""
    found: dict[tir.Buffer, set[str]] = {}
    for call in _instructions(region):
        for load, (role, _) in zip(addresses_of(call), roles_of(call), strict=True):
            if load.buffer.scope not in chip["memories"]:
                found.setdefault(load.buffer, set()).update(role)
    for b, roles in found.items():
        if len(roles) > 1:
            raise LowerError(f"{chip['name']} stores {b.name} and loads it again", why="nothing makes the one wait for the other", hint="use two programs")
    return list(found)


class _Order(StatementRewriter):
    """Makes engines wait for each other; ``before`` and ``after`` are what stands around everything."""

    def __init__(self, chip: Mapping[str, Any], places: Mapping[tir.Buffer, tuple[int, ...]]) -> None:
        self.chip, self.places, self.loops = chip, places, 0
        self.before: list[tir.Stmt] = []
        self.after: list[tir.Stmt] = []
        self.used: dict[tuple[str, str], int] = {}

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        self.loops += 1
        made = self.generic(loop)
        self.loops -= 1
        return made

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        if not _is_inside(self.chip, alloc):
            return self.generic(alloc)
        found = self.chained(alloc.body, alloc.buffer)
        body = alloc.body
        if found is not None:
            first, last, body = found
            if first != last and self.loops:
                freed = self.semaphore(last, first)
                body = tir.seq(freed.wait, body, freed.signal)
                copies = len(self.places[alloc.buffer])
                self.before += [freed.signal] * copies
                self.after += [freed.wait] * copies
        return alloc.replace(body=self.rewrite(body))

    def semaphore(self, source: str, target: str) -> _Semaphore:
        """A new one. Raises LowerError where the chip has no more."""
        number = self.used[source, target] = self.used.get((source, target), -1) + 1
        if number >= self.chip["semaphores"]:
            raise LowerError(f"{self.chip['name']} has too few semaphores", why=f"more than {number} from {source} to {target} are needed")
        numbers = [*map(self.chip["engines"].index, (source, target)), number]
        return _Semaphore(*(_call(self.chip[name], *numbers) for name in ("signal", "wait")))

    def chained(self, stmt: tir.Stmt, buffer: tir.Buffer) -> tuple[str, str, tir.Stmt] | None:
        """The first and the last engine that touch a buffer, and the statement in which each waits for the one before it; None where none does."""
        if isinstance(stmt, _SCOPES):
            found = self.chained(stmt.body, buffer)
            return found and (found[0], found[1], stmt.replace(body=found[2]))
        if isinstance(stmt, tir.Seq):
            return self.in_turn(stmt, buffer)
        if isinstance(stmt, tir.For | tir.If):
            return self.closed(stmt, buffer)
        touching = [c for c in _instructions(stmt) if any(a.buffer is buffer for a in addresses_of(c))]
        return (touching[0].args[1].value, touching[0].args[1].value, stmt) if touching else None

    def in_turn(self, stmt: tir.Seq, buffer: tir.Buffer) -> tuple[str, str, tir.Stmt] | None:
        """Of statements one after another."""
        first = last = None
        out: list[tir.Stmt] = []
        at = 0
        for s in stmt.stmts:
            found = self.chained(s, buffer)
            if found is None:
                out.append(s)
                continue
            if last is not None and last != found[0]:
                link = self.semaphore(last, found[0])
                out[at:at] = [link.signal]  # right behind the statement that it is about
                out.append(link.wait)
            first, last = first or found[0], found[1]
            out.append(found[2])
            at = len(out)
        return None if first is None or last is None else (first, last, tir.seq(*out))

    def closed(self, stmt: tir.For | tir.If, buffer: tir.Buffer) -> tuple[str, str, tir.Stmt] | None:
        """Of what runs several times, or not at all: the engine that begins waits at the end for the one that ended, so that from outside it is one."""
        parts = {"body": stmt.body} if isinstance(stmt, tir.For) else {"then_case": stmt.then_case, "else_case": stmt.else_case}
        ends, made = set(), {}
        for name, part in parts.items():
            found = None if part is None else self.chained(part, buffer)
            if found is None:
                continue
            first, last, body = found
            if first != last:
                link = self.semaphore(last, first)
                body = tir.seq(body, link.signal, link.wait)
            ends.add(first)
            made[name] = body
        if len(ends) > 1:
            raise LowerError(f"{buffer.name} is touched by {' or '.join(sorted(ends))} first", why="so it cannot be told who waits for whom")
        return (first, first, stmt.replace(**made)) if made else None


@dataclass(frozen=True)
class _Semaphore:
    signal: tir.Stmt
    wait: tir.Stmt


def _places(chip: Mapping[str, Any], region: tir.Stmt) -> dict[tir.Buffer, tuple[int, ...]]:
    """Where the copies of each buffer begin, in bytes. Raises LowerError where a memory does not hold one copy of each."""
    made: dict[str, list[tuple[tir.Buffer, bool]]] = {}
    for buffer, looped in _allocated(chip, region, False):
        made.setdefault(buffer.scope, []).append((buffer, looped))
    out: dict[tir.Buffer, tuple[int, ...]] = {}
    for scope, found in made.items():
        places = _packed(chip["memories"][scope], found, COPIES) or _packed(chip["memories"][scope], found, 1)
        if places is None:
            sizes = ", ".join(f"{b.name} {_nbytes(b):,}" for b, _ in found)
            raise LowerError(f"the memory {scope} is too small", why=f"it has {chip['memories'][scope][0]:,} bytes, and buffers in it {sizes}",
                             hint="use smaller blocks")
        out |= places
    return out


def _allocated(chip: Mapping[str, Any], stmt: tir.Stmt, looped: bool) -> Iterator[tuple[tir.Buffer, bool]]:
    """The buffers in a chip's memories, and whether each is in a loop."""
    if type(stmt) is tir.Allocate and _is_inside(chip, stmt):
        yield stmt.buffer, looped
    inside = looped or type(stmt) is tir.For
    for child in stmt.stmts if isinstance(stmt, tir.Seq) else [getattr(stmt, f, None) for f in ("body", "then_case", "else_case")]:
        if child is not None:
            yield from _allocated(chip, child, inside)


def _packed(memory: list[int], found: list[tuple[tir.Buffer, bool]], copies: int) -> dict[tir.Buffer, tuple[int, ...]] | None:
    """Places one after another, each copy in the bank that has most room, or over several where one is too small; None where they do not fit."""
    nbytes, alignment, banks = memory
    size = nbytes // banks
    ends = [k * size for k in range(banks)]  # of what lies in each bank so far
    out = {}
    for buffer, looped in found:
        places = []
        for _ in range(copies if looped else 1):
            room = lambda k: (k + 1) * size - _aligned(ends[k], alignment)
            bank = max(range(banks), key=room)
            need, start = _nbytes(buffer), _aligned(ends[bank], alignment)
            if room(bank) < need:
                if banks == 1:
                    return None
                return _packed([nbytes, alignment, 1], found, copies)
            ends[bank] = start + need
            places.append(start)
        out[buffer] = tuple(places)
    return out


def _aligned(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment


class _Addressed(StatementRewriter):
    """Calls of C functions with addresses as bytes from the beginning of a memory; allocations disappear."""

    def __init__(self, chip: Mapping[str, Any], places: Mapping[tir.Buffer, tuple[int, ...]]) -> None:
        self.chip, self.places = chip, places
        self.loops: tuple[tir.For, ...] = ()
        self.turn: dict[tir.Buffer, tir.Expr] = {}

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        outside, self.loops = self.loops, (*self.loops, loop)
        made = self.generic(loop)
        self.loops = outside
        return made

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        places = self.places.get(alloc.buffer)
        if places is None:
            return self.generic(alloc)
        place: tir.Expr = tir.const(places[0], INT64)
        if len(places) > 1:
            turn: tir.Expr = tir.index_const(0)
            for loop in self.loops:
                turn = turn * loop.extent + (loop.loop_var - loop.min)
            place = place + tir.cast(tir.floormod(turn, len(places)), INT64) * (places[1] - places[0])
        self.turn[alloc.buffer] = place
        return self.rewrite(alloc.body)

    @on(tir.Evaluate)
    def _evaluate(self, stmt: tir.Evaluate) -> tir.Stmt:
        call = stmt.value
        if not isinstance(call, tir.Call) or call.op != "call_engine":
            return stmt
        return _call(call.args[0].value, *map(self.operand, call.args[3:]))

    def operand(self, e: tir.Expr) -> tir.Expr:
        """The address of an element in a memory of the chip as a number."""
        if not isinstance(e, tir.Call) or e.op != "address_of" or e.args[0].buffer not in self.turn:
            return e
        load = e.args[0]
        at: tir.Expr = tir.index_const(0)
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            at = at * extent + index
        return self.turn[load.buffer] + tir.cast(at, INT64) * (load.buffer.dtype.storage_bits // 8)


def _nbytes(buffer: tir.Buffer) -> Any:
    """A number, or of a buffer whose size the run tells an expression."""
    size = tir.product_of(buffer.shape)
    each = buffer.dtype.storage_bits // 8
    return size.value * each if type(size) is tir.IntImm else size * each


def _address(buffer: tir.Buffer) -> tir.Expr:
    return tir.Call("address_of", (tir.BufferLoad(buffer, (tir.index_const(0),) * buffer.ndim),), HANDLE)


def _call(name: str, *operands: Any) -> tir.Stmt:
    given = [tir.cast(tir.as_index(x) if not isinstance(x, tir.Expr) else x, INT64) if not isinstance(x, tir.Call) else x for x in operands]
    return tir.Evaluate(tir.Call("call_extern", (tir.StringImm(name), *given), VOID))


def _checked(chip: Mapping[str, Any], name: str) -> tir.Stmt:
    """A call whose status fails the run where it is not 0."""
    status = Var("status", INT32)
    said = [tir.Assert(tir.ne(status, tir.const(int(code), INT32)), assertion(f"the accelerator {chip['name']}: {meaning}"))
            for code, meaning in chip["statuses"].items()]
    other = tir.Assert(tir.eq(status, tir.const(0, INT32)), f"the accelerator {chip['name']} failed: status {{0}}", None, (status,))
    call = tir.Call("call_extern", (tir.StringImm(chip[name]),), INT32)
    return tir.Let(status, call, tir.If(tir.ne(status, tir.const(0, INT32)), tir.seq(*said, other)))
