# SPDX-License-Identifier: Apache-2.0
"""Statements of one program share the caches: what an earlier one brought is there, unless too much lies between, and a program that no cache holds
comes from beyond it, however small its parts."""

from __future__ import annotations

from itertools import groupby

import pytest

from roundel.script import tir as T
from roundel.strategy.choose import choose
from roundel.strategy.cost import expected_cycles, nest_of, traffic
from roundel.strategy.neighbours import neighbours
from roundel.strategy.statements import statements
from roundel.target import Target

MACHINE = Target("znver5")  # 48 KiB and 1 MiB


def crossing(func, level):
    """Bytes into a cache, as they count beside multiply-adds, for each group of statements in a program."""
    groups = [tuple(g) for _, g in groupby(statements(func, MACHINE, {}), key=lambda s: s.place or id(s))]
    around = neighbours([(g[0].place, *nest_of(MACHINE, g)) for g in groups])
    return [traffic(MACHINE, *g, others=n)[level] for g, n in zip(groups, around, strict=True)]


def rows_twice(rows, width, apart):
    """Each row is read by two statements, one after another; or all rows by one, then by the other."""
    @T.prim_func
    def together(A: T.Buffer((rows, width), "float32"), B: T.Buffer((rows, width), "float32"), C: T.Buffer((rows, width), "float32")):
        for i in range(rows):
            for j in range(width):
                with T.block("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for k in range(width):
                with T.block("c"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    C[vi, vk] = A[vi, vk] + T.float32(1)

    @T.prim_func
    def one_by_one(A: T.Buffer((rows, width), "float32"), B: T.Buffer((rows, width), "float32"), C: T.Buffer((rows, width), "float32")):
        for i, j in T.grid(rows, width):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(rows, width):
            with T.block("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)

    return one_by_one if apart else together


def test_what_an_earlier_statement_brought_is_there_while_nothing_pushes_it_out():
    near, (first, second) = crossing(rows_twice(512, 1024, apart=False), 1), crossing(rows_twice(512, 1024, apart=True), 1)
    assert near[0] == pytest.approx(first, rel=0.01) and second == pytest.approx(first, rel=0.01)  # 2 MiB lie between
    written = near[1] / near[0]
    assert 0.5 < written < 0.6  # rows are still in the first cache: what is left is the result, whose lines take longer


def test_parts_that_fit_each_do_not_make_a_program_that_fits():
    """Three of four tensors fit into the second-level cache beside each other, four do not."""
    @T.prim_func
    def two(A: T.Buffer((70000,), "float32"), B: T.Buffer((70000,), "float32"), C: T.Buffer((70000,), "float32"), D: T.Buffer((70000,), "float32")):
        for i in range(70000):
            with T.block("b"):
                v = T.axis.spatial(70000, i)
                B[v] = A[v]
        for i in range(70000):
            with T.block("d"):
                v = T.axis.spatial(70000, i)
                D[v] = C[v]

    assert all(n > 0 for n in crossing(two, 1))
    one = two.replace(body=two.body.replace(block=two.root_block.replace(body=two.root_block.body.stmts[0])))
    assert crossing(one, 1) == [0]


def test_a_network_of_shuffles_counts_with_what_it_reads():
    """A transposition in tiles, of which the description of an instruction turns the registers: its operand crosses too, and its tiles' rest finds it."""
    @T.prim_func
    def turned(A: T.Buffer((400, 97, 15), "float32"), B: T.Buffer((400, 15, 97), "float32")):
        for i, j, k in T.grid(400, 15, 97):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vk, vj]

    tiled = next(a.applied.func for a in choose(turned, MACHINE, pins={"sketch": "transposition"}) if a.fits)
    whole, *rest = crossing(tiled, 0)
    assert whole > 400 * 97 * 15 * 4 > max(rest)
    assert expected_cycles(tiled, MACHINE, cores=1) > 400 * 97 * 15 / 8  # loads, shuffles and stores of vectors


def test_a_statement_outside_of_the_loops_may_stand_between_those_inside():
    """The init of a sum whose loops are fused runs at a place of its own."""
    @T.prim_func
    def program(A: T.Buffer((7, 4, 2), "float32"), W: T.Buffer((2, 4, 2), "float32"), C: T.Buffer((7, 2), "float32")):
        held = T.sblock_alloc_buffer((7, 4, 2), "float32", scope="local")
        for fused in range(56):
            for j in range(2):
                with T.sblock("held"):
                    v_i = T.axis.spatial(7, fused // 8)
                    v_k = T.axis.spatial(4, fused % 4)
                    v_j = T.axis.spatial(2, j)
                    held[v_i, v_k, v_j] = A[v_i, v_k, v_j] * T.float32(2)
            for j in range(2):
                with T.sblock("c"):
                    v_i = T.axis.spatial(7, fused // 8)
                    v_n = T.axis.spatial(2, fused // 4 % 2)
                    v_k = T.axis.reduce(4, fused % 4)
                    v_j = T.axis.reduce(2, j)
                    with T.init():
                        C[v_i, v_n] = T.float32(0)
                    C[v_i, v_n] = C[v_i, v_n] + held[v_i, v_k, v_j] * W[v_n, v_k, v_j]

    assert 0 < expected_cycles(program, MACHINE) < 1e6
