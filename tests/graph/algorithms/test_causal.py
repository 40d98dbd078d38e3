# SPDX-License-Identifier: Apache-2.0
"""Masks that let rows see the keys before them: recognised, kept where they say more, and right."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import DEFAULT, build_module, prepare
from roundel.graph.algorithms.attention import attention
from roundel.interp import interpret
from roundel.ir import IRModule, graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.strategy.explain import explain_module
from roundel.target import Target

from ..functions import function
from ..running import same
from .test_attention import SPANS, arrays, forced, kernels

F32 = "float32"
LOW = np.finfo(F32).min


def attend(q, k, v, mask, *, more=(), zero=False) -> IRModule:
    """queries, keys and values [batch, heads, length, width]; ``mask(emit, scores, others)`` masks the scores."""
    infos = [graph.TensorInfo(s, F32) for s in (q, k, v)] + [graph.TensorInfo(*i) for i in more]

    def body(bb, *x):
        e = lambda name, *a, **attrs: bb.emit(make(name, *a, **attrs))
        scores = e("multiply", e("matmul", x[0], e("permute_dims", x[1], axes=(0, 1, 3, 2))), graph.Constant.of(0.5, F32))
        weights = e("nn.softmax", mask(e, scores, *x[3:]), axis=-1)
        if zero:
            weights = e("where", e("isnan", weights), graph.Constant.of(0.0, F32), weights)
        return e("matmul", weights, x[2])

    return function(infos, body)


def positions(e, scores, axis, first=0, count=None):
    """first, first + 1, ... along the rows (-2) or the keys (-1) of scores."""
    n = scores.sinfo.shape[axis]
    ramp = e("arange", graph.PrimValue(tir.as_index(first)), graph.PrimValue(n + first), 1, dtype="int64")
    return e("expand_dims", ramp, axis=1) if axis == -2 else ramp


def low(value):
    return graph.Constant.of(value, F32)


def compared(name, swapped=False, first=0, fill=-np.inf):
    def mask(e, scores, *_):
        pair = positions(e, scores, -1), positions(e, scores, -2, first)
        return e("where", e(name, *(pair[::-1] if swapped else pair)), scores, low(fill))

    return mask


def opposite(e, scores, *_):
    hidden = e("greater", positions(e, scores, -1), positions(e, scores, -2))
    return e("add", scores, e("expand_dims", e("where", hidden, low(-np.inf), low(0.0)), axis=(0, 1)))


def constant(first, fill, added=False):
    def mask(e, scores, *_):
        n, m = (d.value for d in scores.sinfo.shape[-2:])
        seen = np.tril(np.ones((n, m), bool), first)
        if added:
            return e("add", scores, graph.Constant.of(np.where(seen, 0, fill).astype(F32)[None, None]))
        return e("where", graph.Constant.of(seen), scores, low(fill))

    return mask


def reach(mod: IRModule) -> list[str]:
    """How far rows see, of each attention."""
    mod = prepare(mod, pipeline=DEFAULT[: DEFAULT.index(attention) + 1])
    calls = [b.value for block in mod["main"].body.blocks for b in block.bindings if isinstance(b.value, graph.Call)]
    return [" ".join(a.value.script() for a in c.args[2:]) for c in calls if getattr(c.op, "name", "") == "nn.softmax_matmul"]


@pytest.mark.parametrize(
    ("mask", "found"),
    [(compared("less_equal"), "0"), (compared("greater", True, 3), "2"), (opposite, "0"), (constant(0, -np.inf), "0"), (constant(4, LOW, True), "4"),
     (constant(0, LOW), "0"), (constant(-1, LOW), ""), (compared("less_equal", True), ""), (constant(0, -1e4, True), "")],
)
def test_forms_of_masks(mask, found):
    q, k = (2, 2, 37, 16), (2, 2, 41, 16)
    mod = attend(q, k, k, mask)
    assert reach(mod) == [found] and "attention" in kernels(mod)
    x = arrays(q, k, k)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x), 2e-5)


@pytest.mark.parametrize(("rows", "keys", "first"), [(1, 1, 0), (64, 64, 0), (100, 13, 0), (33, 130, 97), (17, 300, 5), (50, 50, -3)])
def test_sizes(rows, keys, first):
    q, k = (1, 3, rows, 24), (1, 3, keys, 24)
    mod = attend(q, k, k, constant(first, -np.inf), zero=True)
    x = arrays(q, k, k)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x), 2e-5)


def test_the_scheduled_program():
    q, k = (1, 1, 20, 8), (1, 1, 23, 8)
    mod = attend(q, k, k, constant(3, -np.inf))
    x = arrays(q, k, k)
    same(interpret(prepare(mod))["main"](*x), interpret(mod)["main"](*x), 2e-5)


def test_symbolic_lengths_and_a_past():
    b, n, past = (tir.Var(name, INT64, True) for name in ("b", "n", "past"))
    q, k = (b, 2, n, 16), (b, 2, past + n, 16)
    mod = attend(q, k, k, compared("less_equal", first=past), more=[((past,), F32)])
    assert reach(mod) == ["past"]
    native, oracle = build_module(mod)["main"], interpret(mod)["main"]
    for batch, rows, before in ((1, 1, 0), (1, 1, 50), (2, 33, 0), (1, 64, 7), (3, 130, 31), (1, 0, 5), (2, 5, 200)):
        x = arrays((batch, 2, rows, 16), (batch, 2, rows + before, 16), (batch, 2, rows + before, 16), (before,))
        same(native(*x), oracle(*x), 2e-5)


def test_a_mask_beside_others():
    q = (2, 2, 40, 16)
    more = [((2, 1, 1, 40), "bool"), ((2, 40), F32)]

    def both(fill):
        def mask(e, scores, padding, bias):
            scores = e("where", padding, scores, low(LOW))
            scores = constant(0, fill)(e, scores)
            return e("add", scores, e("expand_dims", bias, axis=(1, 2)))

        return mask

    padding = np.ones((2, 1, 1, 40), bool)
    padding[0, 0, 0, :7] = padding[1, 0, 0, 30:] = False  # rows that see nothing but padding
    x = [*arrays(q, q, q), padding, *arrays((2, 40), seed=1)]
    for fill, found in ((-np.inf, "0"), (LOW, "")):
        mod = attend(q, q, q, both(fill), more=more)
        assert reach(mod) == [found]
        same(build_module(mod)["main"](*x), interpret(mod)["main"](*x), 2e-5)


@pytest.mark.parametrize(("rows", "keys", "first", "more"), [
    (150, 150, 0, {}), (33, 130, 97, {"block": 2}), (70, 300, 5, {"packed": 1}), (40, 70, -3, {}), (16, 80, -90, {}), (21, 129, 200, {}),
])
def test_blocks_of_keys(rows, keys, first, more):
    q, k = (1, 2, rows, 16), (1, 2, keys, 16)
    mod = attend(q, k, k, constant(first, -np.inf) if -rows < first < keys else compared("less_equal", first=first), zero=first < 0)
    x = arrays(q, k, k)
    if reach(mod) != [""]:
        x[2][:, :, max(rows + first, 0) // 64 * 64 + 64:] = np.nan  # what no block of rows sees
    got = build_module(forced(mod, SPANS | more))["main"](*x)
    x[2] = np.nan_to_num(x[2])
    same(got, interpret(mod)["main"](*x), 2e-5)


def test_a_past():
    b, n, past = (tir.Var(name, INT64, True) for name in ("b", "n", "past"))
    q, k = (b, 2, n, 16), (b, 2, past + n, 16)
    mod = attend(q, k, k, compared("less_equal", first=past), more=[((past,), F32)])
    native, blocks, oracle = build_module(mod)["main"], build_module(forced(mod, SPANS))["main"], interpret(mod)["main"]
    for batch, rows, before in ((1, 1, 0), (1, 1, 63), (2, 33, 0), (1, 64, 7), (3, 130, 31), (1, 0, 5), (2, 5, 200), (1, 70, 128)):
        x = arrays((batch, 2, rows, 16), (batch, 2, rows + before, 16), (batch, 2, rows + before, 16), (before,))
        x[0][:, :, rows // 2:, 3] = np.nan  # of some rows
        same(native(*x), oracle(*x), 2e-5)
        same(blocks(*x), oracle(*x), 2e-5)


def test_long_sequences_go_by_blocks_of_keys_and_leave_out_what_no_row_sees():
    q, k = (1, 2, 64, 64), (1, 2, 16384, 64)
    (made,) = (f.script() for _, f in prepare(attend(q, k, k, compared("less_equal", first=300))).items() if f.attrs.get("scheduled") == "attention")
    assert "attention_max_scale" in made and made.count("_m_m <") >= 8  # loops over blocks of keys end where nothing is seen


def test_forced_decisions_survive_fusion():
    q = (1, 8, 96, 64)
    mod, wanted = attend(q, q, q, compared("less_equal")), SPANS | {"grain": 3}
    asked = forced(mod, wanted)
    (made,) = (f for _, f in prepare(asked).items() if f.attrs.get("scheduled") == "attention")
    assert dict(made.attrs["decisions"]) == wanted and "attention_max_scale" in made.script() and '"grain": 3' in made.script()
    (shown,) = (e for e in explain_module(asked, Target.host()) if e.rule == "attention")
    assert wanted.items() <= shown.decisions.items() and {"span", "block"} <= shown.candidates.columns.keys()
