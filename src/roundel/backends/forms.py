# SPDX-License-Identifier: Apache-2.0
"""The forms that kernels want their operands in and make their results in (layouts, types), and the conversions between them, at the ends of chains only.

    a = conv(x)                xh = R.permute_dims(x, (0, 2, 3, 1))
    b = R.nn.relu(a)     ->    ah = conv_nhwc(xh); bh = R.nn.relu(ah); ch = conv_nhwc(bh)
    c = conv(b)                c = R.permute_dims(ch, (0, 3, 1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.op import FuseKind, OpDef
from ..ops import make
from ..ops.layout import named_layout

Emit = Callable[[graph.GraphExpr], Any]


@dataclass(frozen=True)
class Form:
    """How a value is held: ``layout`` names the graph's axes and those in memory (``NCHW->NHWC``, ``NCHW->NCHW16c``; "": the graph's), ``dtype`` is
    the type of its elements ("": the graph's), which must hold every value that can occur. Raises OptionError for layouts of other axes."""

    layout: str = ""
    dtype: str = ""

    def __post_init__(self) -> None:
        plain, _, wanted = self.layout.partition("->")
        if self.layout and sorted(named_layout(wanted).letters()) != sorted(plain):
            raise OptionError(f"{self.layout!r} is no layout of the axes {plain!r}", hint="for example NCHW->NHWC or NCHW->NCHW16c")

    @cached_property
    def _axes(self) -> tuple[list[tuple[str, int]], tuple[int, ...]]:
        """The axes after those in blocks were cut in two, each with its block (0: the blocks' number), and the order of these in memory."""
        plain, _, wanted = self.layout.partition("->")
        named = named_layout(wanted)
        cut = [part for c in plain for part in ([(c, 0), (c, named.factor(c))] if named.factor(c) > 1 else [(c, 0)])]
        return cut, tuple(cut.index((c, f or 0)) for c, f in named.axes)

    def into(self, value: Any, emit: Emit) -> Any:
        """The value in this form. Raises OptionError where blocks do not divide an axis."""
        if self.dtype and str(value.sinfo.dtype) != self.dtype:
            value = emit(make("astype", value, dtype=self.dtype))
        if not self.layout:
            return value
        cut, order = self._axes
        if len(cut) > len(value.sinfo.shape):
            plain = self.layout.partition("->")[0]
            blocks, sizes = dict(cut), dict(zip(plain, value.sinfo.shape, strict=True))
            if any(f and not (type(sizes[c]) is tir.IntImm and sizes[c].value % f == 0) for c, f in blocks.items()):
                raise OptionError(f"a tensor of shape {tuple(value.sinfo.shape)} cannot be in layout {self.layout}", why="blocks do not divide an axis")
            shape = [tir.index_const(f) if f else tir.floordiv(sizes[c], blocks[c]) if blocks[c] else sizes[c] for c, f in cut]
            value = emit(make("reshape", value, graph.ShapeExpr(tuple(shape))))
        return emit(make("permute_dims", value, axes=order))

    def back(self, value: Any, info: graph.TensorInfo, emit: Emit) -> Any:
        """What is held in this form as the graph has it: of this shape and type."""
        if self.layout:
            cut, order = self._axes
            value = emit(make("permute_dims", value, axes=tuple(order.index(k) for k in range(len(cut)))))
            if len(cut) > len(info.shape):  # type: ignore[arg-type]
                value = emit(make("reshape", value, graph.ShapeExpr(info.shape)))  # type: ignore[arg-type]
        return emit(make("astype", value, dtype=str(info.dtype))) if str(value.sinfo.dtype) != str(info.dtype) else value

    def info(self, info: graph.TensorInfo) -> graph.TensorInfo:
        """What is known of such a tensor in this form."""
        return self.into(graph.Var("value", info), lambda e: e).sinfo


class Formed(NamedTuple):
    """A call of a kernel: its operands as the graph has them, the forms it wants by position (-1: of its result), and what makes the call of the
    operands in these forms; ``before``: what is asked just before it."""

    operands: Sequence[Any]
    forms: Mapping[int, Form]
    call: Callable[[Sequence[Any]], graph.GraphExpr]
    before: Sequence[graph.VarBinding] = ()


def place(func: graph.Function, calls: Mapping[graph.Var, Formed]) -> graph.Function:
    """The function, of plain blocks, with the values of these variables computed by calls in the forms that they want. A value is converted once for
    all who want it so; elementwise operators between calls work in the form that their operands are held in."""
    return Placed(func, calls).func


class Placed:
    """What `place` makes, the function ``func``. ``conversions``: the variables that are bound to a value converted; ``formed``: those that hold one in
    some form; ``results``: of these the variables that calls make, by the variables of the function before."""

    def __init__(self, func: graph.Function, calls: Mapping[graph.Var, Formed]) -> None:
        self.bindings: list[Any] = []
        self.held: dict[tuple[Any, Form], Any] = {}
        self.name = ""
        self.conversions: set[graph.Var] = set()
        self.formed: set[graph.Var] = set()
        self.results: dict[graph.Var, graph.Var] = {}
        blocks = []
        for block in func.body.blocks:
            self.bindings = []
            for binding in block.bindings:
                self.add(binding, calls.get(binding.var))  # type: ignore[attr-defined]
            blocks.append(type(block)(tuple(self.bindings)))
        self.func = func.replace(body=graph.SeqExpr(tuple(blocks), func.body.body))

    def add(self, binding: Any, formed: Formed | None) -> None:
        """Append a binding, or what computes its value instead."""
        self.name = binding.var.name
        if formed is not None:
            self.bindings.extend(formed.before)
            operands = [self.operand(a, formed.forms.get(k)) for k, a in enumerate(formed.operands)]
            self._result(binding, formed.call(operands), formed.forms.get(-1))
            self.results[binding.var] = self.held.get((binding.var, formed.forms.get(-1)), binding.var)
        elif (found := self._between(binding)) is not None:
            self._result(binding, *found)
        else:
            self.bindings.append(binding)
            if isinstance(binding.value, graph.Var):  # another name
                self.held |= {(binding.var, form): value for (var, form), value in self.held.items() if var is binding.value}

    def operand(self, value: Any, form: Form | None) -> Any:
        """The value in a form."""
        if form is None:
            return value
        if (value, form) not in self.held:
            other = self.held.get((value, replace(form, dtype=""))) if form.dtype and form.layout else None
            self.held[value, form] = replace(form, layout="").into(other, self._convert) if other is not None else form.into(value, self._convert)
            self.formed.add(self.held[value, form])
        return self.held[value, form]

    def _result(self, binding: Any, value: graph.GraphExpr, form: Form | None) -> None:
        if form is None:
            self.bindings.append(binding.replace(value=value))
            return
        self.held[binding.var, form] = var = self._emit(value, binding.span)
        self.formed.add(var)
        self.bindings.append(binding.replace(value=form.back(var, binding.var.sinfo, self._convert)))

    def _between(self, binding: Any) -> tuple[graph.GraphExpr, Form] | None:
        """An elementwise operator on what is held in a form, in that form; None where it is another, or some operand is held otherwise."""
        call, info = binding.value, binding.var.sinfo
        if not isinstance(call, graph.Call) or not isinstance(call.op, OpDef) or call.op.kind > FuseKind.BROADCAST or not isinstance(info, graph.TensorInfo):
            return None
        form = next((f for a in call.args for v, f in self.held if v is a and f.layout and not f.dtype), None)
        tensors = [a for a in call.args if isinstance(a.sinfo, graph.TensorInfo) and a.sinfo.ndim > 0]
        if form is None or any(a.sinfo.ndim != info.ndim for a in tensors) or len(form._axes[0]) != info.ndim:
            return None
        if any((a, form) not in self.held and not isinstance(a, graph.Constant) for a in tensors):
            return None
        return call.replace(args=tuple(self.operand(a, form) if a in tensors else a for a in call.args), sinfo=form.info(info)), form

    def _convert(self, value: graph.GraphExpr) -> Any:
        var = self._emit(value)
        self.conversions.add(var)
        return var

    def _emit(self, value: graph.GraphExpr, span: Any = None) -> Any:
        if isinstance(value, graph.Var):
            return value
        var = graph.Var(self.name, value.sinfo)
        self.bindings.append(graph.VarBinding(var, value, span))
        return var
