# SPDX-License-Identifier: Apache-2.0
"""Losses: negative log likelihood and its gradient, cross entropy; made of other operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, get_op, register

from .dims import fail, fill, same, tensor_info
from .elementwise import widen

_REDUCTIONS = ("none", "sum", "mean")


class _Emit:
    """Calls of operators, each bound."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def __call__(self, name: str, *args: Any, **attrs: Any) -> Any:
        return self.builder.emit(graph.make_call(get_op(name), args, attrs))


def _class_axis(ndim: int) -> int:
    """Predictions are (C,), (N, C) or (N, C, d1, d2, ...)."""
    return 0 if ndim == 1 else 1


class _NLL(OpDef):
    """Base: the operands without the incoming gradient, and what every element counts."""

    attributes = {"reduction": "mean", "ignore_index": -100}
    kind = FuseKind.REDUCTION

    def check(self, predictions: Any, targets: Any, weights: Any, attrs: Attrs) -> None:
        """Raises TypeInferenceError for operands that do not fit."""
        infos = [i for i in (predictions, targets, weights) if i is not None]
        if attrs["reduction"] not in _REDUCTIONS:
            fail(self, f"reduction {attrs['reduction']!r} is none of {', '.join(_REDUCTIONS)}", *infos)
        if targets.dtype is not None and not targets.dtype.is_int:
            fail(self, f"targets are numbers of classes, so of an integer type, not {targets.dtype}", *infos)
        if predictions.ndim == 0:
            fail(self, "predictions have an axis of classes: (C,), (N, C) or (N, C, d1, ...)", *infos)
        if -1 not in (predictions.ndim, targets.ndim) and targets.ndim != predictions.ndim - 1:
            fail(self, f"targets have {targets.ndim} dimensions, predictions {predictions.ndim}: one more, that of the classes", *infos)
        if weights is not None and weights.ndim not in (-1, 1):
            fail(self, f"weights have one dimension, that of the classes, not {weights.ndim}", *infos)
        if predictions.shape is None:
            return
        axis = _class_axis(predictions.ndim)
        rest = tuple(d for k, d in enumerate(predictions.shape) if k != axis)
        if targets.shape is not None and not all(map(same, rest, targets.shape)):
            fail(self, "targets have the dimensions of predictions without that of the classes", *infos)
        if weights is not None and weights.shape is not None and not same(weights.shape[0], predictions.shape[axis]):
            fail(self, "there is one weight for each class", *infos)

    def counted(self, emit: _Emit, predictions: Any, targets: Any, weights: Any, attrs: Attrs) -> tuple[Any, Any]:
        """The class of each element, 0 where it is ignored, and the weight of each element, 0 there too."""
        dtype = predictions.sinfo.dtype
        counts = emit("not_equal", targets, graph.Constant.of(attrs["ignore_index"], targets.sinfo.dtype))
        classes = emit("where", counts, targets, emit("zeros_like", targets))
        weight = emit("astype", counts, dtype)
        return classes, weight if weights is None else emit("multiply", weight, emit("take", weights, classes, axis=0))


def _numpy_parts(predictions: np.ndarray, targets: np.ndarray, weights: Any, attrs: Attrs) -> tuple[np.ndarray, np.ndarray, int]:
    axis = _class_axis(predictions.ndim)
    counts = targets != attrs["ignore_index"]
    classes = np.where(counts, targets, 0).astype(np.int64)
    weight = counts.astype(np.float64) * (1.0 if weights is None else widen(weights)[classes])
    return classes, weight, axis


@register
class NLLLoss(_NLL):
    """- weights[target] * predictions[target] of each element (log probabilities of the classes), the sum of it, or the mean: the sum divided by that
    of the weights. Elements whose target is ``ignore_index`` do not count."""

    name, operands = "nn.nll_loss", ("predictions", "targets", "weights?")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        predictions, targets, *rest = (None if a is None else tensor_info(self, a, args) for a in fill(args, 3))
        self.check(predictions, targets, rest[0], attrs)
        if attrs["reduction"] != "none":
            return graph.TensorInfo((), predictions.dtype)  # type: ignore[union-attr]
        return graph.TensorInfo(targets.shape, predictions.dtype, targets.ndim)  # type: ignore[union-attr]

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        emit, (predictions, targets, weights) = _Emit(builder), _given(args, 3)
        classes, weight = self.counted(emit, predictions, targets, weights, attrs)
        axis = _class_axis(predictions.sinfo.ndim)
        at = emit("gather_elements", predictions, emit("expand_dims", classes, [axis]), axis=axis)
        loss = emit("negative", emit("multiply", emit("squeeze", at, [axis]), weight))
        if attrs["reduction"] == "none":
            return loss
        total = emit("sum", loss)
        return total if attrs["reduction"] == "sum" else emit("divide", total, emit("sum", weight))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        predictions, targets, weights = fill(args, 3)
        classes, weight, axis = _numpy_parts(predictions, targets, weights, attrs)
        loss = -np.take_along_axis(widen(predictions), np.expand_dims(classes, axis), axis).squeeze(axis) * weight
        if attrs["reduction"] == "none":
            return np.asarray(loss).astype(predictions.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(loss.sum() / (weight.sum() if attrs["reduction"] == "mean" else 1.0)).astype(predictions.dtype)


@register
class NLLLossBackward(_NLL):
    """The gradient of ``nn.nll_loss`` by its predictions, from that of its result."""

    name, operands = "grad.nll_loss_backward", ("output_grad", "predictions", "targets", "weights?")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        _, predictions, targets, weights = (None if a is None else tensor_info(self, a, args) for a in fill(args, 4))
        self.check(predictions, targets, weights, attrs)
        return predictions

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        emit, (output_grad, predictions, targets, weights) = _Emit(builder), _given(args, 4)
        info, axis = predictions.sinfo, _class_axis(predictions.sinfo.ndim)
        classes, weight = self.counted(emit, predictions, targets, weights, attrs)
        share = emit("negative", emit("multiply", output_grad, weight))
        if attrs["reduction"] == "mean":
            share = emit("divide", share, emit("sum", weight))
        one, zero = (graph.PrimValue(tir.const(v, info.dtype)) for v in (1.0, 0.0))
        hot = emit("one_hot", classes, one, zero, depth=info.shape[axis], axis=axis)
        return emit("multiply", hot, emit("expand_dims", share, [axis]))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        output_grad, predictions, targets, weights = fill(args, 4)
        classes, weight, axis = _numpy_parts(predictions, targets, weights, attrs)
        share = -widen(output_grad) * weight / (weight.sum() if attrs["reduction"] == "mean" else 1.0)
        count = predictions.shape[axis]
        hot = np.expand_dims(classes, axis) == np.arange(count).reshape([-1 if k == axis else 1 for k in range(predictions.ndim)])
        return (hot * np.expand_dims(share, axis)).astype(predictions.dtype)


@register
class CrossEntropyWithLogits(OpDef):
    """- the sum of predictions * labels, divided by the first dimension where there are several: predictions are log probabilities, labels
    probabilities of the same shape."""

    name, operands, kind = "nn.cross_entropy_with_logits", ("predictions", "labels"), FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        predictions, labels = (tensor_info(self, a, args) for a in args)
        if -1 not in (predictions.ndim, labels.ndim) and predictions.ndim != labels.ndim:
            fail(self, "labels have the shape of predictions", *args)
        if predictions.shape is not None and labels.shape is not None and not all(map(same, predictions.shape, labels.shape)):
            fail(self, "labels have the shape of predictions", *args)
        if None not in (predictions.dtype, labels.dtype) and predictions.dtype is not labels.dtype:
            fail(self, "labels have the data type of predictions", *args)
        return graph.TensorInfo((), predictions.dtype)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        emit, (predictions, labels) = _Emit(builder), args
        products = emit("multiply", predictions, labels)
        if predictions.sinfo.ndim > 1:
            products = emit("mean", emit("sum", products, axis=list(range(1, predictions.sinfo.ndim))))
            return emit("negative", products)
        return emit("negative", emit("sum", products))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        predictions, labels = map(widen, args)
        count = predictions.shape[0] if predictions.ndim > 1 else 1
        with np.errstate(all="ignore"):
            return np.asarray(-(predictions * labels).sum() / np.float64(count)).astype(args[0].dtype)


def _given(args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The operands, None for those that are left out."""
    return fill(tuple(None if isinstance(a, graph.Tuple) and not a.fields else a for a in args), count)
