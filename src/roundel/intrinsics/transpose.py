# SPDX-License-Identifier: Apache-2.0
"""Square tiles transposed in registers: pairs of vectors interleave within 128 bits, then parts of 128 bits change places.

Each step is one instruction on two vectors, wherever vectors are of 128 bits or more.
"""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import decl_buffer, tir
from roundel.script import tir as T

from .registry import TensorIntrin

PART_BITS = 128


def transpose(lanes: int, dtype: str) -> TensorIntrin:
    """B[j, i] = A[i, j] of ``lanes`` x ``lanes`` elements, rows of 128 bits or more."""

    @T.prim_func
    def desc(A: T.Buffer((lanes, lanes), dtype), B: T.Buffer((lanes, lanes), dtype)):
        with T.block("root"):
            T.reads(A[0:lanes, 0:lanes])
            T.writes(B[0:lanes, 0:lanes])
            for i, j in T.grid(lanes, lanes):
                with T.block("transpose"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vj, vi] = A[vi, vj]

    a, b = desc.buffer_params
    network = _Network(a, b)
    assert isinstance(desc.body, tir.BlockRealize)
    root = desc.body.block.replace(body=tir.seq(*network.statements), alloc_buffers=tuple(network.steps))
    return TensorIntrin.register(f"transpose_{lanes}x{lanes}_{dtype}", desc, desc.replace(body=desc.body.replace(block=root)))


class _Network:
    """The instructions: each takes a pair of rows of one buffer and gives rows of the next."""

    def __init__(self, a: tir.Buffer, b: tir.Buffer) -> None:
        self.lanes = b.shape[0].value
        self.part = PART_BITS // b.dtype.bits  # elements in 128 bits
        self.statements: list[tir.Stmt] = []
        self.steps: list[tir.Buffer] = []
        rows = [self.row(a, k) for k in range(self.lanes)]
        for step in range(self.part.bit_length() - 1):
            rows = self.kept(self.interleaved(rows, 1 << step))
        parts = [rows[k :: self.part] for k in range(self.part)]
        while len(parts[0]) > 1:
            pairs = [list(zip(p[::2], p[1::2], strict=True)) for p in parts]
            halves = [[self.alternate(x, y, odd) for x, y in p] for p in pairs for odd in (0, 1)]
            flat = self.kept([x for h in halves for x in h])
            parts = [flat[k : k + len(halves[0])] for k in range(0, len(flat), len(halves[0]))]
        last = [p[0] for p in parts]
        for k, value in enumerate(last):
            self.statements.append(self.store(b, self.place(k), value))

    def place(self, k: int) -> int:
        """Which column the k-th of the last vectors is: the first choice was the column within 128 bits, then bits from the lowest."""
        parts = self.lanes // self.part
        column, rest = divmod(k, parts)
        bits = parts.bit_length() - 1
        return column + self.part * int(format(rest, f"0{bits}b")[::-1] or "0", 2) if bits else column

    def row(self, buffer: tir.Buffer, k: int) -> tir.Expr:
        return tir.BufferLoad(buffer, (tir.index_const(k), tir.Ramp(tir.index_const(0), tir.index_const(1), self.lanes)))

    def store(self, buffer: tir.Buffer, k: int, value: tir.Expr) -> tir.Stmt:
        return tir.BufferStore(buffer, value, (tir.index_const(k), tir.Ramp(tir.index_const(0), tir.index_const(1), self.lanes)))

    def kept(self, values: Sequence[tir.Expr]) -> list[tir.Expr]:
        """The values in a buffer of their own."""
        step = decl_buffer((self.lanes, self.lanes), values[0].dtype.element, f"step_{len(self.steps)}", scope="local")
        self.steps.append(step)
        self.statements += [self.store(step, k, v) for k, v in enumerate(values)]
        return [self.row(step, k) for k in range(self.lanes)]

    def interleaved(self, rows: list[tir.Expr], width: int) -> list[tir.Expr]:
        """Of neighbouring groups of ``width`` rows, each of which has runs of ``width`` elements, rows with runs of twice that."""
        out = []
        for first in range(0, self.lanes, 2 * width):
            for k in range(first, first + width):
                out += [self.runs(rows[k], rows[k + width], width, upper) for upper in (0, 1)]
        return out

    def runs(self, x: tir.Expr, y: tir.Expr, width: int, upper: int) -> tir.Expr:
        picks = []
        for part in range(0, self.lanes, self.part):
            for k in range(upper * self.part // 2, (upper + 1) * self.part // 2, width):
                picks += [part + k + n for n in range(width)] + [self.lanes + part + k + n for n in range(width)]
        return tir.Shuffle((x, y), tuple(picks))

    def alternate(self, x: tir.Expr, y: tir.Expr, odd: int) -> tir.Expr:
        """Every other part of 128 bits of both."""
        return tir.Shuffle((x, y), tuple(p + k for p in range(odd * self.part, 2 * self.lanes, 2 * self.part) for k in range(self.part)))


TensorIntrin.family(r"transpose_(\d+)x\1_(\w+)", lambda lanes, dtype: transpose(int(lanes), dtype))
