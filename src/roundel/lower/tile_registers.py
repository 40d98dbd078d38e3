# SPDX-License-Identifier: Apache-2.0
"""Buffers of scope ``amx.tmm`` become the processor's tile registers, of 16 rows of 64 bytes each (Intel SDM, Intel AMX).

    C = alloc((2, 2, 16, 16), "int32", scope="amx.tmm")            shape the registers
    for i in range(n):                                      ->     for i in range(n):
        tdpbusd(address_of(C[1, 0, 0, 0]), ...)                        tdpbusd(2, ...)
                                                                   release them

A tile's address is its register's number: operands of such an instruction are part of it, so every index of a tile has to be constant by now. The
registers are shaped where a function begins, which is where a thread begins with its share of a loop, and released where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from roundel.ir import IRModule, decl_buffer, on, tir
from roundel.ir.dtype import HANDLE, VOID, DType
from roundel.ir.errors import LowerError
from roundel.ir.visit import statements
from roundel.passes import pass_

from .statements import StatementRewriter
from .tile_operands import BYTES, ROW_BYTES, ROWS, TILE

REGISTERS = 8
PALETTE = 1  # the only one so far: eight registers


@pass_("tile_registers")
def tile_registers(mod: IRModule) -> IRModule:
    """Give every tile a register. Raises LowerError where there are too few, or where it is not known before the run which one is meant."""
    changed = {}
    for name, func in mod.items():
        if isinstance(func, tir.PrimFunc) and any(type(s) is tir.Allocate and s.buffer.scope == TILE for s in statements(func.body)):
            changed[name] = func.replace(body=_shaped(_Numbered().rewrite(func.body)))
    return mod.with_functions(changed)


class _Numbered(StatementRewriter):
    def __init__(self) -> None:
        self.first: dict[tir.Buffer, int] = {}
        self.used = 0

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Stmt:
        if alloc.buffer.scope != TILE:
            return self.generic(alloc)
        before, count = self.used, _count(alloc.buffer)
        if before + count > REGISTERS:
            raise LowerError(f"buffer {alloc.buffer.name} asks for tile registers {before} to {before + count - 1}", where=alloc.span,
                             why=f"there are {REGISTERS}", hint="use smaller blocks of tiles")
        self.first[alloc.buffer], self.used = before, before + count
        body = self.rewrite(alloc.body)
        self.used = before
        return body

    @on(tir.Evaluate)
    def _evaluate(self, stmt: tir.Evaluate) -> tir.Stmt:
        call = stmt.value
        if not isinstance(call, tir.Call) or call.op != "call_llvm_intrin":
            return self.generic(stmt)
        return stmt.replace(value=call.replace(args=tuple(map(self.operand, call.args))))

    def operand(self, e: tir.Expr) -> tir.Expr:
        """A tile's address as its register's number."""
        if not isinstance(e, tir.Call) or e.op != "address_of" or e.args[0].buffer not in self.first:
            return e
        load = e.args[0]
        offset = 0
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            if type(index) is not tir.IntImm:
                raise LowerError(f"index {index.script()} of {load.buffer.name} is not constant, so its tile has no register of its own",
                                 hint="unroll the loop over that index (sch.unroll)")
            offset = offset * extent.value + index.value
        return tir.const(self.first[load.buffer] + offset * _bytes(load.buffer.dtype) // BYTES, "int8")

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        if store.buffer in self.first:
            raise LowerError(f"{store.buffer.name} is in tile registers, which only their own instructions reach", where=store.span)
        return store


def _bytes(dtype: DType) -> int:
    return dtype.storage_bits // 8


def _count(buffer: tir.Buffer) -> int:
    """How many registers hold a buffer. Raises LowerError where it consists of no whole tiles."""
    size = _bytes(buffer.dtype)
    for n in buffer.shape:
        size *= n.value if type(n) is tir.IntImm else 0
    if not size or size % BYTES:
        raise LowerError(f"buffer {buffer.name} of {buffer.dtype} {[n.script() for n in buffer.shape]} consists of no whole tiles",
                         why=f"a tile register has {ROWS} rows of {ROW_BYTES} bytes")
    return size // BYTES


def _shaped(body: tir.Stmt) -> tir.Stmt:
    """The registers shaped before and released behind."""
    words = decl_buffer((8,), "uint64", "tile_shapes")
    stores = [tir.BufferStore(words, tir.const(value, "uint64"), (tir.index_const(k),)) for k, value in enumerate(_words())]
    address = tir.Call("address_of", (tir.BufferLoad(words, (tir.index_const(0),)),), HANDLE)
    return tir.seq(tir.Allocate(words, tir.seq(*stores, _call("llvm.x86.ldtilecfg", address))), body, _call("llvm.x86.tilerelease"))


def _words() -> Iterator[int]:
    """The 64 bytes that say what the registers look like: palette, then bytes of a row of each (16 bits), from byte 48 on its rows (8 bits)."""
    data = bytearray(64)
    data[0] = PALETTE
    for k in range(REGISTERS):
        data[16 + 2 * k : 18 + 2 * k] = ROW_BYTES.to_bytes(2, "little")
        data[48 + k] = ROWS
    return (int.from_bytes(data[k : k + 8], "little") for k in range(0, 64, 8))


def _call(name: str, *operands: tir.Expr) -> tir.Stmt:
    return tir.Evaluate(tir.Call("call_llvm_intrin", (tir.StringImm(name), tir.const(len(operands), "uint32"), *operands), VOID))
