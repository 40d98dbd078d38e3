# SPDX-License-Identifier: Apache-2.0
"""What attention is expected to take: by blocks of scores that are used at once, or as a product, a softmax and a product.

Rows of scores fill the lanes of vectors in the first way, which is taken from half a vector of rows on. The expected times are recorded and do not decide
between the two: the sum of plain products does not know which operands have to be turned first, and where it was expected to take half as long (8 rows and
512 keys of 8 heads on a machine of 16 lanes), it was measured to take 1.13 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...builder import BlockBuilder
from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.choice import Alternatives, Later
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import static
from ...strategy.expected import expected_of_all
from ...strategy.pack_constants import calls_of
from ..expectations import Expectations, stand_in
from ..programs.fuse import fuse
from ..programs.legalize import legalize

BY_BLOCKS, PLAIN = "by_blocks", "plain"


class AttentionTimes:
    """Of the attention of one model on one machine."""

    def __init__(self, mod: IRModule) -> None:
        self.expectations = Expectations.of(mod)
        self.target = self.expectations.setting.target
        self.lanes = self.target.lanes("float32")
        self._known: dict[Any, Later] = {}

    def alternatives(self, shape: Sequence[tir.Expr]) -> Alternatives:
        """Both ways for scores and values of (..., rows, keys, columns), with queries as wide as values; worked out when somebody asks."""
        sizes = tuple(static(n) for n in shape)
        if sizes[-3] is not None and sizes[-3] < self.lanes // 4:
            return {BY_BLOCKS: f"{sizes[-3]} rows would fill less than a quarter of a vector", PLAIN: None}
        if None in sizes:
            return {BY_BLOCKS: None, PLAIN: None}
        batch, (rows, keys, columns) = math.prod(n or 1 for n in sizes[:-3]), (n or 1 for n in sizes[-3:])
        return {name: self._later(work, (batch, rows, keys, columns)) for name, work in ((BY_BLOCKS, self.by_blocks), (PLAIN, self.plain))}

    def _later(self, work: Any, sizes: tuple[int, ...]) -> Later:
        return self._known.setdefault((work.__name__, sizes), Later(lambda: work(*sizes)))

    def preferred(self, shape: Sequence[tir.Expr]) -> str:
        """The way that is taken where nobody asks for one."""
        rows = static(shape[-3])
        return BY_BLOCKS if rows is None or rows >= self.lanes // 2 else PLAIN

    def plain(self, batch: int, rows: int, keys: int, columns: int) -> float:
        """Cycles of one core of a product, a softmax of its rows and a product."""
        scores = stand_in("scores", (batch, rows, keys))
        calls = (make("matmul", stand_in("queries", (batch, rows, columns)), stand_in("keys", (batch, columns, keys))), make("nn.softmax", scores, axis=-1),
                 make("matmul", scores, stand_in("values", (batch, keys, columns))))
        return sum(self.expectations.cycles(call) for call in calls)

    def by_blocks(self, batch: int, rows: int, keys: int, columns: int) -> float | None:
        """The same of the kernel that both products and the softmax become."""
        k, q, v = stand_in("keys", (batch, keys, columns)), stand_in("queries", (batch, columns, rows)), stand_in("values", (batch, keys, columns))
        bb = BlockBuilder()
        with bb.function("main", [k, q, v]):
            with bb.dataflow():
                out = bb.emit_output(make("nn.softmax_matmul", bb.emit(make("matmul", k, q)), v, zero=""))
            bb.emit_func_output(out)
        made = fuse(legalize(bb.get().replace(attrs=Attrs({"target": self.target}))))
        return expected_of_all([(made[call.args[0]], ()) for _, call in calls_of(made)], self.expectations.setting)
