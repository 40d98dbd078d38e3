# SPDX-License-Identifier: Apache-2.0
"""Attention as one program: recognised, scheduled and right, at odd sizes, with masks, groups of heads and symbolic lengths."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import DEFAULT, build_module, prepare
from roundel.interp import interpret
from roundel.ir import IRModule, graph, options, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.strategy import schedule_module
from roundel.target import Target

from ..functions import function
from ..running import agree, same

F32 = "float32"


def chain(q, k, v, mask=None, *, after=None, zero="", groups="repeat", dtype=F32) -> IRModule:
    """queries, keys and values [batch, length, heads, width] as exporters write attention."""
    infos = [graph.TensorInfo(s, dtype) for s in (q, k, v)] + ([graph.TensorInfo(*mask)] if mask else [])

    def body(bb, *x):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        turned = [e("permute_dims", t, axes=axes) for t, axes in zip(x, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))]
        if q[2] != k[2]:
            turned[1:] = [GROUPS[groups](e, t, q[2] // k[2]) for t in turned[1:]]
        scores = e("multiply", e("matmul", turned[0], turned[1]), graph.Constant.of(0.5, dtype))
        if mask:
            low = graph.Constant.of(-np.inf, dtype)
            scores = e("where", x[3], scores, low) if mask[1] == "bool" else e("add", scores, x[3])
        weights = e("nn.softmax", scores, axis=-1)
        if zero:
            low = graph.Constant.of(-np.inf, dtype)
            none = e("isnan", weights) if zero == "nan" else e("equal", e("max", scores, axis=[-1], keepdims=True), low)
            weights = e("where", none, graph.Constant.of(0.0, dtype), weights)
        out = e("permute_dims", e("matmul", weights, turned[2]), axes=(0, 2, 1, 3))
        return out if after is None else e("multiply", out, graph.Constant.of(after, dtype))

    return function(infos, body)


def _broadcast(e, t, times):
    b, h, n, d = t.sinfo.shape
    wide = e("broadcast_to", e("expand_dims", t, axis=(2,)), graph.ShapeExpr((b, h, times, n, d)))
    return e("reshape", wide, graph.ShapeExpr((b, h * times, n, d)))


GROUPS = {"repeat": lambda e, t, times: e("repeat", t, repeats=times, axis=1), "broadcast": _broadcast}


def kernels(mod: IRModule) -> list[str]:
    """The rules that scheduled the kernels."""
    return [f.attrs["scheduled"] for _, f in prepare(mod).items() if "scheduled" in f.attrs]


def arrays(*shapes, seed=0):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(s).astype(F32) for s in shapes]


def test_keys_that_lie_turned():
    shapes = (2, 37, 3, 7), (2, 3, 7, 41), (2, 41, 3, 5)

    def body(bb, q, k, v):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        rows, values = (e("permute_dims", t, axes=(0, 2, 1, 3)) for t in (q, v))
        return e("matmul", e("nn.softmax", e("matmul", rows, k), axis=-1), values)

    mod = function([graph.TensorInfo(s, F32) for s in shapes], body)
    assert kernels(mod) == ["attention"]
    x = arrays(*shapes)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


@pytest.mark.parametrize("turned", [(2,), (0, 2), (0, 1, 2), (1,)])
@pytest.mark.parametrize("batch", [(), (3,), (1, 8), (2, 1, 3)])
def test_operands_that_lie_turned_are_scheduled_too(batch, turned):
    shapes = [(*batch, 17, 12), (*batch, 21, 12), (*batch, 21, 20)]
    last = (*range(len(batch)), len(batch) + 1, len(batch))

    def body(bb, *x):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        q, k, v = (e("permute_dims", t, axes=last) if i in turned else t for i, t in enumerate(x))
        weights = e("nn.softmax", e("matmul", q, e("permute_dims", k, axes=last)), axis=-1)
        return e("permute_dims", e("matmul", weights, v), axes=last)  # the result too

    stored = [(*batch, s[-1], s[-2]) if i in turned else s for i, s in enumerate(shapes)]
    mod = function([graph.TensorInfo(s, F32) for s in stored], body)
    assert kernels(mod).count("attention") == 1 and not {"rows", "fallback", "columns"} & set(kernels(mod))
    if len(batch) == 1:
        x = arrays(*stored)
        same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


def test_one_tensor_for_queries_keys_and_values():
    def body(bb, x):
        weights = bb.emit(make("nn.softmax", bb.emit(make("matmul", x, bb.emit(make("permute_dims", x, axes=(0, 2, 1))))), axis=-1))
        return bb.emit(make("matmul", weights, x))

    mod = function([graph.TensorInfo((2, 19, 19), F32)], body)
    assert not any("softmax_matmul" in name for name in prepare(mod))
    (x,) = arrays((2, 19, 19))
    same(build_module(mod)["main"](x), interpret(mod)["main"](x))


@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 1, 2, 3)])
def test_queries_keys_and_values_in_one_tensor(order):
    def body(bb, x):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        q, k, v = (e("squeeze", e("strided_slice", x, axes=(0,), begin=(i,), end=(i + 1,)), axis=(0,)) for i in range(3))
        return e("matmul", e("nn.softmax", e("matmul", q, e("permute_dims", k, axes=order)), axis=-1), v)

    shape = (3, 2, 4, 17, 17)  # as wide as long, so that keys fit turned and not
    mod = function([graph.TensorInfo(shape, F32)], body)
    assert "attention" in kernels(mod)
    (x,) = arrays(shape)
    same(build_module(mod)["main"](x), interpret(mod)["main"](x))


@pytest.mark.parametrize(
    ("q", "keys", "heads", "columns"),
    [((1, 32, 2, 16), 32, 2, 16), ((2, 37, 3, 7), 41, 3, 5), ((1, 9, 4, 64), 130, 2, 80), ((1, 33, 2, 80), 16, 1, 24)],
)
def test_sizes(q, keys, heads, columns):
    shapes = q, (q[0], keys, heads, q[3]), (q[0], keys, heads, columns)
    mod = chain(*shapes)
    assert kernels(mod) == ["attention"]
    x = arrays(*shapes)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


def test_heads_that_serve_a_group_are_read_as_they_lie():
    shapes = (1, 17, 6, 8), (1, 20, 2, 8), (1, 20, 2, 8)
    x = arrays(*shapes)
    want = interpret(chain(*shapes))["main"](*x)
    for groups in GROUPS:
        mod = chain(*shapes, groups=groups)
        assert kernels(mod) == ["attention"]
        same(build_module(mod)["main"](*x), want)


def test_one_of_everything():
    for q, keys, width in (((1, 50, 1, 1), 1, 1), ((1, 1, 1, 1), 9, 1), ((2, 16, 1, 1), 16, 1)):
        shapes = q, (q[0], keys, 1, q[3]), (q[0], keys, 1, width)
        mod, x = chain(*shapes), arrays(*shapes)
        same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


def test_masks():
    q = (1, 21, 2, 4)
    draw = np.random.default_rng(1)
    seen = draw.random((1, 2, 21, 21)) < 0.6
    seen[0, 0, 3] = False
    x = arrays(q, q, q)
    mod = chain(q, q, q, ((1, 2, 21, 21), "bool"), zero="nan", after=3.0)
    assert kernels(mod) == ["elementwise", "attention"]  # the mask is transposed first
    out = agree(mod, (*x, seen))
    assert (out[0, 3, 0] == 0).all() and not np.isnan(out).any()
    x[0][0, 9, 1, 0] = np.nan
    got = build_module(chain(q, q, q, ((1, 2, 21, 21), "bool"), zero="empty"))["main"](*x, seen)
    assert (got[0, 3, 0] == 0).all() and np.isnan(got[0, 9, 1]).all() and np.isnan(got).sum() == 4
    x[0][0, 9, 1, 0] = 0
    out = build_module(chain(q, q, q, ((1, 2, 21, 21), "bool")))["main"](*x, seen)
    assert np.isnan(out[0, 3, 0]).all() and np.isnan(out).sum() == 4  # of a row that sees nothing, as softmax has it
    bias = np.where(draw.random((1, 1, 1, 21)) < 0.3, -1e9, draw.standard_normal((1, 1, 1, 21))).astype(F32)
    agree(chain(q, q, q, ((1, 1, 1, 21), F32)), (*x, bias))


def test_nans_and_infinities_stay_in_their_rows():
    q = (1, 40, 1, 16)
    x = arrays(q, q, q)
    x[0][0, 5, 0, 3], x[0][0, 7, 0, 0] = np.nan, np.inf
    mod = chain(q, q, q)
    got, want = build_module(mod)["main"](*x), interpret(mod)["main"](*x)
    same(got, want, 1e-5)
    assert np.isnan(got[0, [5, 7]]).all() and np.isfinite(np.delete(got, [5, 7], 1)).all()


def test_symbolic_lengths():
    b, n, m = (tir.Var(name, INT64, True) for name in "bnm")
    shapes = (b, n, 2, 16), (b, m, 2, 16), (b, m, 2, 16)
    mod = chain(*shapes, ((b, 1, 1, m), F32))
    assert "attention" in kernels(mod)
    native, oracle = build_module(mod)["main"], interpret(mod)["main"]
    for batch, rows, keys in ((1, 1, 1), (2, 33, 17), (1, 64, 130), (1, 31, 5), (3, 5, 0), (0, 4, 4), (2, 0, 3)):
        x = arrays((batch, rows, 2, 16), (batch, keys, 2, 16), (batch, keys, 2, 16), (batch, 1, 1, keys))
        same(native(*x), oracle(*x), 1e-5)


def test_keys_and_values_in_one_tensor_whose_length_follows_from_another():
    n = tir.Var("n", INT64, True)

    def body(bb, picture):  # of which a seventh of the columns, rounded up, are positions
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        x = e("strided_slice", picture, axes=(2,), begin=(0,), end=(np.iinfo(np.int64).max,), strides=(7,))
        x = e("permute_dims", e("reshape", x, graph.ShapeExpr((2, 3, 4, 15, x.sinfo.shape[2]))), axes=(1, 0, 2, 4, 3))
        q, k, v = (e("squeeze", e("strided_slice", x, axes=(0,), begin=(i,), end=(i + 1,)), axis=(0,)) for i in range(3))
        scores = e("matmul", e("multiply", q, graph.Constant.of(0.25, F32)), e("permute_dims", k, axes=(0, 1, 3, 2)))
        return e("permute_dims", e("matmul", e("nn.softmax", scores, axis=-1), v), axes=(0, 2, 1, 3))

    mod = function([graph.TensorInfo((2, 180, n), F32)], body)
    assert "attention" in kernels(mod)
    native, oracle = build_module(mod)["main"], interpret(mod)["main"]
    for length in (1, 7, 8, 120, 235):
        x = arrays((2, 180, length))
        same(native(*x), oracle(*x), 1e-5)


def test_narrow_types_are_summed_up_in_wide_ones():
    q = (1, 20, 2, 16)
    x = arrays(q, q, q)
    for dtype in ("float16", "bfloat16"):
        mod = chain(q, q, q, dtype=dtype)
        from ml_dtypes import bfloat16

        cast = np.float16 if dtype == "float16" else bfloat16
        got = build_module(mod)["main"](*(a.astype(cast) for a in x)).astype(F32)
        want = build_module(chain(q, q, q))["main"](*x)
        np.testing.assert_allclose(got, want, atol=0.02 if dtype == "bfloat16" else 3e-3)


def test_strict_accuracy_keeps_the_weights():
    q = (1, 32, 2, 16)
    with options.override(accuracy="strict"):
        assert "attention" not in kernels(chain(q, q, q))


@pytest.mark.parametrize(("count", "width"), [(128, 64), (77, 80), (5, 7), (130, 1)])
def test_one_query_is_multiplied_row_by_row(count, width):
    infos = [graph.TensorInfo(s, F32) for s in ((3, count, width), (3, width, 1))]
    mod = function(infos, lambda bb, k, q: bb.emit(make("exp", bb.emit(make("matmul", k, q)))))
    assert width < 8 or kernels(mod) == ["matvec"]
    x = arrays((3, count, width), (3, width, 1))
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x), 2e-5)


def test_every_choice_is_right():
    q = (1, 40, 2, 20)
    mod, x = chain(q, q, q), arrays(q, q, q)
    want = interpret(mod)["main"](*x)
    unscheduled = prepare(mod, pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    for decisions in ({"packed": 1, "block": 1}, {"packed": 0, "block": 4, "rows": 16}, {"packed": 1, "keys": 1, "rows": 1}):
        forced = {n: f.with_attr("decisions", decisions) for n, f in unscheduled.items() if n != "main"}
        after = prepare(unscheduled.with_functions(forced), pipeline=DEFAULT[DEFAULT.index(schedule_module):])
        same(interpret(after)["main"](*x), want)


@pytest.mark.parametrize("zero", ["row", "nan", "empty"])
def test_zeros_times_infinite_values(zero):
    """Rows of which nothing is seen are zeros times the values, which may be infinite."""
    q = (2, 3, 17, 8)
    infos = [graph.TensorInfo(q, F32)] * 3 + [graph.TensorInfo((17, 17), "bool")]

    def body(bb, q, k, v, seen):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        low, none = graph.Constant.of(-np.inf, F32), graph.Constant.of(0.0, F32)
        mask = e("where", seen, none, low)
        scores = e("add", e("matmul", q, e("permute_dims", k, axes=(0, 1, 3, 2))), mask)
        weights = e("nn.softmax", scores, axis=-1)
        largest = {"row": mask, "empty": scores}.get(zero)
        rows = e("isnan", weights) if largest is None else e("equal", e("max", largest, axis=[-1], keepdims=True), low)
        return e("matmul", e("where", rows, none, weights), v)

    mod = function(infos, body)
    assert "attention" in kernels(mod)
    x = [*arrays(q, q, q), np.tril(np.ones((17, 17), bool), -3)]
    x[2][0, 1, 2, 5], x[2][1, 0, 1, 0] = np.inf, np.nan
    got, want = build_module(mod)["main"](*x), interpret(mod)["main"](*x)
    same(got, want, 1e-5)
    assert np.isnan(got[0, 1, :3, 5]).all() and (got[0, 0, :3] == 0).all()


@pytest.mark.parametrize("groups", list(GROUPS))
def test_keys_and_values_are_not_repeated_for_a_few_queries(groups):
    shapes = (2, 1, 6, 16), (2, 21, 2, 16), (2, 21, 2, 16)
    mod = chain(*shapes, groups=groups)
    assert not any("repeat" in name or "broadcast" in name for name in prepare(mod))
    x = arrays(*shapes)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


@pytest.mark.parametrize("batch", [1, 3, "b"])
def test_heads_and_batch_as_one_dimension(batch):
    """Products of three dimensions with the scores reshaped in between, as PyTorch's exporter writes eager attention."""
    b = tir.Var("b", INT64, True) if batch == "b" else tir.index_const(batch)
    n, h, d = tir.Var("n", INT64, True), 4, 16

    def body(bb, q, k, v):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        flat = lambda t, *last: e("reshape", t, graph.ShapeExpr((b * h, *last)))
        scores = e("matmul", flat(q, n, d), e("permute_dims", flat(k, n, d), axes=(0, 2, 1)))
        scores = e("multiply", e("reshape", scores, graph.ShapeExpr((b, h, n, n))), graph.Constant.of(0.25, F32))
        weights = flat(e("nn.softmax", scores, axis=-1), n, n)
        return e("reshape", e("matmul", weights, flat(v, n, d)), graph.ShapeExpr((b, h, n, d)))

    mod = function([graph.TensorInfo((b, h, n, d), F32)] * 3, body)
    assert kernels(mod) == ["attention"]
    x = arrays(*[(2 if batch == "b" else batch, h, 19, d)] * 3)
    same(build_module(mod)["main"](*x), interpret(mod)["main"](*x))


def forced(mod: IRModule, decisions: dict[str, int]) -> IRModule:
    """The module, scheduled with these decisions of the rule for attention."""
    before = prepare(mod, pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    fused = {n: f.with_attr("decisions", decisions) for n, f in before.items() if "softmax_matmul" in n}
    assert fused
    return before.with_functions(fused)


SPANS = {"span": 64, "keys": 4, "block": 1, "rows": 4, "vectors": 1}


@pytest.mark.parametrize(("q", "keys", "more"), [((1, 21, 2, 20), 70, {}), ((1, 65, 2, 16), 128, {"packed": 1, "rows": 8, "block": 2})])
def test_blocks_of_keys(q, keys, more):
    shapes = q, (q[0], keys, q[2], q[3]), (q[0], keys, q[2], 24)
    mod = forced(chain(*shapes), SPANS | more)
    x = arrays(*shapes)
    want = interpret(chain(*shapes))["main"](*x)
    scheduled = prepare(mod, pipeline=DEFAULT[DEFAULT.index(schedule_module):])
    assert any("attention_max_scale" in f.script() for _, f in scheduled.items() if f.attrs.get("scheduled") == "attention")
    same(interpret(scheduled)["main"](*x), want)
    same(build_module(mod)["main"](*x), want)


@pytest.mark.parametrize("zero", ["", "nan", "empty"])
def test_masks_over_blocks_of_keys(zero):
    """Blocks of which a row sees nothing, rows that see nothing, NaN and infinite operands."""
    q, k = (1, 21, 2, 16), (1, 150, 2, 16)
    draw = np.random.default_rng(1)
    seen = draw.random((1, 2, 21, 150)) < 0.6
    seen[0, 0, 3] = False
    seen[0, :, 5, :70] = seen[0, :, 6, 64:] = False
    x = [*arrays(q, k, k), seen]
    x[0][0, 9, 1, 0], x[1][0, 100, 1, 2], x[2][0, 64, 0, 0] = np.nan, np.inf, np.inf
    mod = chain(q, k, k, ((1, 2, 21, 150), "bool"), zero=zero, after=3.0)
    got, want = build_module(forced(mod, SPANS))["main"](*x), interpret(mod)["main"](*x)
    same(got, want, 1e-5)
    assert np.isnan(got[0, 3, 0]).all() == (not zero) and np.isfinite(got[0, [5, 6]][:, 0, 1:]).all()


def test_symbolic_lengths_over_blocks_of_keys():
    b, n, m = (tir.Var(name, INT64, True) for name in "bnm")
    shapes = (b, n, 2, 16), (b, m, 2, 16), (b, m, 2, 16)
    mod = chain(*shapes, ((b, 1, 1, m), F32))
    native, oracle = build_module(forced(mod, SPANS))["main"], interpret(mod)["main"]
    for batch, rows, keys in ((1, 1, 1), (2, 33, 64), (1, 64, 130), (1, 31, 5), (3, 5, 0), (0, 4, 4), (2, 0, 3), (1, 17, 200)):
        x = arrays((batch, rows, 2, 16), (batch, keys, 2, 16), (batch, keys, 2, 16), (batch, 1, 1, keys))
        same(native(*x), oracle(*x), 1e-5)


def test_long_sequences_go_by_blocks_of_keys():
    s = (1, 8192, 2, 64)
    scripts = [f.script() for _, f in prepare(chain(s, s, s)).items() if f.attrs.get("scheduled") == "attention"]
    assert len(scripts) == 1 and "attention_max_scale" in scripts[0]
    s = (1, 128, 2, 64)
    assert not any("attention_max_scale" in f.script() for _, f in prepare(chain(s, s, s)).items() if "scheduled" in f.attrs)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("operand, reached", [(0, np.s_[1, 17, 2]), (1, np.s_[1, :, 2]), (2, np.s_[1, :, 2, 3])])
def test_extreme_numbers_reach_what_reads_them_alone(value, operand, reached):
    """Of a query: its own result; of a key: that of the queries of its head; of a value: one column of these. All else is the same to the bit."""
    shapes = (2, 33, 3, 16), (2, 70, 3, 16), (2, 70, 3, 16)
    mod = chain(*shapes)
    assert kernels(mod) == ["attention"]
    run, x = build_module(mod, threads=1)["main"], arrays(*shapes)
    expected = run(*x)
    x[operand][1, 17, 2, 3] = value
    out, other = run(*x), np.ones(expected.shape, bool)
    other[reached] = False
    assert np.array_equal(out[other], expected[other]) and not np.array_equal(out[reached], expected[reached], equal_nan=True)


FEW = ((1, 8, 8, 64), (1, 512, 8, 64), (1, 512, 8, 64))
UNSCHEDULED = DEFAULT[: DEFAULT.index(schedule_module)]


@pytest.mark.parametrize("cpu, way", [("neoverse-n1", "by_blocks"), ("znver5", "plain")])
def test_a_few_queries_go_by_blocks_where_they_fill_vectors(cpu, way):
    """Four rows fill a vector of four lanes, and a quarter of one of sixteen. What both ways are expected to take is recorded."""
    mod = prepare(chain((1, 4, 8, 64), (1, 64, 8, 64), (1, 64, 8, 64)), target=Target(cpu, cores=1), pipeline=UNSCHEDULED)
    (choice,) = (c for c in mod.choices.made if c.subject.startswith("attention"))
    assert choice.taken == way and set(choice.possible) == {"by_blocks", "plain"} and all(choice.possible.values())


@pytest.mark.parametrize("way", ["by_blocks", "plain"])
def test_either_way_is_had_where_it_is_asked_for(way):
    site = next(c.site for c in prepare(chain(*FEW), pipeline=UNSCHEDULED).choices.made if c.subject.startswith("attention"))
    mod = prepare(chain(*FEW), pipeline=UNSCHEDULED, choices={site: way})
    assert any("softmax_matmul" in name for name in mod.functions) == (way == "by_blocks")


def test_masked_scores_leave_no_subnormal_weights():
    """Masks of -100 would give weights of 1e-44, with which each multiplication takes a hundred cycles on many processors."""
    x = np.tile(np.linspace(-110.0, -86.0, 48, dtype=F32), (16, 1))
    x[:, -1] = 0.0
    whole = lambda bb, x: bb.emit(make("nn.softmax", x, axis=-1))
    columns = lambda bb, x: bb.emit(make("nn.softmax", x, axis=0))
    attention = lambda bb, x, v: bb.emit(make("nn.softmax_matmul", bb.emit(make("permute_dims", x)), v))
    for body, arrays in ((whole, (x,)), (columns, (x.T.copy(),)), (attention, (x, np.eye(48, 16, dtype=F32)))):
        mod = function([graph.TensorInfo(a.shape, F32) for a in arrays], body)
        got, want = build_module(mod)["main"](*arrays), interpret(mod)["main"](*arrays)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=2 * np.finfo(F32).tiny)
        assert not ((got != 0) & (np.abs(got) < np.finfo(F32).tiny)).any()
