# SPDX-License-Identifier: Apache-2.0
"""What instructions on tile registers, and those of accelerators, do with their operands, which are addresses: the elements that each reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from roundel.ir import Var, tir
from roundel.ir.dataclass import dataclass

TILE = "amx.tmm"        # the scope of buffers that are tile registers
ROWS, ROW_BYTES = 16, 64  # of a register
BYTES = ROWS * ROW_BYTES

_ROLES = {"tileload": ("w", "r"), "tilezero": ("w",), "tilestore": ("r", "w"), "tdp": ("rw", "r", "r")}


@dataclass(frozen=True)
class TileOperand:
    """An operand: ``first`` is the element whose address it is. What it touches are the elements ``indices`` while ``loops`` run."""

    first: tir.BufferLoad
    indices: tuple[tir.Expr, ...]
    loops: tuple[tir.For, ...]
    reads: bool
    writes: bool


def tile_operands(call: tir.Call) -> list[TileOperand] | None:
    """The operands that are tiles, in registers or in memory; None where the call is of no such instruction, or touches memory that is no whole tile."""
    if call.op == "call_engine":
        return _of_engine(call)
    if call.op != "call_llvm_intrin" or type(call.args[0]) is not tir.StringImm:
        return None
    roles = next((r for start, r in _ROLES.items() if call.args[0].value.startswith(f"llvm.x86.{start}")), None)
    if roles is None:
        return None
    addresses = [a for a in call.args[1:] if isinstance(a, tir.Call) and a.op == "address_of"]
    if len(addresses) != len(roles) or not all(_is_whole(a.args[0].buffer, call.args[-1]) for a in addresses):
        return None
    return [_operand(a.args[0], "r" in role, "w" in role) for a, role in zip(addresses, roles, strict=True)]


def _of_engine(call: tir.Call) -> list[TileOperand] | None:
    """The operands of an instruction of an accelerator, whose roles say how many elements each of them touches."""
    roles, addresses = roles_of(call), addresses_of(call)
    if len(addresses) != len(roles) or any(a.buffer.strides for a in addresses):
        return None
    return [_operand(a, "r" in role, "w" in role, count * a.buffer.dtype.storage_bits // 8) for a, (role, count) in zip(addresses, roles, strict=True)]


def roles_of(call: tir.Call) -> list[tuple[str, int]]:
    """Of an instruction of an accelerator: for each address whether it is read from and written to, and how many elements."""
    return [(part.rstrip("0123456789"), int(part.lstrip("rw"))) for part in call.args[2].value.split(",")]


def addresses_of(call: tir.Call) -> list[tir.BufferLoad]:
    """The elements whose addresses an instruction of an accelerator gets."""
    return [a.args[0] for a in call.args[3:] if isinstance(a, tir.Call) and a.op == "address_of"]


def _is_whole(buffer: tir.Buffer, apart: tir.Expr) -> bool:
    """Whether rows follow each other, ``apart`` bytes from one to the next where they are in memory."""
    return buffer.scope == TILE or (type(apart) is tir.IntImm and apart.value == ROW_BYTES and not buffer.strides)


def _operand(first: tir.BufferLoad, reads: bool, writes: bool, nbytes: int = BYTES) -> TileOperand:
    loops = tuple(_loops(first, nbytes))
    count = len(loops)
    indices = (*first.indices[: first.buffer.ndim - count], *(i + x.loop_var for i, x in zip(first.indices[first.buffer.ndim - count :], loops, strict=True)))
    return TileOperand(first, indices, loops, reads, writes)


def _loops(first: tir.BufferLoad, nbytes: int) -> Iterator[tir.For]:
    """Loops over the last dimensions, which together are so many bytes."""
    size, extents = first.buffer.dtype.storage_bits // 8, []
    for n in reversed(first.buffer.shape):
        if size >= nbytes or type(n) is not tir.IntImm:
            break
        extents.append(tir.const(min(n.value, nbytes // size), n.dtype))
        size *= n.value
    for n in reversed(extents):
        yield tir.For(Var("within", n.dtype), tir.const(0, n.dtype), n, tir.ForKind.SERIAL, tir.Seq(()))
