# SPDX-License-Identifier: Apache-2.0
"""Branches and loops that are decided when the model runs."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import roundel as rd


def info(name, shape, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=()):
    return h.make_model(h.make_graph(nodes, "g", inputs, outputs, list(constants)), opset_imports=[h.make_opsetid("", 20)])


def test_branches_of_different_shapes():
    then = h.make_graph([h.make_node("Relu", ["x"], ["t"])], "t", [], [info("t", None)])
    other = h.make_graph([h.make_node("Concat", ["x", "x"], ["e"], axis=0)], "e", [], [info("e", None)])
    node = h.make_node("If", ["k"], ["i"], then_branch=then, else_branch=other)
    f = rd.compile(model([node, h.make_node("Neg", ["i"], ["y"])], [info("k", [], T.BOOL), info("x", ["n", 2])], [info("y", None)]))
    x = np.random.default_rng(0).normal(size=(3, 2)).astype("f")
    np.testing.assert_array_equal(f(np.array(True), x), -np.maximum(x, 0))
    np.testing.assert_array_equal(f(np.array(False), x), -np.concatenate([x, x]))


@pytest.mark.parametrize("kind, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_networks_of_any_length(kind, gates):
    rng = np.random.default_rng(1)
    w, r = (numpy_helper.from_array(rng.normal(size=(2, gates * 4, k)).astype("f"), n) for n, k in (("w", 3), ("r", 4)))
    node = h.make_node(kind, ["x", "w", "r"], ["y", "h"], hidden_size=4, direction="bidirectional")
    m = model([node], [info("x", ["t", 2, 3])], [info("y", None), info("h", None)], [w, r])
    fixed = model([node], [info("x", [6, 2, 3])], [info("y", None), info("h", None)], [w, r])
    f, unrolled = rd.compile(m), rd.compile(fixed)
    for length in (1, 6, 70):
        x = rng.normal(size=(length, 2, 3)).astype("f")
        got = f(x)
        assert got[0].shape == (length, 2, 2, 4)
        if length == 6:
            for a, b in zip(got, unrolled(x), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        if kind == "RNN" and length == 1:
            want = np.tanh(x[0] @ numpy_helper.to_array(w)[0].T)
            np.testing.assert_allclose(got[1][0], want, rtol=1e-5, atol=1e-6)


def test_a_loop_whose_count_is_known_when_it_runs():
    body = h.make_graph(
        [h.make_node("Identity", ["go"], ["go_on"]), h.make_node("Mul", ["s", "two"], ["n"]), h.make_node("Identity", ["n"], ["row"])],
        "body", [info("i", [], T.INT64), info("go", [], T.BOOL), info("s", [2])], [info("go_on", [], T.BOOL), info("n", [2]), info("row", [2])])
    m = model([h.make_node("Loop", ["k", "", "x"], ["last", "rows"], body=body)], [info("k", [], T.INT64), info("x", [2])],
              [info("last", [2]), info("rows", None)], [numpy_helper.from_array(np.float32(2), "two")])
    f = rd.compile(m)
    for k in (0, 1, 5):
        args = {"k": np.array(k), "x": np.float32([1, 3])}
        got = f(*args.values())
        np.testing.assert_array_equal(got[0], args["x"] * 2**k)
        assert got[1].shape == (k, 2)
        np.testing.assert_array_equal(got[1], args["x"] * 2.0 ** np.arange(1, k + 1)[:, None])


@pytest.mark.parametrize("known", ["when it runs", "as a size", "from the model"])
@pytest.mark.parametrize("go_on", [None, "yes", "go"])
@pytest.mark.parametrize("count", [2, 0, -1, -(2**40)])
def test_a_negative_number_of_iterations_is_none(count, go_on, known):
    body = h.make_graph(
        [h.make_node("Identity", ["more"], ["again"]), h.make_node("Add", ["s", "s"], ["n"]), h.make_node("Identity", ["s"], ["row"])],
        "body", [info("i", [], T.INT64), info("more", [], T.BOOL), info("s", [2])], [info("again", [], T.BOOL), info("n", [2]), info("row", [2])])
    loop = h.make_node("Loop", ["count", go_on or "", "x"], ["last", "rows"], body=body)
    size = [h.make_node("Shape", ["t"], ["length"]), h.make_node("Squeeze", ["length"], ["one"]), h.make_node("Add", ["one", "more_than_length"], ["count"])]
    here = {"when it runs": "count", "from the model": "count", "as a size": "more_than_length"}[known]
    constants = [numpy_helper.from_array(np.array(True), "yes"), numpy_helper.from_array(np.int64(count - 3 if known == "as a size" else count), here)]
    inputs, values = [info("x", [2]), info("go", [], T.BOOL), info("t", ["t"])], [np.float32([1, 3]), np.array(True), np.zeros(3, "f")]
    if known == "when it runs":
        inputs, values, constants = [*inputs, info("count", [], T.INT64)], [*values, np.array(count)], constants[:1]
    m = model([*(size if known == "as a size" else ()), loop], inputs, [info("last", [2]), info("rows", ["k", 2])], constants)
    m.ir_version = 10
    session = onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {i.name: v for i, v in zip(inputs, values, strict=True)})
    for got, want in zip(rd.compile(m)(*values), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_branches_of_different_ranks_are_assumed_and_checked():
    """``x.squeeze(2)`` as exporters write it, followed by what only one rank allows."""
    then = h.make_graph([h.make_node("Squeeze", ["x", "two"], ["t"])], "t", [], [info("t", None)])
    other = h.make_graph([h.make_node("Identity", ["x"], ["e"])], "e", [], [info("e", None)])
    nodes = [h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "place"], ["n"]), h.make_node("Equal", ["n", "one"], ["k"]),
             h.make_node("If", ["k"], ["i"], then_branch=then, else_branch=other), h.make_node("Transpose", ["i"], ["y"], perm=[1, 0])]
    constants = [numpy_helper.from_array(np.asarray(v, np.int64), n) for n, v in (("two", [2]), ("place", 2), ("one", 1))]
    f = rd.compile(model(nodes, [info("x", ["a", "b", "c"])], [info("y", None)], constants))
    x = np.random.default_rng(2).normal(size=(3, 4, 1)).astype("f")
    np.testing.assert_array_equal(f(x), x[..., 0].T)
    with pytest.raises(rd.RoundelError, match="branch of"):
        f(np.ones((3, 4, 2), "f"))


@pytest.mark.parametrize("limit", [None, 1 << 62, "k"])
def test_a_loop_that_its_data_ends(limit):
    """Doubles while the sum is below a bound, as ``while`` of PyTorch is exported."""
    body = h.make_graph(
        [h.make_node("Mul", ["s", "two"], ["n"]), h.make_node("ReduceSum", ["n"], ["t"], keepdims=0), h.make_node("Less", ["t", "bound"], ["go_on"])],
        "body", [info("i", [], T.INT64), info("go", [], T.BOOL), info("s", [2])], [info("go_on", [], T.BOOL), info("n", [2])])
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in (("two", np.float32(2)), ("limit", np.int64(limit if isinstance(limit, int) else 0)))]
    trips = "" if limit is None else "k" if limit == "k" else "limit"
    nodes = [h.make_node("ReduceSum", ["x"], ["s0"], keepdims=0), h.make_node("Less", ["s0", "bound"], ["start"]),
             h.make_node("Loop", [trips, "start", "x"], ["last"], body=body)]
    inputs = [info("x", [2]), info("bound", []), *([info("k", [], T.INT64)] if limit == "k" else [])]
    f = rd.compile(model(nodes, inputs, [info("last", [2])], constants))
    for bound, k in ((50, 100), (50, 2), (1, 100), (50, 0)):
        x, want, n = np.array([1, 2], "f"), np.array([1, 2], "f"), 0
        while want.sum() < bound and (limit != "k" or n < k):
            want, n = want * 2, n + 1
        np.testing.assert_array_equal(f(x, np.float32(bound), *([np.int64(k)] if limit == "k" else [])), want)


def test_rows_of_a_loop_that_its_data_ends():
    body = h.make_graph(
        [h.make_node("Mul", ["s", "two"], ["n"]), h.make_node("Less", ["n", "bound"], ["go_on"]), h.make_node("Neg", ["n"], ["row"])],
        "body", [info("i", [], T.INT64), info("go", [], T.BOOL), info("s", [])], [info("go_on", [], T.BOOL), info("n", []), info("row", [])])
    constants = [numpy_helper.from_array(np.float32(2), "two"), numpy_helper.from_array(np.int64(9), "nine"), numpy_helper.from_array(np.asarray(True), "yes")]
    f = rd.compile(model([h.make_node("Loop", ["nine", "yes", "x"], ["last", "rows"], body=body)], [info("x", []), info("bound", [])],
                         [info("last", []), info("rows", None)], constants))
    for bound, count in ((20, 5), (1, 1), (1e9, 9)):
        last, rows = f(np.float32(1), np.float32(bound))
        np.testing.assert_array_equal(rows, -(2.0 ** np.arange(1, count + 1, dtype="f")))
        assert last == 2.0**count


GROWING = {
    "grows": ("", """last = Loop(m, yes, x)<body = b (int64 i, bool ci, float[p,2] s) => (bool co, float[q,2] so) {
        co = Identity(ci) t = ReduceSum<keepdims=1>(s, zero) so = Concat<axis=0>(s, t) }>""",
              lambda x, m: _times(m, x, lambda s, i: np.concatenate([s, s.sum(0, keepdims=True)]))),
    "grows where a branch says so": ("", """last = Loop(m, yes, x)<body = b (int64 i, bool ci, float[p,2] s) => (bool co, float[q,2] so) {
        co = Identity(ci) odd = Mod(i, two) c = Cast<to=9>(odd)
        so = If(c)<then_branch = tb () => (float[u,2] o1) { o1 = Concat<axis=0>(s, x) }, else_branch = eb () => (float[v,2] o2) { o2 = Neg(s) }> }>""",
                                     lambda x, m: _times(m, x, lambda s, i: np.concatenate([s, x]) if i % 2 else -s)),
    "what the data leaves": ("", """flat = Reshape(x, minus)
        last = Loop(m, yes, flat)<body = b (int64 i, bool ci, float[p] s) => (bool co, float[q] so) {
        mean = ReduceMean<keepdims=0>(s) k = GreaterOrEqual(s, mean) so = Compress(s, k) n = Size(so) co = Greater(n, one) }>""",
                             lambda x, m: _times(m, x.reshape(-1), lambda s, i: s[s >= s.mean()] if i == 0 or len(s) > 1 else s)),
    "two that change places": ("", """w = Concat<axis=0>(x, x)
        last, other = Loop(m, yes, x, w)<body = b (int64 i, bool ci, float[p,2] u, float[q,2] v) => (bool co, float[r,2] un, float[s,2] vn) {
        co = Identity(ci) un = Identity(v) vn = Concat<axis=0>(u, v) }>""",
                               lambda x, m: _times(m, (x, np.concatenate([x, x])), lambda s, i: (s[1], np.concatenate(s)))[0]),
    "with rows": (", float[t] rows", """last, rows = Loop(m, yes, x)<body = b (int64 i, bool ci, float[p,2] s) => (bool co, float[q,2] so, float row) {
        co = Identity(ci) row = ReduceMax<keepdims=0>(s) so = Concat<axis=0>(s, s) }>""",
                  lambda x, m: (_times(m, x, lambda s, i: np.concatenate([s, s])), np.full(m, x.max(initial=-np.inf), "f"))),
}


def _times(count, state, step):
    for i in range(count):
        state = step(state, i)
    return state


@pytest.mark.parametrize("name", GROWING)
def test_a_state_whose_size_changes(name):
    more, text, want = GROWING[name]
    f = rd.compile(onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 20]> g (float[n,2] x, int64 m) => (float[a,b] last{more})
        <bool yes = {{1}}, int64[1] zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64[1] minus = {{-1}}> {{ {text} }}"""))
    for rows, count in ((3, 4), (1, 1), (2, 0)):
        x = np.random.default_rng(rows).standard_normal((rows, 2)).astype("f")
        got, expected = f(x, np.int64(count)), want(x, count)
        for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, expected)), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-5)
