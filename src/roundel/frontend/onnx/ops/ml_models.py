# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml's linear models and support vector machines, and how scores become labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ....ir.dataclass import dataclass
from ....ops.loops import for_each, let, load, store, when
from ....runtime.text import numbers_of
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like
from .ml import ML, floats


@dataclass(frozen=True)
class Labels:
    """The classes of a classifier: integers, or numbers that stand for strings."""

    values: np.ndarray
    is_text: bool

    def of(self, node: NodeContext, index: Any) -> Any:
        """The labels at these positions."""
        out = node.make("take", graph.Constant.of(self.values), index, axis=0) if len(self.values) else index
        return node.text(out) if self.is_text else out


def labels_of(node: NodeContext, ints: str = "classlabels_int64s") -> Labels:
    """What the attributes of a classifier name."""
    names = node.attr("classlabels_strings", None)
    return Labels(numbers_of(names), True) if names else Labels(np.asarray(node.attr(ints, []) or [], np.int64), False)


def two_classes(node: NodeContext, score: Any, labels: Labels, kind: str, *, threshold: float, complement: bool) -> Any:
    """Label and scores from one score (rows, 1): the second class where it is above the threshold. The other class's score is what
    remains to 1 (``complement``, unless there is a transform), or the opposite."""
    index = node.make("astype", node.make("greater", node.make("squeeze", score, axis=(1,)), const_like(threshold, score)), dtype="int64")
    if kind == "PROBIT":
        return labels.of(node, index), transformed(node, score, kind)
    other = node.make("subtract", const_like(1, score), score) if complement and kind == "NONE" else node.make("negative", score)
    both = node.make("concat", graph.Tuple((other, score)), axis=1)
    return labels.of(node, index), transformed(node, both, kind)


def _product(node: NodeContext, x: Value, rows: int) -> Any:
    weights = np.asarray(node.attr("coefficients"), np.float32).reshape(rows, -1)
    out = node.make("matmul", node.make("astype", x.expr, dtype="float32"), graph.Constant.of(np.ascontiguousarray(weights.T)))
    bias = node.attr("intercepts", None)
    return node.make("add", out, floats(bias)) if bias else out


@converter("LinearRegressor", domain=ML)
def _linear_regressor(node: NodeContext, x: Value) -> Any:
    return transformed(node, _product(node, x, node.attr("targets", 1)), node.attr("post_transform", "NONE"))


@converter("LinearClassifier", domain=ML)
def _linear_classifier(node: NodeContext, x: Value) -> Any:
    labels, kind = labels_of(node, "classlabels_ints"), node.attr("post_transform", "NONE")
    columns = x.expr.sinfo.shape[-1]
    if not isinstance(columns, tir.IntImm):
        raise node.unsupported("a linear model of an unknown number of columns")
    count = len(node.attr("coefficients")) // max(columns.value, 1)
    scores = _product(node, x, count)
    if count == 1 and len(labels.values) == 2:
        return two_classes(node, scores, labels, kind, threshold=0.0, complement=True)
    return labels.of(node, node.make("argmax", scores, axis=1, keepdims=False)), transformed(node, scores, kind)


def transformed(node: NodeContext, v: Any, kind: str) -> Any:
    """Scores after a ``post_transform``."""
    if kind == "NONE":
        return v
    if kind == "LOGISTIC":
        return node.make("sigmoid", v)
    if kind == "SOFTMAX":
        return node.make("nn.softmax", v, axis=-1)
    if kind == "SOFTMAX_ZERO":
        zero = node.make("equal", v, const_like(0, v))
        hidden = node.make("where", zero, const_like(-np.inf, v), v)
        return node.make("where", zero, const_like(0, v), node.make("nn.softmax", hidden, axis=-1))
    if kind == "PROBIT":
        return _probit(node, v)
    raise node.unsupported(f"post_transform {kind!r}")


def _probit(node: NodeContext, v: Any) -> Any:
    """The quantile of the normal distribution, by the approximation of the inverse error function (Winitzki) that the standard's
    reference and ONNX Runtime have."""
    c = lambda k: const_like(k, v)
    x = node.make("subtract", node.make("multiply", v, c(2)), c(1))
    log = node.make("log", node.make("multiply", node.make("subtract", c(1), x), node.make("add", c(1), x)))
    half = node.make("add", c(2 / (3.14159 * 0.147)), node.make("multiply", log, c(0.5)))
    inner = node.make("subtract", node.make("multiply", half, half), node.make("multiply", log, c(1 / 0.147)))
    size = node.make("sqrt", node.make("subtract", node.make("sqrt", inner), half))
    return node.make("multiply", node.make("where", node.make("less", x, c(0)), node.make("negative", size), size), c(1.41421356))


# ---- support vector machines


def _kernel(node: NodeContext, x: Any, vectors: np.ndarray) -> Any:
    """(rows, vectors): how near each row is to each support vector."""
    kind = node.attr("kernel_type", "LINEAR")
    gamma, coef, degree = (*node.attr("kernel_params", []), 0.0, 0.0, 0.0)[:3]
    scaled = lambda v, k: node.make("multiply", v, const_like(k, v))
    if kind == "RBF":
        gap = node.make("subtract", node.make("expand_dims", x, axis=(1,)), graph.Constant.of(vectors[None]))
        return node.make("exp", scaled(node.make("sum", node.make("multiply", gap, gap), axis=(2,), keepdims=False), -gamma))
    product = node.make("matmul", x, graph.Constant.of(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return product
    product = node.make("add", scaled(product, gamma), const_like(coef, product))
    if kind == "POLY":
        return node.make("power", product, const_like(degree, product))
    if kind == "SIGMOID":
        return node.make("tanh", product)
    raise node.unsupported(f"kernel {kind!r}")


def _weighted(node: NodeContext, k: Any, weights: np.ndarray, shift: np.ndarray) -> Any:
    """``k`` times columns of weights, plus a shift of each."""
    return node.make("add", node.make("matmul", k, graph.Constant.of(np.ascontiguousarray(weights, np.float32))), floats(shift))


@converter("SVMRegressor", domain=ML)
def _svm_regressor(node: NodeContext, x: Value) -> Any:
    v = node.make("astype", x.expr, dtype="float32")
    count, weights = node.attr("n_supports", 0), np.asarray(node.attr("coefficients"), np.float32)
    shift = np.asarray(node.attr("rho", [0.0])[:1], np.float32)
    if count:
        v = _kernel(node, v, np.asarray(node.attr("support_vectors"), np.float32).reshape(count, -1))
    out = _weighted(node, v, weights.reshape(-1, 1), shift)
    if node.attr("one_class", 0):
        inside = node.make("greater", out, const_like(0, out))
        return node.make("where", inside, const_like(1, out), const_like(-1, out))
    return transformed(node, out, node.attr("post_transform", "NONE"))


@converter("SVMClassifier", domain=ML)
def _svm_classifier(node: NodeContext, x: Value) -> Any:
    labels, kind = labels_of(node, "classlabels_ints"), node.attr("post_transform", "NONE")
    v, count = node.make("astype", x.expr, dtype="float32"), max(len(labels.values), 1)
    sizes, rho = node.attr("vectors_per_class", []) or [], np.asarray(node.attr("rho"), np.float32)
    weights = np.asarray(node.attr("coefficients"), np.float32)
    if not sum(sizes):  # a linear machine, a row of weights for each class
        scores = _weighted(node, v, weights.reshape(count, -1).T, np.repeat(rho[:1], count))
        return labels.of(node, node.make("argmax", scores, axis=1, keepdims=False)), transformed(node, scores, kind)
    vectors = np.asarray(node.attr("support_vectors"), np.float32).reshape(sum(sizes), -1)
    duels = [(i, j) for i in range(count) for j in range(i + 1, count)]
    columns, edges = np.zeros((sum(sizes), len(duels)), np.float32), np.cumsum([0, *sizes])
    table = weights.reshape(-1, sum(sizes))
    for k, (i, j) in enumerate(duels):
        a, b = slice(edges[i], edges[i + 1]), slice(edges[j], edges[j + 1])
        columns[a, k], columns[b, k] = table[j - 1, a], table[i, b]
    scores = _weighted(node, _kernel(node, v, vectors), columns, rho)
    won = node.make("greater", scores, const_like(0, scores))
    first, second = np.zeros((len(duels), count), np.float32), np.zeros((len(duels), count), np.float32)
    for k, (i, j) in enumerate(duels):
        first[k, i] = second[k, j] = 1
    flags = [node.make("astype", f, dtype="float32") for f in (won, node.make("logical_not", won))]
    votes = node.make("add", *(node.make("matmul", f, graph.Constant.of(m)) for f, m in zip(flags, (first, second), strict=True)))
    return _svm_result(node, scores, votes, labels, kind, bool(np.all(weights >= 0)))


def _coupled(pairs: Any, count: int) -> Any:
    """Probabilities of the classes from those of each against each (rows, pairs), by the iteration of Wu, Lin and Weng (2004), their
    second method, with the limits that LIBSVM has."""
    def build(ins: Any, outs: Any, scratch: Any, row: Any) -> tir.Stmt:
        (given,), (p,), (r, q, qp, mean, done) = ins, outs, scratch
        one, nought, at = tir.const(1.0, "float32"), tir.const(0.0, "float32"), (0,)
        classes = tir.index_const(count)

        def duel(k: int, i: int, j: int) -> tir.Stmt:
            value = load(given, (row, tir.index_const(k)))
            return tir.seq(store(r, (i, j), value), store(r, (j, i), one - value))

        def entry(i: Any, j: Any) -> tir.Stmt:
            off = store(q, (i, j), nought - load(r, (j, i)) * load(r, (i, j)))
            return when(tir.ne(i, j), tir.seq(off, store(q, (i, i), load(q, (i, i)) + load(r, (j, i)) * load(r, (j, i)))))

        def products(t: Any) -> tir.Stmt:
            add = lambda j: store(qp, (t,), load(qp, (t,)) + load(q, (t, j)) * load(p, (row, j)))
            return tir.seq(store(qp, (t,), nought), for_each([classes], add, "a"), store(mean, at, load(mean, at) + load(p, (row, t)) * load(qp, (t,))))

        def judge(t: Any) -> tir.Stmt:
            gap = te.abs(load(qp, (t,)) - load(mean, at))
            return when(gap >= tir.const(0.005 / count, "float32"), store(done, at, tir.index_const(0)))

        def improve(t: Any) -> tir.Stmt:
            def move(d: Any) -> tir.Stmt:
                grown = (load(mean, at) + d * (d * load(q, (t, t)) + load(qp, (t,)) * 2)) / (one + d) / (one + d)
                settle = lambda j: tir.seq(store(qp, (j,), (load(qp, (j,)) + d * load(q, (t, j))) / (one + d)),
                                           store(p, (row, j), load(p, (row, j)) / (one + d)))
                return tir.seq(store(p, (row, t), load(p, (row, t)) + d), store(mean, at, grown), for_each([classes], settle, "s"))

            return let((load(mean, at) - load(qp, (t,))) / load(q, (t, t)), move, "d")

        def step(_: Any) -> tir.Stmt:
            check = tir.seq(store(done, at, tir.index_const(1)), for_each([classes], judge, "t"))
            fresh = tir.seq(store(mean, at, nought), for_each([classes], products, "t"), check)
            return when(tir.eq(load(done, at), 0), tir.seq(fresh, when(tir.eq(load(done, at), 0), for_each([classes], improve, "t"))))

        start = lambda t: tir.seq(store(p, (row, t), tir.const(1 / count, "float32")), store(q, (t, t), nought))
        duels = [duel(k, i, j) for k, (i, j) in enumerate((i, j) for i in range(count) for j in range(i + 1, count))]
        return tir.seq(for_each([classes], start, "t"), *duels, for_each([classes, classes], entry, "q"), store(done, at, tir.index_const(0)),
                       for_each([tir.index_const(max(100, count))], step, "i"))

    square = ((count, count), "float32")
    return te.extern([((pairs.shape[0], tir.index_const(count)), "float32")], [pairs], build, "coupled", over=[pairs.shape[0]],
                     scratch=[square, square, ((count,), "float32"), ((1,), "float32"), ((1,), "int64")])


def _svm_result(node: NodeContext, scores: Any, votes: Any, labels: Labels, kind: str, positive: bool) -> Any:
    slopes, shifts = node.attr("prob_a", []) or [], node.attr("prob_b", []) or []
    index = node.make("argmax", votes, axis=1, keepdims=False)
    if slopes:
        line = node.make("add", node.make("multiply", scores, floats(slopes)), floats(shifts))
        first = node.make("sigmoid", node.make("negative", line))
        first = node.make("minimum", node.make("maximum", first, const_like(1e-7, first)), const_like(1 - 1e-7, first))
        return labels.of(node, index), transformed(node, node.te(_coupled, first, max(len(labels.values), 1)), kind)
    if len(labels.values) == 2:
        both = node.make("concat", graph.Tuple((node.make("negative", scores), scores)), axis=1)
        return labels.of(node, index), transformed(node, both, kind)
    return labels.of(node, index), transformed(node, scores, kind)
