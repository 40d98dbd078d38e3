# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml on numbers: scalers, encoders, linear models, tree ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ....runtime.text import number_of, numbers_of
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like

ML = "ai.onnx.ml"


def _floats(values: Any, like: Any = None) -> graph.Constant:
    return graph.Constant.of(np.asarray(values, np.float32 if like is None else like.sinfo.dtype.numpy))


@converter("Binarizer", domain=ML)
def _binarizer(node: NodeContext, x: Value) -> Any:
    over = node.make("greater", x.expr, const_like(node.attr("threshold", 0.0), x.expr))
    return node.make("astype", over, dtype=x.expr.sinfo.dtype)


@converter("ArrayFeatureExtractor", domain=ML)
def _features(node: NodeContext, x: Value, places: Value) -> Any:
    flat = node.make("reshape", places.expr, graph.ShapeExpr((tir.product_of(places.expr.sinfo.shape),)))
    v = x.expr
    out = node.make("take", v, flat, axis=v.sinfo.ndim - 1)
    return node.make("expand_dims", out, axis=(0,)) if v.sinfo.ndim == 1 else out


@converter("Scaler", domain=ML)
def _scaler(node: NodeContext, x: Value) -> Any:
    v = node.make("astype", x.expr, dtype="float32")
    return node.make("multiply", node.make("subtract", v, _floats(node.attr("offset", [0.0]))), _floats(node.attr("scale", [1.0])))


@converter("Normalizer", domain=ML)
def _normalizer(node: NodeContext, x: Value) -> Any:
    v, norm = node.make("astype", x.expr, dtype="float32"), node.attr("norm", "MAX")
    last = (v.sinfo.ndim - 1,)
    if norm == "MAX":
        total = node.make("max", v, axis=last, keepdims=True)
    elif norm == "L1":
        total = node.make("sum", node.make("abs", v), axis=last, keepdims=True)
    else:
        total = node.make("sqrt", node.make("sum", node.make("multiply", v, v), axis=last, keepdims=True))
    zero = const_like(0, v)
    return node.make("divide", v, node.make("where", node.make("equal", total, zero), const_like(1, v), total))


@converter("Imputer", domain=ML)
def _imputer(node: NodeContext, x: Value) -> Any:
    floats = x.expr.sinfo.dtype.is_float
    fill = node.attr("imputed_value_floats" if floats else "imputed_value_int64s")
    missing = node.attr("replaced_value_float" if floats else "replaced_value_int64", 0)
    hit = node.make("isnan", x.expr) if missing != missing else node.make("equal", x.expr, const_like(missing, x.expr))
    return node.make("where", hit, _floats(fill, x.expr), x.expr)


@converter("LinearRegressor", domain=ML)
def _linear(node: NodeContext, x: Value) -> Any:
    targets = node.attr("targets", 1)
    weights = np.asarray(node.attr("coefficients"), np.float32).reshape(targets, -1)
    out = node.make("matmul", node.make("astype", x.expr, dtype="float32"), graph.Constant.of(np.ascontiguousarray(weights.T)))
    bias = node.attr("intercepts", None)
    return transformed(node, out if bias is None else node.make("add", out, _floats(bias)), node.attr("post_transform", "NONE"))


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
    raise node.unsupported(f"post_transform {kind!r}")


def looked_up(node: NodeContext, v: Any, keys: np.ndarray, values: np.ndarray, default: Any) -> Any:
    """For each element the value beside the first key that equals it (NaN equals NaN), else the default."""
    table = graph.Constant.of(keys.astype(v.sinfo.dtype.numpy))
    count = len(keys)

    def place(x: Any, known: Any) -> Any:
        k = te.reduce_axis(count, "k")

        def body(*at: Any) -> Any:
            same = tir.eq(x(*at), known(k.var))
            if v.sinfo.dtype.is_float:
                same = te.logical_or(same, te.logical_and(te.isnan(x(*at)), te.isnan(known(k.var))))
            return te.min(te.select(same, k.var, tir.index_const(count)), axis=[k])

        return te.compute(x.shape, body, "place")

    found = node.te(place, v, table)
    return node.make("take", graph.Constant.of(np.append(values, np.asarray(default, values.dtype))), found, axis=0)


@converter("LabelEncoder", domain=ML)
def _label_encoder_1(node: NodeContext, x: Value) -> Any:
    return _categories(node, x, np.arange(len(node.attr("classes_strings"))), node.attr("classes_strings"))


@converter("CategoryMapper", domain=ML)
def _category_mapper(node: NodeContext, x: Value) -> Any:
    return _categories(node, x, np.asarray(node.attr("cats_int64s"), np.int64), node.attr("cats_strings"))


def _categories(node: NodeContext, x: Value, numbers: np.ndarray, names: list[str]) -> Any:
    """Strings to their numbers, or numbers to their strings."""
    if x.is_text:
        return looked_up(node, x.expr, numbers_of(names), numbers, node.attr("default_int64", -1))
    return node.text(looked_up(node, x.expr, numbers, numbers_of(names), number_of(node.attr("default_string", "_Unused"))))


@converter("LabelEncoder", domain=ML, since=2)
def _label_encoder(node: NodeContext, x: Value) -> Any:
    keys, _ = _entries(node, "keys")
    values, gives_text = _entries(node, "values")
    given = node.attr("default_tensor", None)
    if given is not None:
        default: Any = given.numpy().reshape(-1)[0]
    elif gives_text:
        default = number_of(node.attr("default_string", "_Unused"))
    else:
        default = node.attr("default_int64", -1) if values.dtype.kind == "i" else node.attr("default_float", -0.0)
    out = looked_up(node, x.expr, keys, values, default)
    return node.text(out) if gives_text else out


def _entries(node: NodeContext, kind: str) -> tuple[np.ndarray, bool]:
    """Keys or values of a label encoder, and whether they are strings."""
    tensor = node.attr(f"{kind}_tensor", None)
    if tensor is not None:
        return tensor.numpy(), node.is_text_attr(f"{kind}_tensor")
    strings, ints = node.attr(f"{kind}_strings", None), node.attr(f"{kind}_int64s", None)
    if strings is not None:
        return numbers_of(strings), True
    return (np.asarray(ints, np.int64) if ints is not None else np.asarray(node.attr(f"{kind}_floats"), np.float32)), False


@dataclass
class _Trees:
    """Decision nodes; a branch that is not below their number leads to leaf ``branch - number``."""

    feature: list[int]
    mode: list[int]
    split: list[float]
    missing: list[int]
    yes: list[int]
    no: list[int]
    roots: list[int]
    leaf_target: list[int]
    leaf_weight: list[float]


_MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5}


@converter("TreeEnsemble", domain=ML, since=5)
def _tree_ensemble(node: NodeContext, x: Value) -> Any:
    modes = [int(m) for m in node.attr("nodes_modes").numpy()]
    splits = [float(s) for s in node.attr("nodes_splits").numpy()]
    count = len(modes)
    yes, no = list(node.attr("nodes_truenodeids")), list(node.attr("nodes_falsenodeids"))
    leaf = [(node.attr("nodes_trueleafs"), yes), (node.attr("nodes_falseleafs"), no)]
    for flags, branch in leaf:
        for k in range(count):
            branch[k] = -1 - branch[k] if flags[k] else branch[k]
    trees = _Trees(list(node.attr("nodes_featureids")), modes, splits, list(node.attr("nodes_missing_value_tracks_true", [0] * count)), yes, no,
                   list(node.attr("tree_roots")), list(node.attr("leaf_targetids")), [float(w) for w in node.attr("leaf_weights").numpy()])
    members = node.attr("membership_values", None)
    if members is not None:
        _expand_members(trees, members.numpy())
    kinds = ["AVERAGE", "SUM", "MIN", "MAX"]
    post = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"][node.attr("post_transform", 0)]
    out = _evaluate(node, x.expr, trees, node.attr("n_targets", 1), kinds[node.attr("aggregate_function", 1)])
    return transformed(node, out, post)


def _expand_members(t: _Trees, values: np.ndarray) -> None:
    """A test for membership is a chain of tests for equality."""
    groups: list[list[float]] = [[]]
    for v in values:
        if np.isnan(v):
            groups.append([])
        else:
            groups[-1].append(float(v))
    chosen = iter(groups)
    for k in range(len(t.mode)):
        if t.mode[k] != 6:
            continue
        group = next(chosen)
        last = t.no[k]
        t.mode[k], t.split[k], at = 4, group[0] if group else np.nan, k
        for v in group[1:]:
            t.no[at] = len(t.mode)
            at = len(t.mode)
            for name, value in (("feature", t.feature[k]), ("mode", 4), ("split", v), ("missing", t.missing[k]), ("yes", t.yes[k]), ("no", last)):
                getattr(t, name).append(value)


def _depth(t: _Trees) -> int:
    """The most decisions on a way to a leaf."""
    found: dict[int, int] = {}
    stack = list(t.roots)
    while stack:
        k = stack[-1]
        inner = [b for b in (t.yes[k], t.no[k]) if b >= 0]
        missing = [b for b in inner if b not in found]
        if missing:
            stack.extend(missing)
            if len(stack) > 4 * len(t.mode) + 8:
                raise ValueError("the trees have a cycle")
        else:
            found[k] = 1 + max((found[b] for b in inner), default=0)
            stack.pop()
    return max(found.values(), default=1)


def _evaluate(node: NodeContext, x: Any, t: _Trees, targets: int, aggregate: str) -> Any:
    from ....ops.loops import for_each, let, load, store, when

    dtype, depth, trees = x.sinfo.dtype, _depth(t), len(t.roots)
    columns = [graph.Constant.of(np.asarray([*c, *c[:1]], d)) for c, d in (  # at least two: one alone would count as a number
        (t.feature, np.int64), (t.mode, np.int64), (t.split, dtype.numpy), (t.missing, np.int64), (t.yes, np.int64), (t.no, np.int64),
        (t.roots, np.int64), (t.leaf_target, np.int64), (t.leaf_weight, dtype.numpy))]
    start = {"MIN": te.max_value, "MAX": te.min_value}.get(aggregate, lambda d: tir.const(0.0, d))(dtype)
    join = {"MIN": tir.min_, "MAX": tir.max_}.get(aggregate, lambda a, b: a + b)

    def holds(mode: Any, value: Any, split: Any) -> Any:
        tests = [value <= split, value < split, value >= split, value > split, tir.eq(value, split)]
        out: Any = tir.ne(value, split)
        for k in range(5):
            out = te.select(tir.eq(mode, k), tests[k], out)
        return out

    def build(ins: Any, outs: Any, scratch: Any, row: Any) -> tir.Stmt:
        data, feature, mode, split, missing, yes, no, roots, target, weight = ins
        (out,), (cursor,) = outs, scratch
        at = lambda b: load(b, (load(cursor, (0,)),))

        def descend(_: Any) -> tir.Stmt:
            def decide(value: Any) -> tir.Stmt:
                go = te.logical_or(holds(at(mode), value, at(split)), te.logical_and(te.isnan(value), tir.ne(at(missing), 0)))
                return store(cursor, (0,), te.select(go, at(yes), at(no)))

            return when(load(cursor, (0,)) >= 0, let(load(data, (row, at(feature))), decide, "value"))

        def tree(k: Any) -> tir.Stmt:
            leaf = -1 - load(cursor, (0,))
            place = (row, load(target, (leaf,)))
            return tir.seq(store(cursor, (0,), load(roots, (k,))), for_each([depth], descend, "d"),
                           store(out, place, join(load(out, place), load(weight, (leaf,)))))

        fill = for_each([targets], lambda j: store(out, (row, j), start), "t")
        steps = [fill, for_each([trees], tree, "k")]
        if aggregate == "AVERAGE":
            steps.append(for_each([targets], lambda j: store(out, (row, j), load(out, (row, j)) / tir.const(float(trees), dtype)), "a"))
        return tir.seq(*steps)

    rows = x.sinfo.shape[0]

    def program(*tensors: Any) -> Any:
        return te.extern([((rows, tir.index_const(targets)), dtype)], list(tensors), build, "trees", over=[rows], scratch=[((1,), "int64")])

    return node.te(program, x, *columns)


@converter("TreeEnsembleRegressor", domain=ML)
def _tree_regressor(node: NodeContext, x: Value) -> Any:
    t = _numbered(node, "target")
    v = x.expr if x.expr.sinfo.dtype == "float32" else node.make("astype", x.expr, dtype="float32")
    out = _evaluate(node, v, t, node.attr("n_targets", 1), node.attr("aggregate_function", "SUM"))
    base = node.attr("base_values", None)
    return transformed(node, out if base is None else node.make("add", out, _floats(base)), node.attr("post_transform", "NONE"))


def _numbered(node: NodeContext, kind: str) -> _Trees:
    """The older form, in which nodes are named by tree and number, as one table."""
    names = list(zip(node.attr("nodes_treeids"), node.attr("nodes_nodeids"), strict=True))
    modes = node.attr("nodes_modes")
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, number, target, weight in zip(*(node.attr(f"{kind}_{f}") for f in ("treeids", "nodeids", "ids", "weights")), strict=True):
        weights.setdefault((tree, number), []).append((target, weight))
    inner = [n for n, m in zip(names, modes, strict=True) if m != "LEAF"]
    place = {n: k for k, n in enumerate(inner)}
    t = _Trees([], [], [], [], [], [], [], [], [])
    for n, m in zip(names, modes, strict=True):
        if m == "LEAF":
            if len(weights.get(n, [])) > 1:
                raise node.unsupported("leaves with several weights")
            target, weight = weights.get(n, [(0, 0.0)])[0]
            place[n] = -1 - len(t.leaf_target)
            t.leaf_target.append(target)
            t.leaf_weight.append(weight)
    values, features = node.attr("nodes_values"), node.attr("nodes_featureids")
    missing = node.attr("nodes_missing_value_tracks_true", [0] * len(names))
    yes, no = node.attr("nodes_truenodeids"), node.attr("nodes_falsenodeids")
    for k, (n, m) in enumerate(zip(names, modes, strict=True)):
        if m != "LEAF":
            row = (features[k], _MODES[m], values[k], missing[k], place[n[0], yes[k]], place[n[0], no[k]])
            for column, value in zip((t.feature, t.mode, t.split, t.missing, t.yes, t.no), row, strict=True):
                column.append(value)
    seen: set[int] = set()
    for n in names:
        if n[0] not in seen:
            seen.add(n[0])
            t.roots.append(place[n])
    return t
