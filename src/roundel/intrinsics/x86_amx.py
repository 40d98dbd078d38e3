# SPDX-License-Identifier: Apache-2.0
"""Products of tiles (AMX-INT8 and AMX-BF16; Intel SDM, TDPBSSD and TDPBF16PS): 16 x 16 sums of 64 bytes of each row of A and column of B.

A core has eight tile registers of 16 rows of 64 bytes, buffers of scope ``amx.tmm`` here. In C a row has 16 sums of 32 bits. In A it has 16 groups of
elements that are summed together (four of bytes, two of 16 bits), and in B one such group for each of 16 columns. The registers are shaped before
they are used and released afterwards (``lower/tile_registers``), which Linux allows once it was asked (csrc/cpu.c).

Sums of bfloat16 numbers are rounded to the nearest, and numbers too small to be normal are zeros, as those of VDPBF16PS are (``x86_bf16``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from roundel import te
from roundel.interp.llvm_meanings import Place, define_action
from roundel.ir import Var, decl_buffer, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.visit import statements, walk
from roundel.script import tir as T

from .dots import SHORT
from .registry import Cost, TensorIntrin
from .x86_bf16 import flushed

TILE = "amx.tmm"
ROWS, ROW_BYTES = 16, 64
REGISTERS = 8
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SUMS = ROWS  # in a row of 32-bit numbers
CYCLES = 16  # that a core takes for one product of tiles, in which it could issue two multiply-adds of vectors each

Held = Place | int
"""A tile: the memory that stands for it as long as it is a buffer, or its register's number."""


class _Registers(threading.local):
    """The tile registers of a thread of the interpreter."""

    def __init__(self) -> None:
        self.held: dict[int, np.ndarray] = {}


_registers = _Registers()


def _elements(tile: Held, dtype: np.dtype, width: int) -> np.ndarray:
    """The rows of a tile, of ``width`` elements each."""
    if isinstance(tile, Place):
        return tile.elements[: ROWS * width].reshape(ROWS, width)
    found = _registers.held.get(tile)
    if found is None or found.dtype != dtype:
        found = _registers.held[tile] = np.zeros((ROWS, width), dtype)
    return found


def _rows(memory: Place, stride: int) -> np.ndarray:
    """Rows of 64 bytes in memory, ``stride`` bytes apart."""
    step, width = stride // memory.element_bytes, ROW_BYTES // memory.element_bytes
    size = memory.elements.itemsize
    return np.lib.stride_tricks.as_strided(memory.elements, (ROWS, width), (step * size, size))


def _load(tile: Held, memory: Place, stride: int) -> None:
    rows = _rows(memory, stride)
    _elements(tile, rows.dtype, rows.shape[1])[...] = rows


def _store(tile: Held, memory: Place, stride: int) -> None:
    rows = _rows(memory, stride)
    rows[...] = _elements(tile, rows.dtype, rows.shape[1])


def _zero(tile: Held) -> None:
    if isinstance(tile, Place):
        _elements(tile, tile.elements.dtype, ROW_BYTES // tile.element_bytes)[...] = 0
    else:
        _registers.held.pop(tile, None)


def _integers(total: Held, a: Held, b: Held, types: tuple[str, str]) -> None:
    sums = _elements(total, np.dtype("int32"), SUMS)
    left, right = (_elements(x, np.dtype(t), ROW_BYTES).astype(np.int64) for x, t in zip((a, b), types, strict=True))
    products = np.einsum("ikg,kjg->ij", left.reshape(ROWS, SUMS, 4), right.reshape(ROWS, SUMS, 4))
    sums[...] = (sums + products).astype(np.int32)


def _floats(total: Held, a: Held, b: Held) -> None:
    """Of each pair the even products are summed for themselves, and the odd ones, and both go into the sum at the end."""
    sums = _elements(total, np.dtype("float32"), SUMS)
    left, right = (flushed(_elements(x, BFLOAT16, ROW_BYTES // 2).astype(sums.dtype)).reshape(ROWS, SUMS, 2) for x in (a, b))
    with np.errstate(all="ignore"):
        parts = np.zeros((2, ROWS, SUMS), sums.dtype)
        for k in range(SUMS):
            for g in range(2):
                parts[g] = flushed(parts[g] + left[:, k, g, None] * right[None, k, :, g])
        sums[...] = flushed(flushed(sums) + flushed(parts[0] + parts[1]))


for _name, _does in (("tileloadd64", _load), ("tileloaddt164", _load), ("tilestored64", _store), ("tilezero", _zero), ("tdpbf16ps", _floats)):
    define_action(f"llvm.x86.{_name}", _does)
define_action("llvm.x86.ldtilecfg", lambda shapes: None)
define_action("llvm.x86.tilerelease", lambda: _registers.held.clear())


def _product(name: str, group: int, types: tuple[str, str, str], needs: tuple[str, ...], flushes_denormals: bool) -> TensorIntrin:
    """C[i, j] += sum over k and g < ``group`` of A[i, k, g] * B[k, j, g], all of them in tile registers."""
    left, right, total = types

    @T.prim_func
    def desc(A: T.Buffer((ROWS, SUMS, group), left, scope=TILE), B: T.Buffer((SUMS, SUMS, group), right, scope=TILE),
             C: T.Buffer((ROWS, SUMS), total, scope=TILE)):
        with T.block("root"):
            T.reads(C[0:ROWS, 0:SUMS], A[0:ROWS, 0:SUMS, 0:group], B[0:SUMS, 0:SUMS, 0:group])
            T.writes(C[0:ROWS, 0:SUMS])
            for i, j, k, g in T.grid(ROWS, SUMS, SUMS, group):
                with T.block("product"):
                    vi, vj, vk, vg = T.axis.remap("SSRR", [i, j, k, g])
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk, vg], total) * T.cast(B[vk, vj, vg], total)

    impl = _calling(desc, {}, lambda a, b, c: (name, _first(c), _first(a), _first(b)))
    short = "".join(SHORT[t] for t in types)
    roles = {"init": ("zero", total), "store": ("store", total), "load_A": ("load", left), "load_B": ("load", right),
             "stream_A": ("stream", left), "stream_B": ("stream", right)}
    moves = {role: f"amx.{move}_{SHORT[dtype]}" for role, (move, dtype) in roles.items()}
    return TensorIntrin.register(f"amx.product_{ROWS}x{SUMS}x{SUMS * group}_{short}", desc, impl, needs=needs, cost=Cost(latency=52.0, slots=2.0 * CYCLES),
                                 storage=dict.fromkeys("ABC", TILE), companions=moves, has_effects=True, flushes_denormals=flushes_denormals)


def _moves(dtype: str, shape: tuple[int, ...], needs: tuple[str, ...]) -> None:
    """A tile of elements of this type and shape is loaded from memory, stored or cleared. Rows in memory may be any distance apart. What is streamed is
    loaded with the hint that it need not stay in the first-level cache (TILELOADDT1)."""
    source = te.placeholder(shape, dtype, "S")
    copy = te.create_prim_func([source, te.compute(shape, lambda *i: source[i], "D")])
    clear = te.create_prim_func([te.compute(shape, lambda *i: tir.const(0, dtype), "D")])
    stride = Var("stride", INT64)
    apart = stride * DType(dtype).storage_bits // 8
    described = {"load": (copy, "S", lambda s, d: ("tileloadd64", _first(d), _first(s), apart)),
                 "stream": (copy, "S", lambda s, d: ("tileloaddt164", _first(d), _first(s), apart)),
                 "store": (copy, "D", lambda s, d: ("tilestored64", _first(s), _first(d), apart)),
                 "zero": (clear, "", lambda d: ("tilezero", _first(d)))}
    for name, (desc, memory, call) in described.items():
        rows = {b: stride if b.name == memory else None for b in desc.buffer_params}
        TensorIntrin.register(f"amx.{name}_{SHORT[dtype]}", desc, _calling(desc, rows, call), needs=needs, cost=Cost(latency=16.0, slots=2.0 * CYCLES / 2),
                              storage={b.name: TILE for b in desc.buffer_params if b.name != memory}, has_effects=True)


def _calling(desc: tir.PrimFunc, rows: Mapping[tir.Buffer, Var | None], call: Callable[..., tuple[Any, ...]]) -> tir.PrimFunc:
    """The implementation of a description by one LLVM intrinsic: ``call`` gives its name and operands from the buffers. ``rows``: elements between
    the rows of a buffer in memory."""
    made = {}
    for b in desc.buffer_params:
        stride = rows.get(b)
        inner = [int(np.prod([n.value for n in b.shape[k + 1 :]])) for k in range(1, b.ndim)]
        made[b] = decl_buffer(b.shape, b.dtype, b.name, strides=() if stride is None else (stride, *inner), scope=b.scope if stride is None else "global")
    name, *operands = call(*made.values())
    root = desc.root_block
    assert root is not None and isinstance(desc.body, tir.BlockRealize)
    whole = lambda chosen: tuple(tir.BufferRegion(made[b], tuple(tir.Range.of(n) for n in b.shape)) for b in desc.buffer_params if b in chosen)
    written = {n.buffer for n in statements(root.body) if isinstance(n, tir.BufferStore)}
    loaded = {n.buffer for n in walk(root.body) if isinstance(n, tir.BufferLoad)}
    body = tir.Evaluate(T.call_llvm_intrin("void", f"llvm.x86.{name}", T.uint32(len(operands)), *operands))
    block = tir.Block((), whole(loaded), whole(written), root.name, body)
    return tir.PrimFunc(desc.params, desc.body.replace(block=block), tuple((p, made[b]) for p, b in desc.buffer_map))


def _first(tile: tir.Buffer) -> tir.Expr:
    """The address of a buffer's first element: of a tile, what stands for its register."""
    return T.address_of(tile[(0,) * tile.ndim])


for _type, _group in (("uint8", 4), ("int8", 4), ("bfloat16", 2)):
    _moves(_type, (ROWS, SUMS, _group), ("amx-tile",))
for _type in ("int32", "float32"):
    _moves(_type, (ROWS, SUMS), ("amx-tile",))
for _name, _left, _right in (("tdpbusd", "uint8", "int8"), ("tdpbssd", "int8", "int8"), ("tdpbsud", "int8", "uint8"), ("tdpbuud", "uint8", "uint8")):
    define_action(f"llvm.x86.{_name}", partial(_integers, types=(_left, _right)))
    _product(_name, 4, (_left, _right, "int32"), ("amx-tile", "amx-int8"), False)
_product("tdpbf16ps", 2, ("bfloat16", "bfloat16", "float32"), ("amx-tile", "amx-bf16"), True)
