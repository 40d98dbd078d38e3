# SPDX-License-Identifier: Apache-2.0
"""Sequences whose length only the run can tell, and inputs that are maps."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import roundel as rd

X = np.random.default_rng(0).normal(size=(5, 3)).astype("f")


def info(name, shape, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, shape)


def seq(name, shape=None, kind=T.FLOAT):
    return h.make_tensor_sequence_value_info(name, kind, shape)


def compiled(nodes, inputs, outputs, **constants):
    made = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    domains = [h.make_opsetid("", 20), h.make_opsetid("ai.onnx.ml", 3)]
    return rd.compile(h.make_model(h.make_graph(nodes, "g", inputs, outputs, made), opset_imports=domains, ir_version=10))


def loop(nodes, states, rows=(), go_on="go"):
    """A Loop's body: ``states`` maps what comes in to what goes out; a state is a sequence where its name begins with s."""
    kind = lambda name: seq(name) if name.startswith("s") else info(name, None)
    inputs = [info("i", [], T.INT64), info("go", [], T.BOOL), *map(kind, states)]
    outputs = [info("go_on", [], T.BOOL), *map(kind, states.values()), *(info(r, None) for r in rows)]
    return h.make_graph([*nodes, h.make_node("Identity", [go_on], ["go_on"])], "body", inputs, outputs)


def same(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_loop_appends():
    body = loop([h.make_node("Gather", ["x", "i"], ["r"]), h.make_node("SequenceInsert", ["s", "r"], ["s2"])], {"s": "s2"})
    f = compiled([h.make_node("SequenceEmpty", [], ["s0"]), h.make_node("Loop", ["k", "", "s0"], ["s1"], body=body),
                  h.make_node("SequenceLength", ["s1"], ["n"]), h.make_node("ConcatFromSequence", ["s1"], ["y"], axis=-1, new_axis=1),
                  h.make_node("ConcatFromSequence", ["s1"], ["z"], axis=0)],
                 [info("x", ["a", 3]), info("k", [], T.INT64)], [seq("s1"), info("n", [], T.INT64), info("y", None), info("z", None)])
    for k in (4, 1, 0):
        items, n, y, z = f(X, np.int64(k))
        same(items, list(X[:k]))
        assert n == k
        np.testing.assert_array_equal(y, X[:k].T)
        np.testing.assert_array_equal(z, X[:k].reshape(-1))


def test_a_loop_appends_what_its_data_says():
    then = h.make_graph([h.make_node("SequenceInsert", ["s", "r"], ["t"])], "t", [], [seq("t")])
    other = h.make_graph([h.make_node("Identity", ["s"], ["e"])], "e", [], [seq("e")])
    body = loop([h.make_node("Gather", ["x", "i"], ["r"]), h.make_node("ReduceSum", ["r"], ["q"], keepdims=0), h.make_node("Greater", ["q", "zero"], ["p"]),
                 h.make_node("If", ["p"], ["s2"], then_branch=then, else_branch=other)], {"s": "s2"})
    f = compiled([h.make_node("SequenceEmpty", [], ["s0"]), h.make_node("Shape", ["x"], ["k0"], start=0, end=1), h.make_node("Squeeze", ["k0"], ["k"]),
                  h.make_node("Loop", ["k", "", "s0"], ["s1"], body=body)], [info("x", ["a", 3])], [seq("s1")], zero=np.float32(0))
    for x in (X, -X, X[:1] * 0, X[:0]):
        same(f(x), [r for r in x if r.sum() > 0])


def test_a_loop_inserts_in_front_until_its_data_ends_it():
    nodes = [h.make_node("Gather", ["x", "i"], ["r"]), h.make_node("Add", ["acc", "r"], ["acc2"]), h.make_node("SequenceInsert", ["s", "acc2", "zero"], ["s2"]),
             h.make_node("SequenceLength", ["s2"], ["len"]), h.make_node("ReduceSum", ["acc2"], ["t"], keepdims=0), h.make_node("Less", ["t", "lim"], ["c"])]
    f = compiled([h.make_node("SequenceConstruct", ["a0", "a0"], ["s0"]),
                  h.make_node("Loop", ["k", "", "a0", "s0"], ["last", "s1", "lens"], body=loop(nodes, {"acc": "acc2", "s": "s2"}, ["len"], "c"))],
                 [info("x", ["a", 3]), info("a0", [3]), info("k", [], T.INT64), info("lim", [])],
                 [info("last", [3]), seq("s1"), info("lens", None, T.INT64)], zero=np.int64(0))
    for k, limit in ((4, 100), (5, 3), (0, 9)):
        acc = np.ones(3, "f")
        want, count = [acc, acc], 0
        while count < k:
            acc, count = acc + X[count], count + 1
            want.insert(0, acc)
            if not acc.sum() < limit:
                break
        last, items, lengths = f(X, np.ones(3, "f"), np.int64(k), np.float32(limit))
        np.testing.assert_allclose(last, acc, rtol=1e-6)
        same(items, want)
        np.testing.assert_array_equal(lengths, np.arange(count) + 3)


def test_a_loop_takes_away():
    body = loop([h.make_node("SequenceAt", ["s", "end"], ["r"]), h.make_node("SequenceErase", ["s"], ["s2"])], {"s": "s2"}, ["r"])
    f = compiled([h.make_node("SplitToSequence", ["x"], ["s0"], keepdims=0), h.make_node("Loop", ["k", "", "s0"], ["s1", "rows"], body=body)],
                 [info("x", ["a", 3]), info("k", [], T.INT64)], [seq("s1"), info("rows", None)], end=np.int64(-1))
    for k in (4, 1, 5):
        items, rows = f(X, np.int64(k))
        same(items, list(X[:5 - k]))
        np.testing.assert_array_equal(rows, X[::-1][:k])
    with pytest.raises(rd.RoundelError, match="position is in the sequence"):
        f(X[:2], np.int64(3))


def test_map_over_a_split():
    body = h.make_graph([h.make_node("Add", ["r", "w"], ["q"]), h.make_node("ReduceMax", ["q"], ["u"], keepdims=0)], "b",
                        [info("r", [1, 3]), info("w", [3])], [info("q", [1, 3]), info("u", [])])
    f = compiled([h.make_node("SplitToSequence", ["x"], ["s0"]), h.make_node("SequenceMap", ["s0", "w"], ["s1", "s2"], body=body),
                  h.make_node("SequenceAt", ["s1", "p"], ["y"]), h.make_node("ConcatFromSequence", ["s1"], ["z"], axis=-1)],
                 [info("x", ["a", 3]), info("w", [3]), info("p", [], T.INT64)], [seq("s2"), info("y", None), info("z", None)])
    for x, p in ((X, -2), (X[:2], 1)):
        most, y, z = f(x, X[0], np.int64(p))
        same(most, list((x + X[0]).max(1)))
        np.testing.assert_array_equal(y, (x + X[0])[p][None])
        np.testing.assert_array_equal(z, (x + X[0]).reshape(1, -1))


def test_pieces_of_a_size_that_the_run_tells():
    f = compiled([h.make_node("SplitToSequence", ["x", "k"], ["s"], axis=0), h.make_node("ConcatFromSequence", ["s"], ["z"], axis=1)],
                 [info("x", ["a", 3]), info("k", [], T.INT64)], [seq("s"), info("z", None)])
    items, z = f(X[:4], np.int64(2))
    same(items, [X[:2], X[2:4]])
    np.testing.assert_array_equal(z, np.concatenate([X[:2], X[2:4]], 1))
    for k in (2, 0):
        with pytest.raises(rd.RoundelError, match="SplitToSequence -> s: "):
            f(X, np.int64(k))
    f = compiled([h.make_node("SplitToSequence", ["x", "k"], ["s"])], [info("x", ["a", 3]), info("k", [2], T.INT64)], [seq("s")])
    same(f(X, np.int64([5, 0])), [X, X[:0]])
    with pytest.raises(rd.RoundelError, match="sum of the pieces"):
        f(X, np.int64([2, 2]))


def test_sequences_as_inputs():
    f = compiled([h.make_node("ConcatFromSequence", ["s"], ["y"], axis=1), h.make_node("SequenceErase", ["s", "p"], ["t"]),
                  h.make_node("SequenceInsert", ["t", "e", "p"], ["u"])],
                 [seq("s", [2, 3]), info("p", [], T.INT64), info("e", [2, 3])], [info("y", None), seq("t"), seq("u")])
    items = list(np.random.default_rng(1).normal(size=(6, 2, 3)).astype("f"))
    for p in (1, 4, 0):
        y, left, more = f(items, np.int64(p), items[0] + 1)
        np.testing.assert_array_equal(y, np.concatenate(items, 1))
        same(left, items[:p] + items[p + 1:])
        same(more, [*items[:p], items[0] + 1, *items[p + 1:]])
    with pytest.raises(rd.RoundelError, match="different shapes"):
        f([items[0], items[1][:1]], np.int64(0), items[0])
    f = compiled([h.make_node("SequenceLength", ["s"], ["n"]), h.make_node("Identity", ["s"], ["t"])], [seq("s", [], T.STRING)],
                 [info("n", [], T.INT64), seq("t", None, T.STRING)])
    n, texts = f([np.array("u"), np.array("v")])
    assert (n, texts) == (2, ["u", "v"])
    assert f([])[0] == 0


def test_branches_give_sequences():
    then = h.make_graph([h.make_node("SplitToSequence", ["x"], ["t"], keepdims=0)], "t", [], [seq("t")])
    other = h.make_graph([h.make_node("SequenceConstruct", ["w"], ["e"])], "e", [], [seq("e")])
    f = compiled([h.make_node("If", ["k"], ["s"], then_branch=then, else_branch=other), h.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)],
                 [info("k", [], T.BOOL), info("x", ["a", 3]), info("w", [3])], [info("y", None)])
    np.testing.assert_array_equal(f(np.array(True), X, X[0]), X.reshape(-1))
    np.testing.assert_array_equal(f(np.array(False), X, X[0]), X[0])
    then, other = (h.make_graph([h.make_node("SequenceConstruct", ["w", item], [name])], name, [], [seq(name)]) for item, name in (("x", "t"), ("w", "e")))
    f = compiled([h.make_node("If", ["k"], ["s"], then_branch=then, else_branch=other)], [info("k", [], T.BOOL), info("x", ["a"]), info("w", [3])], [seq("s")])
    same(f(np.array(True), X[0, :2], X[0]), [X[0], X[0, :2]])
    same(f(np.array(False), X[0, :2], X[0]), [X[0], X[0]])


@pytest.mark.parametrize("kind, attributes, given, want", [
    ("DictVectorizer", {"string_vocabulary": ["a", "b", "zz"]}, {"zz": 2.5, "a": 1.0, "q": 9.0}, [1, 0, 2.5]),
    ("DictVectorizer", {"int64_vocabulary": [4, 9]}, {9: 2.5}, [0, 2.5]),
    ("DictVectorizer", {"int64_vocabulary": [4, 9]}, {}, [0, 0]),
    ("CastMap", {"cast_to": "TO_FLOAT"}, {9: 2.5, 1: 3.5}, [3.5, 2.5]),
    ("CastMap", {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 6}, {5: 2.5, 1: 3.5}, [0, 3, 0, 0, 0, 2])])
def test_maps_as_inputs(kind, attributes, given, want):
    key = T.STRING if "string_vocabulary" in attributes else T.INT64
    map_type = h.make_map_type_proto(key, h.make_tensor_type_proto(T.FLOAT, []))
    result = T.INT64 if attributes.get("cast_to") == "TO_INT64" else T.FLOAT
    f = compiled([h.make_node(kind, ["d"], ["y"], domain="ai.onnx.ml", **attributes)], [h.make_value_info("d", map_type)], [info("y", None, result)])
    np.testing.assert_array_equal(f(given), [want])
