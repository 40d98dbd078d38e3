# SPDX-License-Identifier: Apache-2.0
"""Each schedule rule by examples: which programs it takes, which it leaves to others, and that what it makes computes the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.builder import make_program
from roundel.driver import DEFAULT, prepare
from roundel.interp import interpret
from roundel.ir import IRModule, graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import get_op
from roundel.strategy import schedule_module
from roundel.strategy.choose import attempt, takes
from roundel.strategy.rules import (
    RULES,
    accelerated,
    as_written,
    attention,
    bilinear,
    columns,
    contraction,
    dot_products,
    elementwise,
    fallback,
    generic,
    generic_padding,
    matvec,
    packed_products,
    pair_products,
    points,
    rows,
    sliced_products,
    spatial,
    tile_products,
    totals,
    transposition,
    windows,
    winograd,
)
from roundel.target import Target
from tests.graph.algorithms.test_attention import chain

HOST, BYTES, TILES, PAIRS = map(Target, (Target.host(), "znver4", "sapphirerapids", "cortex-m4"))  # three with products of 8-bit numbers
F = "float32"


def program(name, *operands, **attrs):
    """The tensor program of one operator; operands are shapes of float32, or (shape, type), or what is no tensor."""
    op = get_op(name)
    infos = [o if isinstance(o, tuple) and isinstance(o[0], tuple) else (o, F) for o in operands if isinstance(o, tuple)]
    args = [graph.Var(f"x{k}", graph.TensorInfo(*i)) for k, i in enumerate(infos)] + [o for o in operands if not isinstance(o, tuple)]
    return make_program(lambda *a, **kw: op.compute(a, Attrs(kw)), args, {**op.attributes, **attrs}).func.with_attr("global_symbol", "main")


def product(a, b, at_b, dtypes=(F, F), wide=F):
    """C[i, j], the sum over k of A[i, k] and the element of B that ``at_b`` names."""
    x, y, k = te.placeholder(a, dtypes[0], "A"), te.placeholder(b, dtypes[1], "B"), te.reduce_axis((0, a[1]), "k")
    n = b[1] if at_b(0, 1) == (0, 1) else b[0]
    c = te.compute((a[0], n), lambda i, j: te.sum(x[i, k].astype(wide) * y[at_b(k, j)].astype(wide), axis=k), "C")
    return te.create_prim_func([x, y, c]).with_attr("global_symbol", "main")


def plain(m, n, k, dtypes=(F, F), wide=F):
    return product((m, k), (k, n), lambda i, j: (i, j), dtypes, wide)


def turned(m, n, k):
    return product((m, k), (n, k), lambda i, j: (j, i))


def fused_attention(length, width, mask=None):
    mod = chain((1, length, 2, width), (1, length + 3, 2, width), (1, length + 3, 2, width), mask)
    lowered = prepare(mod, target=HOST, pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    (found,) = (f for _, f in lowered.items() if isinstance(f, tir.PrimFunc) and takes(attention, f, HOST))
    return found.with_attr("global_symbol", "main")


def two_stages():
    """A chain of two products, which is no single contraction."""
    a, b, c = te.placeholder((6, 8), F, "A"), te.placeholder((8, 10), F, "B"), te.placeholder((10, 5), F, "C")
    k, l = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 10), "l")
    t = te.compute((6, 10), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "T")
    return te.create_prim_func([a, b, c, te.compute((6, 5), lambda i, j: te.sum(t[i, l] * c[l, j], axis=l), "D")]).with_attr("global_symbol", "main")


@cache
def programs():
    blocked = {"data_layout": "NCHW16c", "kernel_layout": "OIHW16i16o", "out_layout": "NCHW16c"}
    return {
        "add": program("add", (7, 33), (33,)),
        "where": program("where", ((5, 9), "bool"), (5, 9), (9,)),
        "concat of two": program("nn.pad", (5, 9), graph.ShapeExpr(tuple(map(tir.index_const, (1, 0, 2, 3)))), pad_mode="constant"),
        "turned": program("permute_dims", (40, 48), axes=(1, 0)),
        "turned inside": program("permute_dims", (3, 21, 35), axes=(0, 2, 1)),
        "rows moved": program("permute_dims", (3, 5, 32), axes=(1, 0, 2)),
        "winograd": program("nn.winograd_conv2d", (1, 1, 9, 10, 16), (6, 6, 1, 1, 16, 16), (1, 1, 3, 3, 16, 16), tile=4, padding=1, data_layout="NCHW16c"),
        "strassen": program("nn.strassen_matmul", (7, 8, 32), (7, 32, 64), (16, 64), (16, 1), columns=128),
        "attention": fused_attention(9, 16),
        "masked attention": fused_attention(9, 16, ((1, 1, 9, 12), "bool")),
        "product": plain(7, 40, 19),
        "one row": plain(1, 40, 19),
        "two columns": plain(9, 2, 33),
        "one column": plain(9, 1, 33),
        "batches": program("matmul", (3, 7, 19), (3, 19, 40)),
        "rows of both": turned(2, 48, 64),
        "many rows of both": turned(40, 48, 64),
        "bytes": plain(8, 32, 64, ("uint8", "int8"), "int32"),
        "many bytes": plain(33, 40, 70, ("uint8", "int8"), "int32"),
        "signed bytes": plain(7, 10, 21, ("int8", "int8"), "int32"),
        "convolution": program("nn.conv2d", (1, 1, 9, 10, 16), (1, 1, 3, 3, 16, 16), padding=1, **blocked),
        "strided convolution": program("nn.conv2d", (1, 3, 9, 10), (5, 3, 3, 3), padding=1, strides=2),
        "depthwise": program("nn.conv2d", (1, 1, 9, 10, 16), (1, 1, 3, 3, 16), padding=1, groups=16, **blocked | {"kernel_layout": "OIHW16o"}),
        "largest in windows": program("nn.max_pool2d", (1, 2, 9, 40), pool_size=3, strides=1, padding=1),
        "largest in blocks": program("nn.max_pool2d", (1, 1, 9, 10, 16), pool_size=3, strides=2, padding=1, layout="NCHW16c"),
        "softmax": program("nn.softmax", (9, 33), axis=-1),
        "softmax of columns": program("nn.softmax", (9, 33), axis=0),
        "sums of rows": program("sum", (9, 33), axis=(1,)),
        "sums of columns": program("sum", (9, 33), axis=(0,)),
        "largest place": program("argmax", (9, 33), axis=1),
        "sum of all": program("sum", (9, 33), axis=None),
        "largest of all": program("max", (5, 7, 13), axis=None),
        "scan": program("cumsum", (7, 100), axis=0),
        "sort": program("sort", (7, 30)),
        "numbers of four bits": program("packed_matmul", (5, 2, 4, 8), ((8, 37), "uint32"), (2, 37), (5, 2), bits=4, zero=8.0),
        "slices of bytes": program("sliced_matmul", ((5, 3, 2, 4, 2, 4), "int8"), (5, 2), ((32, 48), "uint8"), (2, 48), (5, 2), bits=4, zero=8.0),
        "two products": two_stages(),
    }


TAKES = {
    transposition: ["turned", "turned inside"],
    elementwise: ["add", "where", "concat of two", "rows moved", "turned"],
    winograd: ["winograd"],
    bilinear: ["strassen"],
    attention: ["attention", "masked attention"],
    accelerated: [],  # without a chip in the target; with one: strategy/product/test_accelerated.py
    tile_products: ["many bytes"],
    pair_products: ["signed bytes"],
    dot_products: ["bytes"],
    packed_products: ["numbers of four bits"],
    sliced_products: ["slices of bytes"],
    matvec: ["rows of both"],
    contraction: ["product", "one row", "batches", "convolution", "strided convolution"],
    columns: ["sums of columns", "softmax of columns"],
    windows: ["depthwise", "largest in windows", "largest in blocks"],
    rows: ["softmax", "sums of rows", "largest place"],
    totals: ["sum of all", "largest of all"],
    points: ["scan", "sort"],
    generic: ["product", "softmax", "two products", "two columns", "one column", "winograd", "strassen"],
    generic_padding: ["convolution", "depthwise", "largest in blocks"],
    spatial: ["add", "where", "rows moved", "turned", "turned inside"],
    fallback: ["add", "turned", "product", "softmax", "sum of all", "scan", "two products", "two columns", "one column"],
    as_written: ["add", "product", "sort"],
}
LEAVES = {
    transposition: ["add", "product", "rows moved", "softmax", "sort"],
    elementwise: ["product", "softmax", "sum of all", "scan", "sort", "largest place"],
    winograd: ["convolution", "product", "add", "attention"],
    bilinear: ["product", "batches", "softmax", "add", "two products"],
    attention: ["softmax", "batches", "two products", "add"],
    accelerated: ["many bytes", "product", "softmax", "add"],
    tile_products: ["bytes", "product", "softmax", "add"],
    pair_products: ["bytes", "product", "softmax", "add"],
    dot_products: ["product", "convolution", "softmax", "add"],
    packed_products: ["two products", "product", "attention", "softmax", "slices of bytes"],
    sliced_products: ["two products", "product", "attention", "softmax", "numbers of four bits"],
    matvec: ["product", "many rows of both", "softmax", "add", "sort"],
    contraction: ["add", "softmax", "sum of all", "scan", "largest place", "depthwise", "attention"],
    columns: ["softmax", "sums of rows", "sum of all", "add", "scan"],
    windows: ["softmax", "sum of all", "add", "sort", "rows of both"],
    rows: ["sum of all", "add", "scan", "softmax of columns", "sort"],
    totals: ["softmax", "sums of rows", "product", "add", "sort"],
    points: ["product", "softmax", "add", "sum of all", "turned"],
    generic: ["add", "turned", "scan"],
    generic_padding: ["product", "softmax", "add", "sort"],
    spatial: ["product", "softmax", "sum of all", "scan", "sort"],
    fallback: [],
    as_written: [],
}
CASES = [(rule, name) for rule, names in TAKES.items() for name in names]


def target_of(rule):
    return {dot_products: BYTES, sliced_products: BYTES, tile_products: TILES, pair_products: PAIRS}.get(rule, HOST)


def constants_of(rule, func):
    """8-bit weights are read as they were laid out when the program was compiled."""
    if rule is sliced_products:
        return (2,)
    return (1,) if rule in (dot_products, tile_products, pair_products, packed_products) else ()


def test_every_rule_has_its_examples():
    assert set(RULES) == set(TAKES) == set(LEAVES)


@pytest.mark.parametrize("rule, name", [(r, n) for r, names in LEAVES.items() for n in names], ids=lambda x: getattr(x, "name", x))
def test_is_left_to_others(rule, name):
    assert not takes(rule, programs()[name], target_of(rule))


@pytest.mark.parametrize("rule, name", CASES, ids=lambda x: getattr(x, "name", x))
def test_what_is_taken_computes_the_same(rule, name):
    func = programs()[name]
    constants = constants_of(rule, func)
    applied = attempt(rule, func, target_of(rule), constants).applied
    rng = np.random.default_rng(0)
    arrays = [_array(rng, b) for b in func.buffer_params]
    want = [a.copy() for a in arrays]
    interpret(IRModule({"main": func}))["main"](*want)
    made = IRModule({"main": applied.func.replace(attrs=applied.func.attrs.without("constant_params"))})
    for run in (interpret, rd.build) if target_of(rule) is HOST else (interpret,):
        got = [_laid_out(a.copy(), b, applied.layouts.get(k)) for k, (a, b) in enumerate(zip(arrays, applied.func.buffer_params, strict=True))]
        run(made)["main"](*got)
        np.testing.assert_allclose(got[-1], want[-1], rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(want[-1]).max())))


def test_a_rule_takes_any_size_or_says_no():
    """Sizes around those of vectors, tiles and panels; whatever goes wrong inside of a rule is a ScheduleError (any other is a warning in the log,
    which fails the test)."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        m, n, k = (int(rng.choice([1, 2, 3, 5, 7, 8, 13, 16, 17, 33])) for _ in range(3))
        for func in (plain(m, n, k), turned(m, n, k)):
            for rule in RULES:
                attempt(rule, func, HOST)


def _array(rng, buffer):
    shape = [n.value for n in buffer.shape]
    if buffer.dtype.is_float:
        return rng.standard_normal(shape).astype(buffer.dtype.numpy)
    return rng.integers(0, 2 if buffer.dtype.is_bool else 100, shape).astype(buffer.dtype.numpy)


def _laid_out(array, buffer, layout):
    from roundel.strategy.pack_constants import relayout

    return array if layout is None else relayout(array, layout, [n.value for n in buffer.shape])
