# SPDX-License-Identifier: Apache-2.0
"""Weights stored in fewer bits than they are computed in: half the file, and half the memory to read for each token."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ...ir import graph, options
from ...ir.choice import Later
from ...ir.constants import ConstData
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import shape_text
from ...passes import pass_
from ..expectations import Expectations, stand_in
from ..rewriter import GraphRewriter, is_call

SMALLEST = 1 << 14  # elements; what is smaller stays in the caches anyway


@pass_("narrow_weights")
def narrow_weights(mod: IRModule) -> IRModule:
    """A weight that is widened before a product is widened inside of it instead; option ``weights`` makes weights narrow that are not.

    ``matmul(x, astype(w, "float32")) -> matmul(x, w, out_dtype="float32")``, ``take(w, i) -> astype(take(narrow w, i), "float32")``.
    Sums are float32 either way.
    """
    return _Narrow(mod).module()


KINDS = ("float32", "float16", "bfloat16")  # of stored weights
Reading = Callable[[str], Sequence[tuple[graph.Call, Sequence[int]]]]
"""The calls, with the positions of their constants, by which a weight of a type is read."""


class _Narrow(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.choosing.kind, self.expectations = "weights", Expectations.of(mod)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        rule = _RULES.get(getattr(call.op, "name", ""))
        return rule(self, call) if rule else call

    def narrow(self, value: Any, subject: str, reading: Reading) -> graph.GraphExpr | None:
        """An expression of a narrower type that is equal to ``value`` once widened; None where there is none. ``subject``: who reads it, ``reading``: by
        which calls, if it is stored in a type."""
        if isinstance(value, graph.Constant):
            return self.stored(value, subject, reading)
        made = self.producer(value)
        if is_call(made, "astype"):
            source = made.args[0]
            return source if isinstance(source, graph.Constant) and _widens(source.data.dtype, made.sinfo.dtype) else None
        if is_call(made, "permute_dims") or is_call(made, "reshape"):
            source = self.narrow(made.args[0], subject, reading)
            return None if source is None else self.emit(graph.infer_call(made.replace(args=(source, *made.args[1:]))))
        return None

    def stored(self, value: graph.Constant, subject: str, reading: Reading) -> graph.Constant | None:
        """A float32 constant in the narrower type that is chosen for it: what is asked for at the node, else by the option ``weights``."""
        data, wanted = value.data, options.get("weights") or KINDS[0]
        if data.dtype != KINDS[0]:
            return None
        expected = self.expectations.cycles
        kinds: dict[str, Any] = {kind: Later(lambda kind=kind: sum(expected(call, fixed) for call, fixed in reading(kind))) for kind in KINDS}
        if math.prod(data.shape) < SMALLEST:
            kinds |= dict.fromkeys(KINDS[1:], f"it has fewer than {SMALLEST} elements")
            wanted = KINDS[0]
        taken = self.choosing.decide(self.site, f"weights {shape_text(data.shape)} of {subject}", kinds, wanted)
        return None if taken == KINDS[0] else rounded_constant(data, DType(taken))


def _widens(stored: DType, computed: DType) -> bool:
    return stored.is_float and computed.is_float and stored.bits in (8, 16) and stored.bits < computed.bits


def rounded_constant(data: ConstData, dtype: DType) -> graph.Constant:
    """Float32 numbers rounded to a narrower type; what is beyond its range becomes its largest value."""
    stored = ConstData.derived(lambda a: _rounded(a, dtype), (data,), "rounded", shape=data.shape, dtype=dtype)
    return graph.Constant(stored, graph.TensorInfo(data.shape, dtype))


def _rounded(array: np.ndarray, dtype: DType) -> np.ndarray:
    """To the nearest; what is beyond the narrow type's range becomes its largest value, not an infinity."""
    most = float(ml_dtypes.finfo(dtype.numpy).max)
    return np.where(np.isfinite(array), np.clip(array, -most, most), array).astype(dtype.numpy)


def _product(self: _Narrow, call: graph.Call) -> graph.GraphExpr:
    def product(weight: graph.GraphExpr) -> graph.Call:
        return make(call.op.name, call.args[0], weight, *call.args[2:], **(call.attrs | {"out_dtype": str(call.sinfo.dtype)}))

    shape = call.args[1].sinfo.shape
    weight = None if call.attrs["out_dtype"] else self.narrow(call.args[1], call.op.name, lambda kind: [(product(stand_in("weight", shape, kind)), (1,))])
    return call if weight is None else product(weight)


def _table(self: _Narrow, call: graph.Call) -> graph.GraphExpr:
    def taken(table: graph.GraphExpr) -> graph.Call:
        return make("take", table, *call.args[1:], **call.attrs)

    def reading(kind: str) -> list[tuple[graph.Call, tuple[int, ...]]]:
        looked_up = taken(stand_in("table", call.args[0].sinfo.shape, kind))
        widened = [] if kind == KINDS[0] else [(make("astype", stand_in("taken", looked_up.sinfo.shape, kind), dtype=KINDS[0]), ())]
        return [(looked_up, (0,)), *widened]

    table = self.narrow(call.args[0], call.op.name, reading)
    return call if table is None else make("astype", self.emit(taken(table)), dtype=str(call.sinfo.dtype))


_RULES: dict[str, Callable[[_Narrow, graph.Call], graph.GraphExpr]] = {"matmul": _product, "linear": _product, "take": _table}
