# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml's tree ensembles: all trees as one table of nodes, which each row of the input walks down."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ....ir.dataclass import dataclass
from ..importer import NodeContext, Value
from ..registry import converter
from .ml import ML, floats
from .ml_models import labels_of, transformed, two_classes


@dataclass
class _Trees:
    """Decision nodes; a branch ``-1 - k`` leads to leaf k, whose targets and weights are those from ``leaf_start[k]`` on."""

    feature: list[int]
    mode: list[int]
    split: list[float]
    missing: list[int]
    yes: list[int]
    no: list[int]
    roots: list[int]
    leaf_start: list[int]
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
                   list(node.attr("tree_roots")), list(range(len(node.attr("leaf_targetids")) + 1)), list(node.attr("leaf_targetids")),
                   [float(w) for w in node.attr("leaf_weights").numpy()])
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


def _check(node: NodeContext, t: _Trees, columns: tir.Expr, targets: int) -> None:
    """Raises ModelError for trees that lead to nodes, leaves, features or targets that there are not."""
    inner, leaves = len(t.mode), len(t.leaf_start) - 1
    branches = [*t.yes, *t.no, *t.roots]
    if {len(c) for c in (t.feature, t.split, t.missing, t.yes, t.no)} != {inner} or not len(t.leaf_target) == len(t.leaf_weight) == t.leaf_start[-1]:
        raise node.error("the lists that describe the trees differ in length")
    if any(not -leaves <= b < inner for b in branches) or any(not 0 <= m < len(_MODES) for m in t.mode):
        raise node.error(f"a branch leads to none of the {inner} nodes and {leaves} leaves, or a node's mode is unknown")
    if any(not 0 <= k < targets for k in t.leaf_target):
        raise node.error(f"a leaf has the target {min(t.leaf_target) if min(t.leaf_target) < 0 else max(t.leaf_target)} of {targets}")
    if any(k < 0 for k in t.feature):
        raise node.error(f"a node decides by feature {min(t.feature)}")
    most = tir.index_const(max(t.feature, default=-1) + 1)
    node.same_size(tir.max_(most, columns), columns, "the trees decide by more features than there are")


def _depth(t: _Trees) -> int:
    """The most decisions on a way to a leaf."""
    found: dict[int, int] = {}
    stack = [r for r in t.roots if r >= 0]  # a tree may be one leaf
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
    """What the leaves that each row comes to add up to, (rows, targets). Leaves are nodes that lead to themselves, so that every row
    takes equally many steps in every tree: neighbouring rows can go side by side."""
    from ....ops.loops import for_each, let, load, store, when

    _check(node, t, x.sinfo.shape[1], targets)
    dtype, depth, trees, inner = x.sinfo.dtype, _depth(t), len(t.roots), len(t.feature)
    leaves = range(inner, inner + len(t.leaf_start) - 1)
    number = lambda branch: branch if branch >= 0 else inner - 1 - branch
    sizes = [b - a for a, b in pairwise(t.leaf_start)]
    one_weight, one_target, modes = set(sizes) == {1}, len(set(t.leaf_target)) <= 1, sorted(set(t.mode))
    names = {
        "feature": [*t.feature, *(0 for _ in leaves)], "split": [*t.split, *(0.0 for _ in leaves)], "mode": [*t.mode, *(0 for _ in leaves)],
        "missing": [*t.missing, *(0 for _ in leaves)], "yes": [*map(number, t.yes), *leaves], "no": [*map(number, t.no), *leaves],
        "root": [*map(number, t.roots)], "start": t.leaf_start, "target": t.leaf_target or [0], "weight": t.leaf_weight or [0.0],
    }
    unused = {"mode": len(modes) <= 1, "missing": not any(t.missing), "target": one_target, "start": one_weight}
    tables = {k: np.asarray([*c, *c[:1]], dtype.numpy if k in ("split", "weight") else np.int32)  # at least two: one alone would count as a number
              for k, c in names.items() if not unused.get(k)}
    start = {"MIN": te.highest, "MAX": te.lowest}.get(aggregate, lambda d: tir.const(0.0, d))(dtype)
    join = {"MIN": tir.min_, "MAX": tir.max_}.get(aggregate, lambda a, b: a + b)
    index = lambda e: te.cast(e, "int64")

    def build(ins: Any, outs: Any, scratch: Any, row: Any) -> tir.Stmt:
        data, (out,), (cursor,) = ins[0], outs, scratch
        table = dict(zip(tables, ins[1:], strict=True))
        here = load(cursor, (0,))
        at = lambda name: load(table[name], (index(here),))

        def step(_: Any) -> tir.Stmt:
            def decide(value: Any) -> tir.Stmt:
                split = at("split")
                go = _holds(modes[0] if modes else 0, value, split)
                for m in modes[1:]:
                    go = te.select(tir.eq(at("mode"), m), _holds(m, value, split), go)
                if "missing" in table:
                    go = te.logical_or(go, te.logical_and(te.isnan(value), tir.ne(at("missing"), 0)))
                return store(cursor, (0,), te.select(go, at("yes"), at("no")))

            return let(load(data, (row, index(at("feature")))), decide, "value")

        def tree(k: Any) -> tir.Stmt:
            leaf = index(here) - inner

            def add(entry: Any) -> tir.Stmt:
                place = (row, t.leaf_target[0] if one_target and t.leaf_target else 0 if one_target else index(load(table["target"], (entry,))))
                return store(out, place, join(load(out, place), load(table["weight"], (entry,))))

            def entries(first: Any) -> tir.Stmt:
                return for_each([max(sizes, default=1)], lambda e: when(first + e < index(load(table["start"], (leaf + 1,))), add(first + e)), "w")

            walk = tir.seq(store(cursor, (0,), load(table["root"], (k,))), for_each([depth], step, "d"))
            return tir.seq(walk, add(leaf) if one_weight else let(index(load(table["start"], (leaf,))), entries, "first"))

        fill = for_each([targets], lambda j: store(out, (row, j), start), "t")
        steps = [fill, for_each([trees], tree, "k")]
        if aggregate in ("MIN", "MAX"):  # a target that no leaf has
            untouched = lambda j: tir.eq(load(out, (row, j)), start)
            steps.append(for_each([targets], lambda j: store(out, (row, j), te.select(untouched(j), tir.const(0.0, dtype), load(out, (row, j)))), "u"))
        if aggregate == "AVERAGE":
            steps.append(for_each([targets], lambda j: store(out, (row, j), load(out, (row, j)) / tir.const(float(trees), dtype)), "a"))
        return tir.seq(*steps)

    rows = x.sinfo.shape[0]

    def program(*tensors: Any) -> Any:
        return te.extern([((rows, tir.index_const(targets)), dtype)], list(tensors), build, "trees", over=[rows], scratch=[((1,), "int32")])

    return node.te(program, x, *map(graph.Constant.of, tables.values()))


def _holds(mode: int, value: Any, split: Any) -> Any:
    """Whether a value goes the way of "true" in a node of this mode."""
    return [value <= split, value < split, value >= split, value > split, tir.eq(value, split), tir.ne(value, split)][mode]


@converter("TreeEnsembleRegressor", domain=ML)
def _tree_regressor(node: NodeContext, x: Value) -> Any:
    out = _evaluate(node, features(node, x), _numbered(node, "target"), node.attr("n_targets", 1), node.attr("aggregate_function", "SUM"))
    base = _numbers(node, "base_values")
    return transformed(node, out if base is None else node.make("add", out, floats(base, out)), node.attr("post_transform", "NONE"))


@converter("TreeEnsembleClassifier", domain=ML)
def _tree_classifier(node: NodeContext, x: Value) -> Any:
    labels = labels_of(node)
    t, count = _numbered(node, "class"), max(len(labels.values), 1)
    used = set(t.leaf_target)
    single = count == 2 and len(used) == 1
    if single:
        t.leaf_target = [0] * len(t.leaf_target)
    out = _evaluate(node, features(node, x), t, 1 if single else max(count, *(k + 1 for k in used)), "SUM")
    base = _numbers(node, "base_values")
    if base is not None and len(base):
        out = node.make("add", out, floats(base[-1:] if single else base, out))
    out = node.make("astype", out, dtype="float32")
    kind = node.attr("post_transform", "NONE")
    if single:
        positive = min(t.leaf_weight, default=0.0) >= 0
        return two_classes(node, out, labels, kind, threshold=0.5 if positive else 0.0, complement=positive)
    return labels.of(node, node.make("argmax", out, axis=1, keepdims=False)), transformed(node, out, kind)


def features(node: NodeContext, x: Value) -> Any:
    """The input in floating point, a row for each sample."""
    v = x.expr if x.expr.sinfo.dtype in ("float32", "float64") else node.make("astype", x.expr, dtype="float32")
    return v if v.sinfo.ndim == 2 else node.make("expand_dims", v, axis=(0,))


def _numbers(node: NodeContext, name: str) -> list[float] | None:
    """A list of floats, given as such or as a tensor."""
    tensor = node.attr(f"{name}_as_tensor", None)
    return node.attr(name, None) if tensor is None else [float(v) for v in tensor.numpy().reshape(-1)]


def _numbered(node: NodeContext, kind: str) -> _Trees:
    """The older form, in which nodes are named by tree and number, as one table."""
    names = list(zip(node.attr("nodes_treeids"), node.attr("nodes_nodeids"), strict=True))
    modes = node.attr("nodes_modes")
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    columns = [*(node.attr(f"{kind}_{f}") for f in ("treeids", "nodeids", "ids")), _numbers(node, f"{kind}_weights") or []]
    for tree, number, target, weight in zip(*columns, strict=True):
        weights.setdefault((tree, number), []).append((target, weight))
    inner = [n for n, m in zip(names, modes, strict=True) if m != "LEAF"]
    place = {n: k for k, n in enumerate(inner)}
    t = _Trees([], [], [], [], [], [], [], [0], [], [])
    for n, m in zip(names, modes, strict=True):
        if m == "LEAF":
            place[n] = -len(t.leaf_start)
            for target, weight in weights.get(n, []):
                t.leaf_target.append(target)
                t.leaf_weight.append(weight)
            t.leaf_start.append(len(t.leaf_target))
    values, columns_of = _numbers(node, "nodes_values") or [], node.attr("nodes_featureids")
    missing = node.attr("nodes_missing_value_tracks_true", [0] * len(names))
    yes, no = node.attr("nodes_truenodeids"), node.attr("nodes_falsenodeids")
    if any(len(column) != len(names) for column in (values, columns_of, missing, yes, no)):
        raise node.error(f"the lists that describe the {len(names)} nodes of the trees differ in length")
    if strangers := weights.keys() - set(names):
        raise node.error(f"{len(strangers)} weights belong to nodes that there are not, such as (tree, node) {min(strangers)}")
    for k, (n, m) in enumerate(zip(names, modes, strict=True)):
        if m != "LEAF":
            if m not in _MODES:
                raise node.unsupported(f"nodes of mode {m!r}")
            row = (columns_of[k], _MODES[m], values[k], missing[k], place[n[0], yes[k]], place[n[0], no[k]])
            for column, value in zip((t.feature, t.mode, t.split, t.missing, t.yes, t.no), row, strict=True):
                column.append(value)
    seen: set[int] = set()
    for n in names:
        if n[0] not in seen:
            seen.add(n[0])
            t.roots.append(place[n])
    return t
