# SPDX-License-Identifier: Apache-2.0
"""What a loop carries from one iteration to the next. Sizes that an iteration changes are variables, found anew in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import graph, tir
from ...ir.dtype import BOOL, INT64
from ...ops.dims import differ, equal
from .importer import NodeContext
from .run_time_sizes import inner_sizes, sizes_in
from .values import Value


class LoopState:
    """The tensors that an ONNX loop carries, and the axes of each whose size an iteration may change.

    ``run`` converts the body for (iteration, whether to go on, state...); it is tried aside to see what it does to the sizes. Sizes that may
    be equal are taken to be, and checked, where a loop collects rows whose sizes follow from them: those must be known before it.
    """

    def __init__(self, node: NodeContext, run: Callable[[Sequence[Value]], list[Value]], state: Sequence[Value]) -> None:
        self.node, self.run = node, run
        self.infos: list[graph.TensorInfo] = [s.expr.sinfo for s in state]
        for changed in (lambda old, new: not equal(old, new), differ):
            self.axes: list[set[int]] = [set() for _ in state]
            while self._grown(changed):
                pass
            if not self.late_rows:
                break
        self.variables = [graph.Var(f"s{k}", graph.TensorInfo(None, i.dtype, i.ndim) if a else i)
                          for k, (i, a) in enumerate(zip(self.infos, self.axes, strict=True))]

    def enter(self) -> list[Any]:
        """The tensors at the start of an iteration."""
        return [self._sized(v, k) for k, v in enumerate(self.variables)]

    def next(self, new: Sequence[Any]) -> list[Any]:
        """The tensors for the next iteration; sizes that should stay and may not are checked when the model runs."""
        return [as_before(self.node, old, v, axes) for old, v, axes in zip(self.infos, new, self.axes, strict=True)]

    def leave(self, fields: Sequence[Any]) -> list[Any]:
        """The tensors after the loop."""
        return [self._sized(f, k) for k, f in enumerate(fields)]

    def _sized(self, value: Any, k: int) -> Any:
        info, axes = self.infos[k], self.axes[k]
        if not axes:
            return value
        dims = tuple(tir.Var(f"d{a}", INT64, True) if a in axes else d for a, d in enumerate(info.shape))
        return self.node.importer.bb.match_cast(value, graph.TensorInfo(dims, info.dtype), "state")

    def _grown(self, changed: Callable[[Any, Any], bool]) -> bool:
        """Whether an iteration changes sizes that were taken to stay so far; these are variables from now on."""
        results: list[tuple[graph.TensorInfo, graph.TensorInfo]] = []
        rows: list[tir.Var] = []

        def attempt() -> graph.Tuple:
            self.variables = [graph.Var("s", graph.TensorInfo(None, i.dtype, i.ndim) if a else i) for i, a in zip(self.infos, self.axes, strict=True)]
            entered = self.enter()
            number, more = Value(graph.Var("i", graph.TensorInfo((), INT64))), Value(graph.Var("go_on", graph.TensorInfo((), BOOL)))
            out = self.run([number, more, *map(Value, entered)])[1:]
            results.extend((old.sinfo, new.expr.sinfo) for old, new in zip(entered, out, strict=False))
            rows.extend(v for row in out[len(entered) :] for v in sizes_in(row.expr.sinfo))
            return graph.Tuple(())

        inner = inner_sizes(self.node, self.node.importer.sequence(attempt))
        self.late_rows, found = any(v in inner for v in rows), False
        for (old, new), axes in zip(results, self.axes, strict=True):
            for a, (m, n) in enumerate(zip(old.shape or (), new.shape or (), strict=False)):
                if a not in axes and changed(m, n):
                    axes.add(a)
                    found = True
        return found


def as_before(node: NodeContext, old: graph.TensorInfo, new: Any, axes: set[int] | frozenset[int] = frozenset()) -> Any:
    """The new state of a loop: of the old one's type, sizes but those of ``axes`` checked when the model runs where they may differ."""
    a, b = old, new.sinfo
    if a is b:
        return new
    if a.dtype != b.dtype or a.ndim != b.ndim:
        raise node.data_dependent("the type of a loop's state, which changes")
    dims = [n if k in axes else m for k, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))]
    if any(differ(m, n) for m, n in zip(dims, b.shape, strict=True)):
        raise node.data_dependent("the shape of a loop's state, which changes")
    return node.importer.bb.match_cast(new, graph.TensorInfo(tuple(dims), b.dtype), "state")
