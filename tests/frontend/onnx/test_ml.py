# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml against ONNX Runtime: models of scikit-learn and of gradient boosting as their exporters write them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from roundel import api

from .single_node import check as check_node
from .single_node import model

pytest.importorskip("onnxruntime")
check = partial(check_node, domain="ai.onnx.ml", version=3)
rng = np.random.default_rng(5)
x = rng.standard_normal((7, 3)).astype(np.float32)
INT, FLOAT, STRING = 7, 1, 8


def floats(*shape: int) -> list[float]:
    return rng.standard_normal(shape).reshape(-1).tolist()


def trees(kind: str, targets: int, count: int = 5, depth: int = 3, positive: bool = False) -> dict[str, Any]:
    """Complete trees with random splits; leaves have a weight for each target."""
    out: dict[str, list[Any]] = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    leaves: dict[str, list[Any]] = {f"{kind}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t in range(count):
        for n in range(2 ** (depth + 1) - 1):
            is_leaf = n >= 2**depth - 1
            mode = "LEAF" if is_leaf else ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"][n % 4]
            row = (t, n, int(rng.integers(3)), mode, float(rng.standard_normal()), 0 if is_leaf else 2 * n + 1, 0 if is_leaf else 2 * n + 2)
            for column, v in zip(out.values(), row, strict=True):
                column.append(v)
            for target in range(targets if is_leaf else 0):
                weight = float(rng.random() if positive else rng.standard_normal()) / count
                for column, v in zip(leaves.values(), (t, n, target, weight), strict=True):
                    column.append(v)
    return {**out, **leaves}


def test_tree_regressors() -> None:
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        check("TreeEnsembleRegressor", x, n_targets=2, aggregate_function=aggregate, base_values=[0.5, -0.5], **trees("target", 2))
    check("TreeEnsembleRegressor", x, n_targets=2, post_transform="LOGISTIC", **trees("target", 2))


def uneven(count: int, targets: int, modes: list[str]) -> dict[str, Any]:
    """Trees of any form, some of them one leaf; leaves have weights for one target or for several, missing values go either way."""
    nodes: list[tuple] = []
    weights: list[tuple] = []

    def grow(tree: int, free: list[int], depth: int) -> int:
        me = free.pop(0)
        if depth == 0 or rng.random() < 0.2:
            nodes.append((tree, me, 0, "LEAF", 0.0, 0, 0, 0))
            weights.extend((tree, me, int(k), float(rng.standard_normal())) for k in rng.permutation(targets)[: rng.integers(1, targets + 1)])
        else:
            ways = [grow(tree, free, depth - 1) for _ in range(2)]
            split = float(np.round(rng.standard_normal(), 1))
            nodes.append((tree, me, int(rng.integers(3)), modes[rng.integers(len(modes))], split, *ways, int(rng.integers(2))))
        return me

    for tree in range(count):
        grow(tree, list(range(64)), int(rng.integers(5)))
    nodes.sort()
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    columns = {f"nodes_{name}": list(c) for name, c in zip(names, zip(*nodes, strict=True), strict=True)}
    return columns | {f"target_{name}": list(c) for name, c in zip(("treeids", "nodeids", "ids", "weights"), zip(*weights, strict=True), strict=True)}


@pytest.mark.parametrize("targets, modes", [(1, ["BRANCH_LEQ"]), (3, ["BRANCH_LT"]), (2, ["BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])])
def test_rows_go_down_uneven_trees_together(targets: int, modes: list[str]) -> None:
    for rows in (1, 37, 130):
        sample = np.round(rng.standard_normal((rows, 3)), 1).astype(np.float32)
        sample[rng.random(sample.shape) < 0.1] = np.nan
        check("TreeEnsembleRegressor", sample, n_targets=targets, **uneven(6, targets, modes))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_tree_classifiers(transform: str) -> None:
    typed = partial(check, outputs=2, out_types=[INT, FLOAT], post_transform=transform)
    typed("TreeEnsembleClassifier", x, classlabels_int64s=[3, 5, 9], **trees("class", 3))
    if "SOFTMAX" not in transform:  # ONNX Runtime leaves two classes as they are, against the standard
        typed("TreeEnsembleClassifier", x, classlabels_int64s=[3, 5], **trees("class", 1))
        typed("TreeEnsembleClassifier", x, classlabels_int64s=[0, 1], **trees("class", 1, positive=True))
    check("TreeEnsembleClassifier", x, outputs=2, out_types=[STRING, FLOAT], classlabels_strings=["a", "b", "c"], post_transform=transform,
          **trees("class", 3))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "PROBIT"])
def test_linear_models(transform: str) -> None:
    typed = partial(check, outputs=2, post_transform=transform, tolerance=1e-4)
    typed("LinearClassifier", x, coefficients=floats(4, 3), intercepts=floats(4), classlabels_strings=list("wxyz"), out_types=[STRING, FLOAT])
    typed("LinearClassifier", x, coefficients=floats(2, 3), intercepts=floats(2), classlabels_ints=[4, 6], out_types=[INT, FLOAT])
    check("LinearRegressor", x, coefficients=floats(2, 3), intercepts=floats(2), targets=2, post_transform=transform, tolerance=1e-4)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    more = {"kernel_type": kernel, "kernel_params": [0.4, 0.1, 2.0], "support_vectors": floats(5, 3), "tolerance": 1e-4}
    check("SVMRegressor", x, n_supports=5, coefficients=floats(5), rho=[0.3], **more)
    typed = partial(check, outputs=2, out_types=[INT, FLOAT], **more)
    typed("SVMClassifier", x, coefficients=floats(5), vectors_per_class=[3, 2], rho=floats(1), classlabels_ints=[0, 1])
    typed("SVMClassifier", x, coefficients=floats(5), vectors_per_class=[3, 2], rho=floats(1), classlabels_ints=[0, 1], prob_a=[-0.5], prob_b=[0.1])
    three = {"coefficients": floats(2, 5), "vectors_per_class": [2, 2, 1], "rho": floats(3), "classlabels_ints": [4, 5, 6]}
    typed("SVMClassifier", x, **three)
    typed("SVMClassifier", x, prob_a=[-0.5, -1.0, -0.3], prob_b=[0.1, 0.2, -0.1], **three)


def test_preparation() -> None:
    ids = np.array([[1, 7], [3, 9]], np.int64)
    words = np.array(["no", "maybe", "yes"], object)
    check("OneHotEncoder", ids, cats_int64s=[1, 3, 7], zeros=1)
    check("OneHotEncoder", words, cats_strings=["yes", "no"], zeros=1)
    check("FeatureVectorizer", x, x[:, :2], inputdimensions=[3, 2])
    check("Scaler", x, offset=[0.5, 1.0, -1.0], scale=[2.0, 1.0, 0.5])
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", x, norm=norm)
    check("Imputer", np.array([[1, np.nan], [np.nan, 2]], np.float32), imputed_value_floats=[9.0, 8.0], replaced_value_float=float("nan"))
    check("Binarizer", x, threshold=0.2)
    check("ArrayFeatureExtractor", x, np.array([2, 0], np.int64))
    check("LabelEncoder", words, keys_strings=["yes", "no"], values_int64s=[1, 0], default_int64=-1)
    check("LabelEncoder", ids, keys_int64s=[1, 3, 7], values_strings=["a", "b", "c"], out_types=[STRING])
    check("LabelEncoder", x[:, :1] * 0 + np.float32(np.nan), keys_floats=[1.0, float("nan")], values_floats=[2.0, 5.0], version=4)
    check("CategoryMapper", words, cats_int64s=[4, 5], cats_strings=["yes", "no"], default_int64=-7)


def test_a_map_for_each_row() -> None:
    proto = model("ZipMap", [x[:2]], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"])
    assert api.compile(proto)(x[:2]) == [dict(zip("abc", row, strict=True)) for row in x[:2].tolist()]
