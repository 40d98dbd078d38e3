# SPDX-License-Identifier: Apache-2.0
"""The quantiser: calibrate, rewrite, and tell what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..graph.checks.call_shapes import call_shapes
from ..graph.tidy.convert_to_dataflow import convert_to_dataflow
from ..graph.tidy.dead_code import eliminate_dead_code
from ..graph.tidy.fold_constants import fold_constants
from ..graph.tidy.inline_functions import inline_functions
from ..ir.dataclass import dataclass
from ..ir.errors import ModelError, OptionError
from ..ir.graph import Function
from ..ir.module import IRModule
from . import calibrate
from .layers import Layer, Rewritten
from .numbers import Integers, Range, decibels
from .settings import Settings


@dataclass(frozen=True)
class LayerReport:
    """What became of one product: the name of the model's node, its operator, the shape of its weight and its bits. ``weight_db`` and ``result_db`` are
    the ratios of signal to noise of the weight and, where there was calibration data, of the product's result when this layer alone is quantised, in
    decibels: 40 are an error of 1 %, 20 of 10 %."""

    name: str
    op: str
    shape: tuple[int, ...]
    bits: int
    weight_db: float
    result_db: float | None


@dataclass(frozen=True, eq=False)
class Quantized:
    """A quantised model: ``module`` is what `roundel.compile` takes (as it takes this object), ``layers`` tell the error of each layer in the order of the
    model. ``str`` of it is a table, the worst layers first."""

    module: IRModule
    layers: tuple[LayerReport, ...]
    settings: Settings
    source: Any = None
    products: tuple[Layer, ...] = ()
    weights: tuple[Integers, ...] = ()
    ranges: tuple[Range, ...] = ()

    def save(self, path: str | Path) -> Path:
        """Write an ONNX file that other tools read too: the given model with ``QuantizeLinear``/``DequantizeLinear`` pairs (static), with
        ``DynamicQuantizeLinear`` and integer products (dynamic), or with ``DequantizeLinear`` or ``MatMulNBits`` of weights. Raises ModelError where the
        model was no ONNX model, or has another form than the file can say."""
        from .onnx_file import write

        if self.source is None:
            raise ModelError("only a quantised ONNX model can be saved as one", hint="rd.compile(quantised).save(...) writes a library from any model")
        return write(self, Path(path))

    def __str__(self) -> str:
        worst = sorted(self.layers, key=lambda x: x.weight_db if x.result_db is None else x.result_db)
        width = max([len(x.name) for x in worst], default=5)
        lines = [f"{'layer':{width}}  {'operator':9} {'weight':>16}  bits  weight dB  result dB"]
        for x in worst:
            result = "" if x.result_db is None else f"{x.result_db:9.1f}"
            lines.append(f"{x.name:{width}}  {x.op:9} {'x'.join(map(str, x.shape)):>16}  {x.bits:4}  {x.weight_db:9.1f}  {result}".rstrip())
        return "\n".join(lines)


def quantize(mod: IRModule, data: Iterable[Any] | None = None, *, settings: Settings, source: Any = None) -> Quantized:
    """A module whose products with constant weights are those of integers; ``source``: the ONNX model that it was imported from. Raises OptionError where
    nothing is left to quantise or data is missing, CallError for data that does not fit."""
    if "main" not in mod or not isinstance(mod["main"], Function):
        raise ModelError("only graph functions are quantised", hint="give a model, or a module with a graph function main")
    for step in (call_shapes, inline_functions, convert_to_dataflow, eliminate_dead_code, fold_constants, eliminate_dead_code):
        mod = step(mod)
    found = calibrate.layers_of(mod, settings)
    if not found:
        raise OptionError("there is nothing to quantise", why="no product with a constant float32 weight is left", hint="look at exclude, and at mode")
    if settings.mode == "static" and data is None:
        raise OptionError("static quantisation needs calibration data", hint='give some inputs, or take mode="dynamic", which finds ranges in each run')
    given: Sequence[Sequence[np.ndarray]] = [] if data is None else calibrate.samples(data, mod)
    ranges = calibrate.ranges(mod, settings, given) if settings.mode == "static" else []
    made = Rewritten(mod, settings, ranges)
    module = eliminate_dead_code(made.module())
    powers = calibrate.powers(mod, settings, ranges, given) if given else None
    reports = []
    for layer, weight in zip(made.layers, made.weights, strict=True):
        exact = layer.weight.astype(np.float64)
        lost = decibels(float((exact**2).sum()), float(((exact - weight.numbers()) ** 2).sum()))
        result = None if powers is None else decibels(*powers[layer.index])
        reports.append(LayerReport(layer.name, layer.op, layer.weight.shape, weight.bits, lost, result))
    return Quantized(module, tuple(reports), settings, source, tuple(made.layers), tuple(made.weights), tuple(ranges))
