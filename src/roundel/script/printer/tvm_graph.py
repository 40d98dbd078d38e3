# SPDX-License-Identifier: Apache-2.0
"""Graph functions in the dialect of TVM's printer."""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.escape import python_string
from ...ir.graph import Binding, BindingBlock, FuncInfo, GlobalVar, SeqExpr, ShapeInfo, StructInfo, TupleInfo, Var
from ...ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE
from ...ir.visit import walk
from .graph import GraphPrinter
from .struct_info import InfoPrinter
from .tvm import TvmExpressions

_SAYS_ITS_OWN = (CALL_TIR, CALL_TIR_INPLACE, CALL_DPS_PACKED)  # operators whose call has the struct info of its result


class TvmInfoPrinter(InfoPrinter):
    """Struct info as TVM writes it."""

    def shape(self, i: ShapeInfo) -> str:
        """``R.Shape(ndim=-1)`` where nothing is known."""
        return f"R.Shape(ndim={i.ndim})" if i.values is None else super().shape(i)

    def tuple(self, i: TupleInfo) -> str:
        """``R.Tuple`` for the empty one."""
        return super().tuple(i) if i.fields else "R.Tuple"

    def func(self, i: FuncInfo) -> str:
        """``R.Callable((...), ret, True)``"""
        if i.params is None:
            return "R.Callable"
        params = f"({', '.join(map(self, i.params))}{',' if len(i.params) == 1 else ''})"
        return f"R.Callable({params}, {self(i.ret)}, {i.pure})"


TvmInfoPrinter.cases = {
    **InfoPrinter.cases,
    ShapeInfo: TvmInfoPrinter.shape,
    TupleInfo: TvmInfoPrinter.tuple,
    FuncInfo: TvmInfoPrinter.func,
}


class TvmGraphPrinter(TvmExpressions, GraphPrinter):
    """Graph functions as TVM writes them."""

    information = TvmInfoPrinter

    # ---- fragments

    def fragment(self, n: Any) -> None:
        """A part of a function, below the variables that it uses."""
        if isinstance(n, graph.If):
            self._branches(n)
            return
        self._declare(n)
        if isinstance(n, StructInfo | Binding | BindingBlock | SeqExpr | graph.While):
            super().fragment(n)
        else:
            self.doc.line(self._operand(n))

    def _declare(self, n: Any) -> None:
        """Variables that nothing inside binds, in order of use; shape variables where they are met first."""
        bound = {b.var for b in walk(n) if isinstance(b, Binding)}
        for part in _in_order(n):
            if part in self.names:
                continue
            if isinstance(part, tir.Var):
                self.doc.line(f"{self.names.define(part, part.name)} = T.{part.dtype}()")
            elif isinstance(part, Var) and part not in bound:
                self.doc.line(f"{self.names.define(part, part.name)}: {self.info(part.sinfo)}")

    def _branches(self, n: graph.If) -> None:
        self._declare(n.condition)
        for head, branch in ((f"if {self.value_of(n.condition)}:", n.true_branch), ("else:", n.false_branch)):
            with self.names.frame(), self.doc.body(head):
                self._declare(branch)
                super().fragment(branch)

    # ---- bindings

    def binding(self, b: Binding) -> None:
        """A binding; the value of a call that gives nothing is not named."""
        if isinstance(b, graph.VarBinding) and isinstance(b.value, graph.Call) and _gives_nothing(b):
            self.doc.line(self.value_of(b.value))
            return
        if isinstance(b, graph.VarBinding) and not isinstance(b.value, graph.If | graph.While | graph.Function):
            value = self.value_of(b.value)
            name = self.names.define(b.var, b.var.name)
            self.doc.line(f"{name} = {value}" if self._follows(b) else f"{name}: {self.info(b.var.sinfo)} = {value}")
        elif isinstance(b, graph.MatchCast):
            value = f"R.match_cast({self.value_of(b.value)}, {self.info(b.sinfo)})"
            name = self.names.define(b.var, b.var.name)
            shown = self.doc.options.show_all_struct_info or b.var.sinfo is not b.sinfo
            self.doc.line(f"{name}: {self.info(b.var.sinfo)} = {value}" if shown else f"{name} = {value}")
        else:
            super().binding(b)

    def _follows(self, b: Any) -> bool:
        """Whether the struct info of a variable is left out, as it is that of the value."""
        hides = not self.doc.options.show_all_struct_info or getattr(b.value, "op", None) in _SAYS_ITS_OWN
        return hides and b.value.sinfo is b.var.sinfo

    # ---- values

    def function_name(self, g: GlobalVar) -> str:
        """``cls.f``; the name alone where there is no module."""
        return super().function_name(g) if self.module_name and g.name in self.functions else g.name

    def constant(self, c: graph.Constant) -> str:
        """Scalars written out, others in the metadata."""
        text = super().constant(c)
        return text if not c.data.shape else self.metadata("relax.expr.Constant", c)

    def call(self, c: Any, level: int = 0) -> str:
        """Calls; ``R.print`` and ``R.assert_op`` with the text of their message by name."""
        name = getattr(getattr(c, "op", None), "name", "")
        if name not in _SPOKEN or not isinstance(c.args[-1], graph.Tuple):
            return super().call(c, level)
        shown = [*map(self._operand, c.args[:-1]), *map(self._operand, c.args[-1].fields)]
        said = f"format=R.str({python_string(c.attrs.get('format', ''))})"
        return f"R.{name}({', '.join([*shown, said])})"

    def _call_tir(self, c: graph.Call) -> str | None:
        """The places that are written in place stand behind the struct info of the result."""
        text = super()._call_tir(c)
        if text is None or "inplace_indices" not in c.attrs:
            return text
        said = f"inplace_indices={self.value(c.attrs['inplace_indices'])}"
        before, _, after = text.partition(f", {said}, out_sinfo={self._out(c)}")
        return f"{before}, out_sinfo={self._out(c)}, {said}{after}"


_SPOKEN = ("print", "assert_op")

TvmGraphPrinter.expressions = {**TvmExpressions.expressions, tir.Call: TvmGraphPrinter.call}
TvmGraphPrinter.values = {
    **GraphPrinter.values,
    GlobalVar: TvmGraphPrinter.function_name,
    graph.Constant: TvmGraphPrinter.constant,
    graph.Call: TvmGraphPrinter.call,
    graph.ExternFunc: lambda p, e: f"R.ExternFunc({python_string(e.name)})",
}


def _gives_nothing(b: Any) -> bool:
    return isinstance(b.var.sinfo, TupleInfo) and not b.var.sinfo.fields


def _in_order(n: Any) -> list[Any]:
    """Variables of both levels in the order in which the text meets them, dimensions of a variable before it."""
    found: dict[Any, None] = {}

    def visit(part: Any) -> None:
        info = part.sinfo if isinstance(part, Var) else None
        for v in walk(info) if info is not None else ():
            if isinstance(v, tir.Var):
                found[v] = None
        if isinstance(part, Var | tir.Var):
            found[part] = None

    for part in walk(n):
        if isinstance(part, Binding):
            for inner in (*walk(part.value), *walk(part.var)):
                visit(inner)
        visit(part)
    return list(found)


