# SPDX-License-Identifier: Apache-2.0
"""Operands that are joined or turned on their way to a product of a few rows are read where they lie: one query over a cache of keys."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import build_module, prepare
from roundel.graph.tidy.simplify import simplify
from roundel.interp import interpret
from roundel.ir import IRModule, Var, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make

from ..functions import calls, function
from ..running import agree, same

F32 = "float32"
P = Var("p", INT64, True)


def decoder(past, rows, groups, width, pieces=1, dtype=F32) -> IRModule:
    """``rows`` queries of each of 2 * groups heads over a past of 2 heads and new keys in ``pieces``, as exporters write it."""
    new = [graph.TensorInfo((1, 2, k + 1, width), dtype) for k in range(pieces)]
    old = graph.TensorInfo((1, 2, past, width), dtype)

    def body(bb, q, keys, values, *more):
        e = lambda name, *a, **attrs: bb.emit(make(name, *a, **attrs))
        out = []
        for first, rest in ((keys, more[:pieces]), (values, more[pieces:])):
            whole = e("concat", graph.Tuple((first, *rest)), axis=2)
            out.append(e("repeat", whole, repeats=groups, axis=1) if groups > 1 else whole)
        scores = e("multiply", e("matmul", q, e("permute_dims", out[0], axes=(0, 1, 3, 2))), graph.Constant.of(0.5, dtype))
        return e("matmul", e("nn.softmax", scores, axis=-1), out[1])

    return function([graph.TensorInfo((1, 2 * groups, rows, width), dtype), old, old, *new, *new], body)


def arrays(past, rows, groups, width, pieces=1):
    random = np.random.default_rng(past)
    shapes = [(1, 2 * groups, rows, width), *[(1, 2, past, width)] * 2, *[(1, 2, k + 1, width) for k in range(pieces)] * 2]
    return [random.standard_normal(s).astype(F32) for s in shapes]


def scheduled(mod: IRModule) -> list[str]:
    """Rules that scheduled the kernels with arithmetic, in order."""
    found = [f.attrs["scheduled"] for _, f in prepare(mod).items() if "scheduled" in f.attrs]
    return [rule for rule in found if rule != "elementwise"] + ["elementwise"] * ("elementwise" in found)


@pytest.mark.parametrize(("rows", "groups", "width", "pieces"), [(1, 1, 64, 1), (1, 3, 15, 2), (2, 2, 8, 1), (3, 1, 33, 3)])
def test_a_past_of_any_length_is_not_copied(rows, groups, width, pieces):
    mod = decoder(P, rows, groups, width, pieces)
    rules = scheduled(mod)
    assert rules.count("matvec") == 1 and rules.count("contraction") == 1 and "elementwise" not in rules
    call = build_module(mod)["main"]
    want = interpret(mod)["main"]
    for past in (0, 1, 7, 31, 32, 70):
        x = arrays(past, rows, groups, width, pieces)
        same(call(*x), want(*x), 1e-5)


def test_every_stage_is_right():
    agree(decoder(45, 1, 2, 24), arrays(45, 1, 2, 24))
    agree(decoder(P, 1, 1, 16), arrays(5, 1, 1, 16), arrays(40, 1, 1, 16))


def test_what_many_rows_read_is_joined_first():
    mod = decoder(100, 12, 1, 16)
    assert any("concat" in name and "matmul" not in name for name, _ in prepare(mod).items())
    x = arrays(100, 12, 1, 16)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x), 1e-5)


def test_keys_of_sixteen_bits():
    x = arrays(50, 1, 2, 32)
    got = build_module(decoder(50, 1, 2, 32, dtype="float16"))["main"](*(a.astype(np.float16) for a in x))
    want = interpret(decoder(50, 1, 2, 32))["main"](*x)
    np.testing.assert_allclose(np.asarray(got, F32), want, atol=5e-3)


def test_joined_keys_that_are_a_result_too_stay():
    def body(bb, q, past, new):
        whole = bb.emit(make("concat", graph.Tuple((past, new)), axis=1))
        return graph.Tuple((whole, bb.emit(make("matmul", whole, q))))

    mod = function([graph.TensorInfo(s, F32) for s in ((2, 9, 1), (2, 20, 9), (2, 3, 9))], body)
    agree(mod, [np.random.default_rng(0).standard_normal(s).astype(F32) for s in ((2, 9, 1), (2, 20, 9), (2, 3, 9))])


def test_sizes_written_otherwise_change_nothing():
    shape = graph.ShapeExpr((1 + P, tir.index_const(3)))

    def body(bb, x, y):
        whole = bb.emit(make("concat", graph.Tuple((x, y)), axis=0))
        return make("exp", bb.emit(make("reshape", bb.emit(make("broadcast_to", whole, shape)), shape)))

    mod = simplify(function([graph.TensorInfo((P, 3), F32), graph.TensorInfo((1, 3), F32)], body))
    assert calls(mod) == ["concat", "exp"]
