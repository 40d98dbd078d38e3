# SPDX-License-Identifier: Apache-2.0
"""Square tiles transposed in registers: pairs of vectors interleave within 128 bits, then parts of 128 bits change places.

Each step is one instruction on two vectors, wherever vectors are of 128 bits or more.
"""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import decl_buffer, tir
from roundel.script import tir as T

from .registry import TensorIntrin

PART = 4  # elements of 32 bits in 128


def transpose(lanes: int, dtype: str) -> TensorIntrin:
    """B[j, i] = A[i, j] of ``lanes`` x ``lanes`` elements of 32 bits."""

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
        self.statements: list[tir.Stmt] = []
        self.steps: list[tir.Buffer] = []
        rows = [self.row(a, k) for k in range(self.lanes)]
        for width in (1, 2):
            rows = self.kept(self.interleaved(rows, width))
        parts = [rows[k::PART] for k in range(PART)]
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
        parts = self.lanes // PART
        column, rest = divmod(k, parts)
        bits = parts.bit_length() - 1
        return column + PART * int(format(rest, f"0{bits}b")[::-1] or "0", 2) if bits else column

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
        """Of rows ``width`` apart, runs of ``width`` elements in turn: the lower and the upper halves of each 128 bits."""
        out = []
        for first in range(0, self.lanes, PART):
            group = rows[first : first + PART]
            pairs = [(0, 1), (2, 3)] if width == 1 else [(0, 2), (1, 3)]
            out += [self.runs(group[x], group[y], width, upper) for x, y in pairs for upper in (0, 1)]
        return out

    def runs(self, x: tir.Expr, y: tir.Expr, width: int, upper: int) -> tir.Expr:
        picks = []
        for part in range(0, self.lanes, PART):
            for k in range(upper * PART // 2, (upper + 1) * PART // 2, width):
                picks += [part + k + n for n in range(width)] + [self.lanes + part + k + n for n in range(width)]
        return tir.Shuffle((x, y), tuple(picks))

    def alternate(self, x: tir.Expr, y: tir.Expr, odd: int) -> tir.Expr:
        """Every other part of 128 bits of both."""
        return tir.Shuffle((x, y), tuple(p + k for p in range(odd * PART, 2 * self.lanes, 2 * PART) for k in range(PART)))


for _lanes in (4, 8, 16):
    for _dtype in ("float32", "int32"):
        transpose(_lanes, _dtype)
