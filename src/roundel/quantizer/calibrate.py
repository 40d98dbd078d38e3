# SPDX-License-Identifier: Apache-2.0
"""Running a model on data of its own kind: the ranges of what goes into each product, and how far its result moves once it is quantised.

Both are outputs of a model that is compiled for it: for each product two numbers, so that no tensor between leaves it, and only percentiles, which need all
numbers, are counted outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from .. import driver
from ..graph.tidy.convert_to_dataflow import convert_to_dataflow
from ..ir import graph
from ..ir.errors import CallError, ModelError
from ..ir.module import IRModule
from ..ops import make
from .layers import Layer, Products, Rewritten
from .numbers import Histogram, Range
from .settings import Settings

Sample = Mapping[str, np.ndarray] | Sequence[np.ndarray]


def samples(data: Iterable[Any], mod: IRModule) -> list[list[np.ndarray]]:
    """Calibration data as a list of arrays for each run: an array where there is one input, a sequence in the order of inputs, or a mapping by name. Raises
    CallError."""
    names = [p.name for p in mod["main"].params]
    out = []
    for one in data:
        if isinstance(one, Mapping):
            missing = [n for n in names if n not in one]
            if missing:
                raise CallError(f"the calibration data has nothing for input {missing[0]!r}", hint=f"inputs are {', '.join(names)}")
            given = [one[n] for n in names]
        else:
            given = list(one) if isinstance(one, list | tuple) else [one]
        if len(given) != len(names):
            raise CallError(f"the calibration data has {len(given)} arrays for {len(names)} inputs", hint="give a mapping by name, or a sequence for each run")
        out.append([np.asarray(v.detach() if hasattr(v, "detach") else v) for v in given])
    if not out:
        raise CallError("there is no calibration data", hint="static quantisation needs some inputs of the kind that the model will see")
    return out


def example_of(data: Iterable[Any]) -> tuple[tuple[Any, ...] | None, Iterable[Any]]:
    """The first of calibration data as example inputs of a PyTorch module (None where there is none, or it is given by name), and all of the data."""
    import torch

    rest = iter(data)
    first = list(islice(rest, 1))
    whole = chain(first, rest)
    if not first or isinstance(first[0], Mapping):
        return None, whole
    return tuple(map(torch.as_tensor, first[0] if isinstance(first[0], tuple | list) else first)), whole


class _Seen(Rewritten):
    """The module whose results are numbers about its products instead of its own."""

    def __init__(self, mod: IRModule, settings: Settings, ranges: list[Range]) -> None:
        super().__init__(mod, settings, ranges)
        self.seen: list[graph.GraphExpr] = []

    def block(self, block: graph.BindingBlock) -> graph.BindingBlock:
        """Blocks are plain, so that what is seen in them may be a result."""
        return super().block(graph.BindingBlock(block.bindings))

    def _append(self, var: graph.Var, value: graph.GraphExpr, binding: graph.Binding | None = None) -> None:
        if isinstance(var, graph.DataflowVar):
            fresh = graph.Var(var.name, var.sinfo)
            self.env[var] = fresh
            var, binding = fresh, binding.replace(var=fresh) if binding is not None else None
        super()._append(var, value, binding)

    def watched(self) -> IRModule:
        """The module with ``main`` alone, which gives what was seen."""
        main = self.mod["main"]
        body = self.seq(main.body)
        result = graph.Var("seen", graph.TupleInfo(tuple(v.sinfo for v in self.seen)))
        block = graph.BindingBlock((graph.VarBinding(result, graph.Tuple(tuple(self.seen))),))
        made = main.replace(body=graph.SeqExpr((*body.blocks, block), result), ret_sinfo=result.sinfo)
        return convert_to_dataflow(self.mod.with_functions({"main": made}))

    def run(self, data: Sequence[Sequence[np.ndarray]]) -> Iterator[list[np.ndarray]]:
        """What is seen of each of the samples."""
        made = driver.build_module(self.watched())["main"]
        for one in data:
            found = made(*one)
            yield [np.asarray(v) for v in (found if isinstance(found, list | tuple) else [found])]


class _Ranges(_Seen):
    def product(self, layer: Layer, call: graph.Call) -> graph.GraphExpr:
        self.seen += [self.emit(make(name, call.args[0])) for name in ("min", "max")]
        return call


class _Data(_Seen):
    def product(self, layer: Layer, call: graph.Call) -> graph.GraphExpr:
        self.seen.append(call.args[0])
        return call


class _Errors(_Seen):
    """Sums of squares of each result, and of what quantising this layer alone changes of it."""

    def product(self, layer: Layer, call: graph.Call) -> graph.GraphExpr:
        exact = self.emit(call)
        other = self.emit(super().product(layer, call))
        apart = self.emit(make("subtract", exact, other))
        self.seen += [self.emit(make("sum", self.emit(make("multiply", v, v)))) for v in (exact, apart)]
        return exact


def ranges(mod: IRModule, settings: Settings, data: Sequence[Sequence[np.ndarray]]) -> list[Range]:
    """Of the data of each product."""
    seen = _Ranges(mod, settings, [])
    found = np.array([np.array([float(v) for v in one]) for one in seen.run(data)])
    if len(broken := np.argwhere(~np.isfinite(found))):
        run, layer = broken[0][0], seen.layers[broken[0][1] // 2]
        raise CallError("what goes into a product has infinities or NaN, and no range", where=layer.name, why=f"with the calibration data of run {run}",
                        hint="look at the data, or exclude this node")
    whole = [Range(min(float(low), 0.0), max(float(high), 0.0)) for low, high in zip(found[:, ::2].min(0), found[:, 1::2].max(0), strict=True)]
    if settings.ranges == "min-max" or not whole:
        return whole
    histograms = [Histogram(r) for r in whole]
    for one in _Data(mod, settings, []).run(data):
        for histogram, values in zip(histograms, one, strict=True):
            histogram.add(values)
    return [h.range(settings.percentile) for h in histograms]


def powers(mod: IRModule, settings: Settings, found: list[Range], data: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """For each product the sum of squares of its result over all samples, and that of the difference."""
    total = sum(np.array([float(v) for v in one], np.float64) for one in _Errors(mod, settings, found).run(data))
    return np.asarray(total).reshape(-1, 2)


def layers_of(mod: IRModule, settings: Settings) -> list[Layer]:
    """The products that are quantised. Raises OptionError for what is left out and is not there, ModelError for weights that are no numbers."""
    seen = Products(mod, settings)
    seen.function(mod["main"])
    settings.check_exclude(seen.sites)
    for layer in seen.layers:
        if not np.isfinite(layer.weight).all():
            raise ModelError("a weight with infinities or NaN cannot be quantised", where=layer.name, hint="mend the model, or exclude this node")
    return seen.layers
