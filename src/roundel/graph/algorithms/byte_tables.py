# SPDX-License-Identifier: Apache-2.0
"""Functions of a byte are tables of its 256 values, where the processor looks up many bytes at once.

    y = clip(round(gelu((x - z) * s) / t) + u)   of whole numbers x within 8 bits   ->   byte_table(x, T)

Between its integers, a quantised model computes activations of floats: divisions, elementary functions, a rounding after each operator where the quantiser
put one. All of that, from one tensor of whole numbers that 8 bits hold to another, is a function of 256 arguments. The table is what the operators
make of all of them, worked out when the model is compiled.
"""

from __future__ import annotations

import numpy as np

from ...ir import graph
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...ops import make
from ...ops.fixed_scale import BYTES
from ...passes import pass_
from ...target import Target
from ..pattern import Match
from ..rewriter import GraphRewriter, is_call
from ..tidy.whole_numbers import Bounds, bounds

_PLAIN = frozenset(("add", "subtract", "multiply", "divide", "minimum", "maximum", "round", "astype", "clip", "negative", "abs", "nn.relu"))
"""Operators of an instruction or two; others are elementary functions."""
_ELEMENTARY = 12  # operations that such a function takes
_LOOKUP = 14      # operations instead of which a table is looked up


@pass_("byte_tables")
def byte_tables(mod: IRModule) -> IRModule:
    """Have long functions of bytes looked up, on processors that do so in registers."""
    target = mod.attrs.get("target") or Target.host()
    return _Tables(mod).module() if target.looks_up_bytes else mod


class _Tables(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.sources: dict[graph.Var, tuple[graph.Var, int]] = {}  # of what tensor of bytes a tensor is a function, and after how many operations
        self.least: dict[graph.Var, float] = {}  # numbers of the tensors of bytes
        self.of_all: dict[graph.GraphExpr, graph.GraphExpr] = {}  # what functions of bytes make of all of them
        self.replaced: tuple[tuple[graph.Var, int], graph.GraphExpr] | None = None  # of the present binding, if it was: its source, and what it makes of all

    def function(self, func: graph.Function) -> graph.Function:
        self.sources, self.least = {}, {}
        return super().function(func)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        outside, self.of_all = self.of_all, dict(self.of_all)  # what is made in a branch is not seen outside of it
        out = super().seq(expr)
        self.of_all = outside
        return out

    def binding(self, binding: graph.Binding) -> None:
        """Functions of bytes are functions of the first bytes that they come from, also where there are others between."""
        self.replaced = None
        super().binding(binding)
        made = self.env.get(binding.var, binding.var)
        if not isinstance(made, graph.Var):
            return
        call = self.producer(made)
        if self.replaced is not None:
            found, self.of_all[made] = self.replaced
        else:
            found = self._source(call) if isinstance(call, graph.Call) else None
        if found is None and (into := self._bytes(call if isinstance(call, graph.Call) else made)) is not None:
            self.least[made], found = into[0], (made, 0)
        if found is not None:
            self.sources[made] = found

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        found = self._source(call)
        if found is None or found[1] < _LOOKUP or (into := self._bytes(call)) is None:
            return call
        low, least = self.least[found[0]], into[0]
        self.of_all.setdefault(found[0], graph.Constant.of((np.arange(BYTES) + low).astype(found[0].sinfo.dtype.numpy)))
        every = self._of_all(call)
        self.replaced = found, every
        table = self._shifted(every, least)
        looked_up = self.emit(make("nn.byte_table", self._shifted(found[0], low), table))
        floats = make("astype", looked_up, dtype=str(call.sinfo.dtype))
        return make("add", self.emit(floats), _scalar(least, call)) if least else floats

    def _shifted(self, value: graph.GraphExpr, least: float) -> graph.GraphExpr:
        """Whole numbers from ``least`` on as bytes."""
        from_zero = self.emit(make("subtract", value, _scalar(least, value))) if least else value
        return self.emit(make("astype", from_zero, dtype="uint8"))

    def _of_all(self, call: graph.Call) -> graph.GraphExpr:
        """What a function of bytes makes of all of them."""
        args: list[graph.GraphExpr] = []
        for a in call.args:
            if isinstance(a, graph.Constant):
                args.append(graph.Constant.of(a.data.numpy().reshape(())))
                continue
            if a not in self.of_all:
                self.of_all[a] = self._of_all(self.producer(a))
            args.append(self.of_all[a])
        return self.emit(make(call.op.name, *args, **dict(call.attrs)))

    def _source(self, call: graph.Call) -> tuple[graph.Var, int] | None:
        """The one tensor of bytes that an elementwise operator computes a function of, and the operations of it."""
        if not isinstance(call.op, OpDef) or call.op.kind > FuseKind.BROADCAST:
            return None
        if not isinstance(call.sinfo, graph.TensorInfo) or call.sinfo.dtype is None or not call.sinfo.dtype.is_float:
            return None
        tensors = [a for a in call.args if not isinstance(a, graph.Constant)]
        if not tensors or any(not isinstance(a, graph.Var) or a not in self.sources or a.sinfo.shape != call.sinfo.shape for a in tensors):
            return None
        if any(isinstance(a, graph.Constant) and (a.sinfo.size is None or a.data.numpy().size != 1) for a in call.args):
            return None
        if len({self.sources[a][0] for a in tensors}) > 1:
            return None
        source = self.sources[tensors[0]][0]
        own = 1 if call.op.name in _PLAIN else _ELEMENTARY
        return source, sum(self.sources[a][1] for a in dict.fromkeys(tensors)) + own

    def _bytes(self, value: graph.GraphExpr) -> Bounds | None:
        """Least and greatest of a tensor of floats that are whole numbers within 8 bits; None of others."""
        if not isinstance(value.sinfo, graph.TensorInfo) or value.sinfo.dtype != "float32" or not value.sinfo.ndim or not _is_limited(value):
            return None
        found = bounds(value, Match(lambda v: v if isinstance(v, graph.Call) else self.producer(v), {}))
        return found if found is not None and found[1] - found[0] < BYTES else None


def _is_limited(value: graph.GraphExpr) -> bool:
    """Whether a value is of a kind that has bounds: the others are not asked, as that walks up to where they come from."""
    return any(is_call(value, name) for name in ("minimum", "maximum", "clip", "astype"))


def _scalar(number: float, like: graph.GraphExpr) -> graph.Constant:
    return graph.Constant.of(like.sinfo.dtype.numpy.type(number))
