# SPDX-License-Identifier: Apache-2.0
"""Products with constant matrices run by Strassen's algorithm where that takes less time by the model of the machine.

    matmul(x, W)   ->   strassen_matmul(strassen_data(x), seven sums of quarters of W)

One level: an eighth of the multiplications less for weights that are 7/4 as large.
"""

from __future__ import annotations

import numpy as np

from ..ir import graph, options
from ..ir.constants import ConstData
from ..ir.module import IRModule
from ..ops import make
from ..ops.dims import static
from ..ops.strassen import PRODUCTS, strassen_weight
from ..passes import pass_
from ..target import Target
from .rewriter import GraphRewriter

PRODUCT_SHARE = 0.94  # of peak that both ways reach
SUM_BYTES = 5.0       # per cycle, of factors of the data that are written and read
SUM_CYCLES = 4.0      # for a vector of results
GAIN = 0.97           # of the time at most, or the larger weights are not worth it
MEMORY_BYTES = 3.0    # per cycle, of weights


@pass_("strassen")
def strassen(mod: IRModule) -> IRModule:
    """Large products with constant float32 matrices become Strassen's, unless the option ``accuracy`` is strict."""
    if options.get("accuracy") == "strict":
        return mod
    return _Strassen(mod, mod.attrs.get("target") or Target.host()).module()


class _Strassen(GraphRewriter):
    def __init__(self, mod: IRModule, target: Target) -> None:
        super().__init__(mod)
        self.target = target

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if getattr(call.op, "name", "") != "matmul" or call.attrs["out_dtype"] or not isinstance(call.args[1], graph.Constant):
            return call
        data, weight = call.args[0].sinfo, call.args[1]
        shape = [static(n) for n in data.shape or ()]
        if len(shape) < 2 or None in shape or len(weight.data.shape) != 2 or {str(data.dtype), str(weight.data.dtype)} != {"float32"}:
            return call
        *batch, rows, inner = shape
        columns = weight.data.shape[1]
        if not pays(int(np.prod(batch, dtype=np.int64)), rows, inner, columns, self.target):
            return call
        half = half_columns(columns, self.target.lanes("float32"))
        factors = self.emit(make("nn.strassen_data", call.args[0]))
        return make("nn.strassen_matmul", factors, _factors(weight, half), rows=rows, columns=columns)


def pays(batch: int, rows: int, inner: int, columns: int, target: Target) -> bool:
    """Whether a product of ``batch`` matrices [rows, inner] with one [inner, columns] is expected to run faster in seven parts."""
    lanes = target.lanes("float32")
    half = half_columns(columns, lanes)
    if rows < 2 or inner % 2 or columns < 4 * lanes or options.get("weight_growth") < PRODUCTS / 4:
        return False
    per_cycle = lanes * target.fma_ports * PRODUCT_SHARE
    pairs = batch * ((rows + 1) // 2)
    factors = 4 * PRODUCTS * pairs * (inner // 2)
    if factors > target.l3_bytes / 2:  # every panel of columns reads them again
        return False
    direct = max(batch * rows * inner * columns / per_cycle, 4 * inner * columns / MEMORY_BYTES)
    parts = max(PRODUCTS * pairs * (inner // 2) * half / per_cycle, 4 * PRODUCTS * (inner // 2) * half / MEMORY_BYTES)
    sums = factors / SUM_BYTES + SUM_CYCLES * batch * rows * columns / lanes
    return parts + sums < GAIN * direct


def half_columns(columns: int, lanes: int) -> int:
    """The width of a half: vectors in a number that tiles of two or three divide."""
    vectors = -(-columns // (2 * lanes))
    if vectors > 2 * 8 and vectors % 2 and vectors % 3:
        vectors += -vectors % 3
    return vectors * lanes


def _factors(weight: graph.Constant, half: int) -> graph.Constant:
    source = weight.data
    shape = (PRODUCTS, source.shape[0] // 2, half)
    data = ConstData.derived(lambda a: strassen_weight(a, half), (source,), "strassen", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))
