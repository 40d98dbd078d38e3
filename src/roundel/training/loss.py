# SPDX-License-Identifier: Apache-2.0
"""Losses as graph functions: ``MSELoss()(predictions, targets)`` is a function of two tensors that returns a number."""

from __future__ import annotations

from typing import Any

from ..builder import BlockBuilder
from ..ir import graph
from ..ir.errors import OptionError
from ..ops import make

REDUCTIONS = ("mean", "sum", "none")


class Loss:
    """Base of losses. ``reduction``: the mean of the elements' losses, their sum, or the elements themselves (``none``).

    ``num_backbone_outputs`` says how many of the parameters, the first, are results of the model. Raises OptionError for other reductions.
    """

    def __init__(self, loss_name: str, num_backbone_outputs: int = 1, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise OptionError(f"there is no reduction {reduction!r}", hint=f"it is one of {', '.join(REDUCTIONS)}")
        self.name, self.num_backbone_outputs, self.reduction = loss_name, num_backbone_outputs, reduction

    def __call__(self, *params: graph.Var | graph.StructInfo) -> graph.Function:
        """The loss as a function of these parameters: variables, or types (predictions, targets and, where a loss has them, weights)."""
        names = ("predictions", "targets", "weights")
        given = [graph.Var(p.name, p.sinfo) if isinstance(p, graph.Var) else graph.Var(n, p) for n, p in zip(names, params, strict=False)]
        if len(given) != len(params):
            raise TypeError(f"a loss takes predictions, targets and weights, {len(params)} parameters were given")
        builder = BlockBuilder()
        with builder.function(self.name, given):
            with builder.dataflow():
                result = builder.emit_output(self.compute(builder, *given))
            builder.emit_func_output(result)
        return builder.finalize()[self.name]

    def compute(self, builder: BlockBuilder, *params: graph.Var) -> graph.GraphExpr:
        """What the function returns; it is called within a dataflow block. Losses of one's own override it."""
        raise NotImplementedError(f"{type(self).__name__} has no compute")

    def reduced(self, elements: graph.GraphExpr) -> graph.GraphExpr:
        """The losses of all elements as the reduction says."""
        return elements if self.reduction == "none" else make(self.reduction, elements)


class L1Loss(Loss):
    """The distance of predictions and targets."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", 1, reduction)

    def compute(self, builder: BlockBuilder, predictions: graph.Var, targets: graph.Var) -> graph.GraphExpr:  # type: ignore[override]
        """The absolute differences, reduced."""
        return self.reduced(builder.emit(make("abs", builder.emit(make("subtract", predictions, targets)))))


class MSELoss(Loss):
    """The square of the distance of predictions and targets."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", 1, reduction)

    def compute(self, builder: BlockBuilder, predictions: graph.Var, targets: graph.Var) -> graph.GraphExpr:  # type: ignore[override]
        """The squared differences, reduced."""
        apart = builder.emit(make("subtract", predictions, targets))
        return self.reduced(builder.emit(make("multiply", apart, apart)))


class CrossEntropyLoss(Loss):
    """The negative logarithm of the softmax of predictions (N, C, ...) at the classes ``targets`` (N, ...), each times the class's weight (C,).

    Targets of ``ignore_index`` do not count; the mean is by weights.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def compute(self, builder: BlockBuilder, predictions: graph.Var, targets: graph.Var,  # type: ignore[override]
                weights: graph.Var | None = None) -> graph.GraphExpr:
        """The loss of numbers of classes."""
        return self.of_classes(self.logarithms(builder, predictions), targets, weights)

    def logarithms(self, builder: BlockBuilder, predictions: graph.Var) -> graph.Var:
        """Of the softmax over the classes."""
        return builder.emit(make("nn.log_softmax", predictions, axis=1 if predictions.sinfo.ndim > 1 else 0))  # type: ignore[attr-defined]

    def of_classes(self, logarithms: graph.GraphExpr, targets: graph.GraphExpr, weights: graph.Var | None) -> graph.GraphExpr:
        """The loss where targets are numbers of classes."""
        operands = (logarithms, targets) if weights is None else (logarithms, targets, weights)
        return make("nn.nll_loss", *operands, reduction=self.reduction, ignore_index=self.ignore_index)


class CategoricalCrossEntropyLoss(CrossEntropyLoss):
    """The same with targets (N, C) that are 1 at the class and else 0. Where ``ignore_index`` is a class, this class does not count; else ``mean`` is
    that of all N * C elements."""

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__(reduction, ignore_index)
        self.name = "categorical_cross_entropy_loss"

    def compute(self, builder: BlockBuilder, predictions: graph.Var, targets: graph.Var, weights: graph.Var | None = None) -> Any:
        """The loss of vectors with a 1 at the class."""
        logarithms = self.logarithms(builder, predictions)
        if self.ignore_index >= 0:
            return self.of_classes(logarithms, builder.emit(make("argmax", targets, axis=1)), weights)
        ones = builder.emit(make("astype", targets, dtype=predictions.sinfo.dtype))  # type: ignore[attr-defined]
        elements = builder.emit(make("multiply", builder.emit(make("negative", logarithms)), ones))
        return self.reduced(elements if weights is None else builder.emit(make("multiply", elements, weights)))


__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]
