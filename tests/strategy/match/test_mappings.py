# SPDX-License-Identifier: Apache-2.0
"""Which axes of a program may be an instruction's: what is enumerated is just what trying everything finds.

The other enumerator knows nothing of expressions. It takes every way to give axes of a program to axes of an instruction, and looks at the numbers of
the elements that are touched: along the axes of one of the instruction's, exactly the operands that move there may move here, and sums are sums.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from roundel import te
from roundel.arith import Analyzer
from roundel.intrinsics import TensorIntrin
from roundel.ir import tir
from roundel.ir.visit import substitute
from roundel.strategy.match.accesses import blocks_of
from roundel.strategy.match.mappings import described, mappings

INTRINS = ["avx512vnni.dot_16x4_u8i8i32", "avx512bf16.dot_16x2_bf16bf16f32", "avx2.dot_8x2_i16i16i32", "neon.sdot.dot_4x4_i8i8i32",
           "neon.smmla.product_2x2x8_i8i8i32", "neon.bfmmla.product_2x2x4_bf16bf16f32"]
EXTENT = 2


def einsum(rng, types):
    """A sum of products of two operands with axes at random, in any order, each in one operand or both, kept or summed over."""
    count = int(rng.integers(2, 6))
    while True:
        places = rng.choice(["a", "b", "ab"], count)
        kept = rng.random(count) < 0.6
        if any("a" in p for p in places) and any("b" in p for p in places) and not all(kept) and any(kept):
            break
    a, b = ([k for k in rng.permutation(count).tolist() if x in places[k]] for x in "ab")
    return _program(types, kept, [[(k,) for k in a], [(k,) for k in b]], rng)


def convolution(rng, types):
    """Windows that slide over pictures, with strides and dilation at random."""
    stride, apart = (int(x) for x in rng.integers(1, 3, 2))
    orders = [[(0,), (2, 4, stride, apart), (3,)], [(1,), (3,), (4,)]]  # row, outer, place, channel, tap
    kept = [True, True, True, False, False]
    return _program(types, kept, [[parts[k] for k in rng.permutation(3)] for parts in orders], rng)


def _program(types, kept, operands, rng):
    data, weight, total = types
    size = lambda part: EXTENT if len(part) == 1 else (EXTENT - 1) * (part[2] + part[3]) + 1
    a, b = (te.placeholder(tuple(size(p) for p in parts), t, n) for parts, t, n in zip(operands, (data, weight), "AB", strict=True))
    sums = {k: te.reduce_axis((0, EXTENT), f"r{k}") for k, keep in enumerate(kept) if not keep}
    out = [k for k in rng.permutation(len(kept)).tolist() if kept[k]]
    swapped = rng.random() < 0.5

    def value(*indices):
        at = dict(zip(out, indices, strict=True)) | sums
        place = lambda p: at[p[0]] if len(p) == 1 else at[p[0]] * p[2] + at[p[1]] * p[3]
        x, y = (t[tuple(place(p) for p in parts)].astype(total) for t, parts in zip((a, b), operands, strict=True))
        return te.sum(y * x if swapped else x * y, axis=list(sums.values()))

    return te.create_prim_func([a, b, te.compute((EXTENT,) * len(out), value, "C")])


def enumerated(info, intrin):
    """The mappings as ``tried`` gives them."""
    return {(tuple(sorted((b.name, a.buffer.name) for b, a in m.roles.items())), m.axes) for m in mappings(info, intrin)}


def tried(info, intrin):
    """Every mapping, found by trying: operands with the buffers that play their parts, and for each axis of the instruction axes of the program."""
    what, axes = described(intrin), info.block.iter_vars
    touched = {a.buffer.name: _moves(a, axes) for a in (*info.loads, info.stores[0])}
    wanted = {b.name: [axis.var in i for axis in what.axes] for b, i in what.indices.items()}
    types = {b.name: str(b.dtype) for b in what.indices}
    found = set()
    for first, second in (info.loads, info.loads[::-1]):
        roles = {"A": first, "B": second, "C": info.stores[0]}
        if any(str(roles[name].buffer.dtype) != dtype for name, dtype in types.items()):
            continue
        for given in product(range(-1, len(what.axes)), repeat=len(axes)):  # -1: a loop around
            inside = tuple(tuple(p for p, g in enumerate(given) if g == x) for x in range(len(what.axes)))
            alike = lambda p, x, roles=roles: axes[p].kind is what.axes[x].kind and all(touched[a.buffer.name][p] == wanted[n][x] for n, a in roles.items())
            if all(inside) and all(alike(p, x) for p, x in enumerate(given) if x >= 0):
                found.add((tuple(sorted((n, a.buffer.name) for n, a in roles.items())), inside))
    return found


def _moves(access, axes):
    """For each axis whether another element is touched anywhere when it goes on by one."""
    points = list(product(range(EXTENT), repeat=len(axes)))
    analyzer, variables = Analyzer(), [a.var for a in axes]
    at = {p: [analyzer.simplify(substitute(i, dict(zip(variables, map(tir.index_const, p), strict=True)))).value for i in access.indices] for p in points}
    return [any(at[p] != at[(*p[:k], p[k] + 1, *p[k + 1 :])] for p in points if p[k] + 1 < EXTENT) for k in range(len(axes))]


@pytest.mark.parametrize("name", INTRINS)
def test_what_is_enumerated_is_what_trying_everything_finds(name):
    intrin = TensorIntrin.get(name)
    types = tuple(str(b.dtype) for b in intrin.desc.buffer_params)
    rng, some = np.random.default_rng(7), 0
    for k in range(24):
        info = blocks_of((einsum if k % 3 else convolution)(rng, types))[0]
        made = enumerated(info, intrin)
        assert made == tried(info, intrin) and len(made) == len(list(mappings(info, intrin)))
        some += len(made) > 0
    assert some > 3


@pytest.mark.parametrize("types", [("int8", "int8", "int32"), ("uint8", "int8", "float32"), ("float32", "float32", "float32"), ("int8", "uint8", "int32")])
def test_other_types_are_not_mapped(types):
    a, b, r = te.placeholder((16, 16), types[0], "A"), te.placeholder((16, 16), types[1], "B"), te.reduce_axis((0, 16), "r")
    c = te.compute((16, 16), lambda i, j: te.sum(a[i, r].astype(types[2]) * b[j, r].astype(types[2]), axis=r), "C")
    found = list(mappings(blocks_of(te.create_prim_func([a, b, c]))[0], TensorIntrin.get(INTRINS[0])))
    assert [m.operand("A").buffer.name for m in found] == (["B"] if types == ("int8", "uint8", "int32") else [])


def test_other_combiners_are_not_mapped():
    a, b, r = te.placeholder((16, 16), "uint8", "A"), te.placeholder((16, 16), "int8", "B"), te.reduce_axis((0, 16), "r")
    largest = te.compute((16, 16), lambda i, j: te.max(a[i, r].astype("int32") * b[j, r].astype("int32"), axis=r), "C")
    sums = te.compute((16, 16), lambda i, j: te.sum(a[i, r].astype("int32") + b[j, r].astype("int32"), axis=r), "D")
    for program in (largest, sums):
        assert not list(mappings(blocks_of(te.create_prim_func([a, b, program]))[0], TensorIntrin.get(INTRINS[0])))
