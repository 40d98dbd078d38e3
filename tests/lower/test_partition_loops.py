# SPDX-License-Identifier: Apache-2.0
"""Tiles at the border of a picture: steps of the window that leave out rows are written out, and share no registers. Tiles at the ends of rows and columns."""

from __future__ import annotations

import re

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.arith import Analyzer
from roundel.build import inspect
from roundel.ir import IRModule, free_vars, tir
from roundel.ir.visit import substitute, walk
from roundel.lower.partition_loops import partition_loops
from roundel.script import from_source
from roundel.script import tir as T
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target


def _convolution(target, **decisions):
    """5x5 with stride 2 and a border of zeros, of 4 channels to 16."""
    x, w = te.placeholder((37, 37, 4), "float32", "X"), te.placeholder((5, 5, 4, 16), "float32", "W")
    padded = te.compute((41, 41, 4), lambda i, j, c: te.if_then_else(tir.logical_and(i >= 2, i < 39, j >= 2, j < 39), x[i - 2, j - 2, c], 0.0), "P")
    a, b, c = te.reduce_axis(5, "a"), te.reduce_axis(5, "b"), te.reduce_axis(4, "c")
    y = te.compute((19, 19, 16), lambda i, j, o: te.sum(padded[i * 2 + a.var, j * 2 + b.var, c.var] * w[a.var, b.var, c.var, o], axis=[a, b, c]), "Y")
    func = te.create_prim_func([x, w, y]).with_attr("global_symbol", "main").with_attr("decisions", decisions)
    return IRModule({"main": schedule_program(func, target)[0]}).replace(attrs={"target": target})


def test_steps_written_out_at_a_border_share_no_registers():
    """Neighbours read the same elements in steps of the window; kept in registers they would leave none for the tile."""
    mod = _convolution(Target("x86-64-v4"), rows=19, unroll=4)
    assembly = inspect(mod, "main").assembly
    assert len(re.findall(r"vfmadd231ps\s+-?\d*\(.*\{1to16\}", assembly)) > 19 * 4
    assert not re.findall(r"vmovups\s+%zmm\d+, -?\d*\(%rsp\)", assembly)


def test_results_at_a_border():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((37, 37, 4)).astype("float32"), rng.standard_normal((5, 5, 4, 16)).astype("float32")
    padded = np.pad(x, ((2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), axis=(0, 1))[::2, ::2]
    expected = np.einsum("ijcab,abco->ijo", windows, w)
    for decisions in ({}, {"rows": 5}, {"rows": 7, "unroll": 4}):
        out = np.full(expected.shape, np.nan, "float32")
        rd.build(_convolution(Target.host(), **decisions), threads=1)["main"](x, w, out)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@T.prim_func
def tiles_in_one_loop(A: T.Buffer((47, 24), "float32"), B: T.Buffer((47, 24), "float32")):
    for tile in T.parallel(24):
        for r in T.unroll(4):
            for c in T.vectorized(16):
                if tile // 2 * 4 + r >= 1 and tile // 2 * 4 + r < 47 and tile % 2 * 16 + c < 24:
                    B[tile // 2 * 4 + r, tile % 2 * 16 + c] = A[tile // 2 * 4 + r, tile % 2 * 16 + c] + T.float32(1)


@T.prim_func
def tiles_in_two_loops(A: T.Buffer((47, 24), "float32"), B: T.Buffer((47, 24), "float32")):
    for j in range(2):
        for i in range(12):
            for r in T.unroll(4):
                for c in T.vectorized(16):
                    if i * 4 + r < 47 and j * 16 + c < 24:
                        B[i * 4 + r, j * 16 + c] = A[i * 4 + r, j * 16 + c] + T.float32(1)


@T.prim_func
def sums_of_columns(A: T.Buffer((48, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((48, 24), "float32")):
    for tile in T.parallel(24):
        S = T.allocate((4, 16), "float32", "local")
        for k in range(32):
            for r in T.unroll(4):
                for c in T.vectorized(16):
                    S[r, c] = S[r, c] + A[tile // 2 * 4 + r, k] * B[k, tile % 2 * 16 + c]
        for r in T.unroll(4):
            for c in T.vectorized(16):
                if tile % 2 * 16 + c < 24:
                    C[tile // 2 * 4 + r, tile % 2 * 16 + c] = S[r, c]


def test_sums_stand_once_where_only_what_stores_them_has_guards():
    body = partition_loops(IRModule({"main": sums_of_columns}))["main"].body
    assert [n.extent.value for n in walk(body) if type(n) is tir.For and n.kind is tir.ForKind.SERIAL] == [32]
    stored = [n for n in walk(body) if type(n) is tir.If]
    assert len(stored) == 2 and stored[0].else_case is not None  # one version without the guard, and one with it


def _asked(stmt, values, found):
    """Appends for each run of an unrolled loop whether a condition between its iterations is left."""
    kind = type(stmt)
    if kind is tir.For and stmt.kind is tir.ForKind.UNROLLED:
        found.append(any(stmt.loop_var in free_vars(n.condition) for n in walk(stmt) if type(n) is tir.If))
    elif kind is tir.For:
        first, extent = (Analyzer().simplify(substitute(e, values)).value for e in (stmt.min, stmt.extent))
        for k in range(first, first + extent):
            _asked(stmt.body, {**values, stmt.loop_var: tir.const(k, stmt.loop_var.dtype)}, found)
    elif kind is tir.If:
        holds = Analyzer().simplify(substitute(stmt.condition, values)).value
        _asked(stmt.then_case if holds else stmt.else_case, values, found)
    elif kind is tir.Seq:
        for s in stmt.stmts:
            _asked(s, values, found)


@pytest.mark.parametrize("func", [tiles_in_one_loop, tiles_in_two_loops])
def test_few_columns_beyond_whole_vectors_leave_no_guards_between_rows(func):
    """Half of the tiles reach beyond the columns; only the first and last ones have guards between rows, which cost more than their arithmetic."""
    found: list[bool] = []
    _asked(partition_loops(IRModule({"main": func}))["main"].body, {}, found)
    assert len(found) == 24 and sum(found) <= 4


def _guarded(rng):
    """Loops over tiles, one or two, with several guards, of rows, of columns and of the loops themselves, and what they compute from rows x columns of A.
    In a loop over both stands a second statement, whose guard says where the loop ends: that may be what the guard of rows says too."""
    rows, columns, high, wide = (int(n) for n in (rng.integers(1, 40), rng.integers(1, 40), rng.integers(2, 6), rng.choice([4, 8, 16])))
    across, down = -(-columns // wide), -(-rows // high)
    row, column, fused = ("i", "j", False) if rng.random() < 0.5 else (f"(t // {across})", f"(t % {across})", True)
    fewer = {"j": rng.choice([columns // wide, rng.integers(1, across + 1)]), "i": rng.choice([rows // high, rng.integers(1, down + 1)])}
    guards = [f"{row} * {high} + r < {rows}", f"{column} * {wide} + c < {columns}", f"{row} * {high} + r >= {rng.integers(0, 2)}",
              f"{column} < {fewer['j']}", f"{row} < {fewer['i']}", f"{column} * {wide} < {rng.integers(1, columns + 1)}"]
    kept = [*guards[:2], *(g for g in guards[2:] if rng.random() < 0.5)]
    rng.shuffle(kept)
    where, kind = f"{row} * {high} + r, {column} * {wide} + c", rng.choice(["parallel", "serial"])
    around = [f"for t in T.{kind}({across * down}):"] if fused else [f"for j in T.{kind}({across}):", f"for i in range({down}):"]
    inside = [f"for r in T.unroll({high}):", f"for c in T.{rng.choice(['vectorized', 'serial'])}({wide}):"]
    nested = lambda depth, lines: [(depth + k, line) for k, line in enumerate(lines)]
    lines, depth, one = nested(1, around), 1 + len(around), "T.float32(1)"
    if rng.random() < 0.4:  # the sums of a long loop, in registers
        lines += [(depth, f'S = T.allocate(({high}, {wide}), "float32", "local")'), *nested(depth, [*inside, "S[r, c] = T.float32(0)"])]
        lines += nested(depth, ["for k in range(16):", *inside, "S[r, c] = S[r, c] + T.float32(0.0625)"])
        one = "S[r, c]"
    lines += nested(depth, [*inside, f"if {' and '.join(kept)}:", f"B[{where}] = A[{where}] + {one}"])
    body = "\n".join("    " * k + line for k, line in lines)
    end = fewer["i"] * across if fused else 0
    body += f"\n        if t < {end}:\n            E[t] = T.float32(1)" if fused else ""
    shape = f'T.Buffer(({rows}, {columns}), "float32")'
    t, r, c = np.meshgrid(np.arange(across * down), np.arange(high), np.arange(wide), indexing="ij")
    known = {"t": t, "i": t // across, "j": t % across, "r": r, "c": c}
    holds = np.logical_and.reduce([eval(g, known) for g in kept])
    want = np.zeros((rows, columns), "float32")
    want[(t // across * high + r)[holds], (t % across * wide + c)[holds]] = 1
    ended = (np.arange(across * down) < end).astype("float32")
    return f'@T.prim_func\ndef main(A: {shape}, B: {shape}, E: T.Buffer(({across * down},), "float32")):\n{body}\n', want, ended


def test_loops_with_several_guards_compute_what_they_did():
    """Guards of tiles and of the loop, which may end where a guard says."""
    rng = np.random.default_rng(7)
    for _ in range(80):
        source, *want = _guarded(rng)
        mod = IRModule({"main": from_source(source)})
        out = [np.zeros_like(w) for w in want]
        rd.build(mod, threads=1)["main"](np.zeros_like(want[0]), *out)
        for found, wanted in zip(out, want, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=source)


def _window(height):
    return from_source(f'''
@T.prim_func
def main(A: T.Buffer(({height}, 14, 16), "float32"), B: T.Buffer(({height}, 14, 16), "float32")):
    for i in T.parallel({2 * height}):
        for j in range(2):
            for t in T.unroll(7):
                for c in T.vectorized(16):
                    B[i % {height}, j * 7 + t, c] = T.float32(0)
            for a in T.unroll(3):
                for b in T.unroll(3):
                    for t in T.unroll(7):
                        for c in T.vectorized(16):
                            if i % {height} + a >= 1 and i % {height} + a < {height + 1} and j * 7 + t + b >= 1 and j * 7 + t + b < 15:
                                B[i % {height}, j * 7 + t, c] = B[i % {height}, j * 7 + t, c] + A[i % {height} + a - 1, j * 7 + t + b - 1, c]
''')


@pytest.mark.parametrize("height, versions", [(28, 4), (4, 6)])
def test_rows_at_a_border_that_is_seldom_seen_have_one_version_of_the_columns(height, versions):
    """Elsewhere the first and the last columns have their own."""
    mod, rng = IRModule({"main": _window(height)}), np.random.default_rng(0)
    loops = [n for n in walk(partition_loops(mod)["main"].body) if type(n) is tir.For and n.loop_var.name == "j"]
    assert len(loops) == versions
    x, out = rng.standard_normal((height, 14, 16)).astype("float32"), np.empty((height, 14, 16), "float32")
    rd.build(mod, threads=1)["main"](x, out)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((1, 1), (1, 1), (0, 0))), (3, 3), axis=(0, 1))
    np.testing.assert_allclose(out, windows.sum(axis=(-2, -1)), rtol=1e-4, atol=1e-5)
