# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml: scalers, encoders, labels, imputers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import te
from ....ir import graph, tir
from ....runtime.text import number_of, numbers_of
from ..importer import NodeContext, Value
from ..registry import converter
from ..values import MapInput, MapValue
from .math import const_like

ML = "ai.onnx.ml"


def floats(values: Any, like: Any = None) -> graph.Constant:
    """Numbers as a constant of float32, or of the dtype of ``like``."""
    return graph.Constant.of(np.asarray(values, np.float32 if like is None else like.sinfo.dtype.numpy))


@converter("Binarizer", domain=ML)
def _binarizer(node: NodeContext, x: Value) -> Any:
    over = node.make("greater", x.expr, const_like(node.attr("threshold", 0.0), x.expr))
    return node.make("astype", over, dtype=x.expr.sinfo.dtype)


@converter("ArrayFeatureExtractor", domain=ML)
def _features(node: NodeContext, x: Value, places: Value) -> Any:
    flat = node.make("reshape", places.expr, graph.ShapeExpr((tir.product_of(places.expr.sinfo.shape),)))
    v = x.expr
    out = node.make("take", v, node.positions(flat, v.sinfo.shape[-1]), axis=v.sinfo.ndim - 1)
    return node.make("expand_dims", out, axis=(0,)) if v.sinfo.ndim == 1 else out


@converter("Scaler", domain=ML)
def _scaler(node: NodeContext, x: Value) -> Any:
    v = node.make("astype", x.expr, dtype="float32")
    return node.make("multiply", node.make("subtract", v, floats(node.attr("offset", [0.0]))), floats(node.attr("scale", [1.0])))


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
    is_float = x.expr.sinfo.dtype.is_float
    fill = node.attr("imputed_value_floats" if is_float else "imputed_value_int64s")
    missing = node.attr("replaced_value_float" if is_float else "replaced_value_int64", 0)
    hit = node.make("isnan", x.expr) if missing != missing else node.make("equal", x.expr, const_like(missing, x.expr))
    return node.make("where", hit, floats(fill, x.expr), x.expr)


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


@converter("OneHotEncoder", domain=ML)
def _one_hot(node: NodeContext, x: Value) -> Any:
    names = node.attr("cats_strings", None)
    keys = np.asarray(node.attr("cats_int64s"), np.int64) if names is None else numbers_of(names)
    v = x.expr if x.is_text or x.expr.sinfo.dtype == "int64" else node.make("astype", x.expr, dtype="int64")
    same = node.make("equal", node.make("expand_dims", v, axis=(v.sinfo.ndim,)), graph.Constant.of(keys))
    return node.make("astype", same, dtype="float32")


@converter("FeatureVectorizer", domain=ML)
def _feature_vectorizer(node: NodeContext, *xs: Value) -> Any:
    parts = []
    for x, width in zip(xs, node.attr("inputdimensions"), strict=True):
        v = node.make("astype", x.expr, dtype="float32")
        rows = v.sinfo.shape[0] if v.sinfo.ndim > 1 else tir.index_const(1)
        v = node.make("reshape", v, graph.ShapeExpr((rows, tir.floordiv(tir.product_of(v.sinfo.shape), rows))))
        parts.append(node.make("strided_slice", v, axes=(1,), begin=(tir.index_const(0),), end=(tir.index_const(width),), strides=(tir.index_const(1),)))
    return node.make("concat", graph.Tuple(tuple(parts)), axis=1)


@converter("ZipMap", domain=ML)
def _zip_map(node: NodeContext, x: Value) -> Any:
    """The scores as they are, a column for each class: the dictionary for each row is made where they are handed out."""
    return MapValue(x.expr, node.attr("classlabels_strings", None) or node.attr("classlabels_int64s"))


def _entries_at(node: NodeContext, given: MapInput, keys: Any, count: Any) -> Any:
    """The values of a map at ``count`` keys, (1, count): 0 (the empty string) where it has no entry."""
    column = node.make("reshape", keys, graph.ShapeExpr((count, tir.index_const(1))))
    same = node.make("equal", column, node.make("expand_dims", given.keys.expr, axis=(0,)))
    values = given.values.expr
    at = node.make("where", same, node.make("expand_dims", values, axis=(0,)), const_like(0, values))
    return node.make("expand_dims", node.make("sum", at, axis=(1,)), axis=(0,))


@converter("DictVectorizer", domain=ML)
def _dict_vectorizer(node: NodeContext, given: MapInput) -> Any:
    names = node.attr("string_vocabulary", None)
    keys = np.asarray(node.attr("int64_vocabulary"), np.int64) if names is None else numbers_of(names)
    out = _entries_at(node, given, graph.Constant.of(keys), tir.index_const(len(keys)))
    return node.text(out) if given.values.is_text else out


@converter("CastMap", domain=ML)
def _cast_map(node: NodeContext, given: MapInput) -> Any:
    """The values in the order of the keys, or (SPARSE) at the places that the keys say."""
    if node.attr("map_form", "DENSE") == "SPARSE":
        count = tir.index_const(node.attr("max_map", 1))
        places = node.make("arange", *(graph.PrimValue(v) for v in (tir.index_const(0), count, tir.index_const(1))), dtype="int64")
        row = Value(_entries_at(node, given, places, count), is_text=given.values.is_text)
    else:
        row = Value(node.make("expand_dims", given.values.expr, axis=(0,)), is_text=given.values.is_text)
    to = node.attr("cast_to", "TO_FLOAT")
    if row.is_text != (to == "TO_STRING"):
        raise node.unsupported(f"a map of {'strings' if row.is_text else 'numbers'} with cast_to={to}")
    return row if row.is_text else node.make("astype", row.expr, dtype={"TO_INT64": "int64"}.get(to, "float32"))
