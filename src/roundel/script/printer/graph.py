# SPDX-License-Identifier: Apache-2.0
"""Graph functions as script."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ...ir import graph, tir
from ...ir.attrs import EMPTY
from ...ir.errors import RoundelError
from ...ir.escape import python_identifier, python_string
from ...ir.graph import (
    ABSENT,
    Binding,
    BindingBlock,
    DataflowBlock,
    GlobalVar,
    GraphExpr,
    Layout,
    SeqExpr,
    StructInfo,
    TupleInfo,
    Var,
    make_call,
)
from ...ir.node import Node
from ...ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE, CALL_TIR_WITH_GRAD, OpDef
from ...ir.visit import walk
from .doc import Doc
from .expr import ExprPrinter
from .names import Names
from .struct_info import InfoPrinter, layout_text
from .tensor import variable_text

_INLINE = 8  # constants of at most so many elements are written out


class GraphPrinter(ExprPrinter):
    """Prints graph functions into a ``Doc``."""

    information: ClassVar[type[InfoPrinter]] = InfoPrinter
    values: ClassVar[dict[type, Callable[..., str]]] = {}  # type of expression to (printer, node) -> text

    def __init__(self, names: Names, doc: Doc, module: str | None = None, functions: Any = None) -> None:
        super().__init__(names, doc, module, functions)
        self.info = self.information(self.expr)
        self.signature_info = self.information(self.expr, as_text=True)

    # ---- functions

    def function(self, func: graph.Function, name: str, decorator_name: str | None = None) -> None:
        """``@R.function`` and the function."""
        attrs, options = func.attrs, [] if func.is_pure else ["pure=False"]
        if attrs.get("global_symbol") == (decorator_name or name):
            attrs = attrs.without("global_symbol")
        elif "global_symbol" not in attrs:
            options.append("private=True")
        if decorator_name:
            options.append(f"name={python_string(decorator_name)}")
        self.doc.line(f"@R.function({', '.join(options)})" if options else "@R.function")
        with self.names.frame():
            symbols = symbolic_vars(func)
            texts = {v: self.names.define(v, v.name) for v in symbols}
            params = [f"{self.names.define(p, p.name)}: {self.signature_info(p.sinfo)}" for p in func.params]
            with self.doc.body(f"def {name}({', '.join(params)}) -> {self.signature_info(func.ret_sinfo)}:"):
                if attrs:
                    self.doc.line(f"R.func_attr({self.attrs(attrs)})")
                for v in symbols:
                    self.doc.line(f"{texts[v]} = {variable_text(v)}")
                if self.module_name and self.doc.options.module_alias and any(isinstance(n, GlobalVar) for n in walk(func.body)):
                    self.doc.line(f"{self.doc.options.module_alias} = {self.module_name}")
                self.blocks(func.body.blocks)
                self.doc.line(f"return {self.value_of(func.body.body)}")

    def fragment(self, n: Any) -> None:
        """A node that is not a function."""
        if isinstance(n, StructInfo):
            self.doc.line(self.info(n))
        elif isinstance(n, BindingBlock):
            self.blocks((n,))
        elif isinstance(n, Binding):
            self.binding(n)
        elif isinstance(n, SeqExpr):
            self.blocks(n.blocks)
            self.doc.line(self.value_of(n.body))
        elif isinstance(n, graph.If | graph.While):
            self.binding(graph.VarBinding(Var("v", n.sinfo), n))
        else:
            self.doc.line(self.value_of(n))

    # ---- blocks and bindings

    def blocks(self, blocks: tuple[BindingBlock, ...]) -> None:
        """Binding blocks in order; one that would run together with its neighbour is kept apart."""
        flat = False
        for block in blocks:
            if isinstance(block, DataflowBlock):
                self._dataflow(block)
                flat = False
            elif flat or not block.bindings:
                with self.doc.body("with R.binding_block():"):
                    self._bindings(block)
                flat = False
            else:
                self._bindings(block)
                flat = True

    def _bindings(self, block: BindingBlock) -> None:
        for b in block.bindings:
            self.binding(b)

    def _dataflow(self, block: DataflowBlock) -> None:
        with self.doc.body("with R.dataflow():"):
            self._bindings(block)
            outputs = [self.names[b.var] for b in block.bindings if type(b.var) is Var]
            self.doc.line(f"R.output({', '.join(outputs)})")

    def binding(self, b: Binding) -> None:
        """``x: R.Tensor(...) = value``"""
        if isinstance(b, graph.MatchCast):
            value = f"R.match_cast({self.value_of(b.value)}, {self.info(b.sinfo)})"
        elif isinstance(b.value, graph.If):
            self._if(b.var, b.value)
            return
        elif isinstance(b.value, graph.While):
            value = self._while(b.value)
        elif isinstance(b.value, graph.Function):
            self._function_inside(b.var, b.value)
            return
        else:
            value = self._bound(b)
        self.doc.line(f"{self.names.define(b.var, b.var.name)}: {self.info(b.var.sinfo)} = {value}")

    def _bound(self, b: Any) -> str:
        """The value of a binding; a call that knows something else of itself than the annotation says so."""
        text = self.value_of(b.value)
        if isinstance(b.value, graph.Call) and b.value.sinfo is not b.var.sinfo:
            return f"R.typed({text}, {self.info(b.value.sinfo)})"
        return text

    def _if(self, var: Var, value: graph.If) -> None:
        name = self.names.fresh(var.name)
        for head, branch in (
            (f"if {self.value_of(value.condition)}:", value.true_branch),
            ("else:", value.false_branch),
        ):
            with self.names.frame(), self.doc.body(head):
                self.blocks(branch.blocks)
                self.doc.line(f"{name}: {self.info(var.sinfo)} = {self.value_of(branch.body)}")
        self.names.alias(var, name)

    def _function_inside(self, var: Var, func: graph.Function) -> None:
        """A function that is a value; it sees the variables around it."""
        name = self.names.define(var, var.name)
        self.doc.line("@R.function" if func.is_pure else "@R.function(pure=False)")
        with self.names.frame():
            params = ", ".join(f"{self.names.define(p, p.name)}: {self.info(p.sinfo)}" for p in func.params)
            with self.doc.body(f"def {name}({params}) -> {self.info(func.ret_sinfo)}:"):
                if func.attrs:
                    self.doc.line(f"R.func_attr({self.attrs(func.attrs)})")
                self.blocks(func.body.blocks)
                self.doc.line(f"return {self.value_of(func.body.body)}")

    def _while(self, value: graph.While) -> str:
        made = []
        for hint, body in (("condition", value.condition), ("body", value.body)):
            made.append(self.names.fresh(hint))
            with self.names.frame():
                params = ", ".join(f"{self.names.define(v, v.name)}: {self.info(v.sinfo)}" for v in value.loop_vars)
                with self.doc.body(f"def {made[-1]}({params}):"):
                    self.blocks(body.blocks)
                    self.doc.line(f"return {self.value_of(body.body)}")
        init = ", ".join(map(self.value_of, value.init))
        return f"R.while_loop({made[0]}, {made[1]}, ({init}{',' if len(value.init) == 1 else ''}))"

    # ---- values

    def value_of(self, e: Any) -> str:
        """A graph expression."""
        text = self.values[type(e)](self, e)
        return self.doc.marked(e, text) if self.doc.marks else text

    def node(self, n: Any) -> str:
        """Any IR object as an attribute value."""
        if isinstance(n, StructInfo):
            return self.info(n)
        if isinstance(n, Layout):
            return layout_text(n)
        return self.value_of(n) if isinstance(n, GraphExpr) and type(n) in self.values else super().node(n)

    def variable(self, v: Var) -> str:
        """The name of a variable; one that nothing binds shows its hint."""
        return self.names.get(v) or python_identifier(v.name)

    def function_name(self, g: GlobalVar) -> str:
        """``cls.f`` in a module that has it."""
        if self.module_name and g.name in self.functions:
            return f"{self.doc.options.module_alias or self.module_name}.{self.functions[g.name][0]}"
        return f"I.GlobalVar({python_string(g.name)})"

    def constant(self, c: graph.Constant) -> str:
        """Small constants written out, others by their key."""
        data = c.data
        usual = graph.Constant.of(data).sinfo is c.sinfo
        extra = "" if usual else f", sinfo={self.info(c.sinfo)}"
        if (
            int(np.prod(data.shape)) <= _INLINE
            and data.dtype.kind in ("bool", "int", "uint", "float")
            and data.shape.count(0) == 0
        ):
            array = data.numpy()
            text = repr(array.astype(np.float64).tolist() if data.dtype.is_float else array.astype(object).tolist())
            written = np.array(eval(text, {"nan": np.nan, "inf": np.inf}), data.dtype.numpy)
            if np.isfinite(array.astype(np.float64)).all() and written.tobytes() == array.tobytes():
                return f'R.const({text}, "{data.dtype}"{extra})'
        return f'R.const("{data.key}"{extra})'

    def tuple(self, t: graph.Tuple) -> str:
        """``(a, b)``; the empty one is ``R.tuple()``."""
        if not t.fields:
            return "R.tuple()"
        return f"({', '.join(map(self.value_of, t.fields))}{',' if len(t.fields) == 1 else ''})"

    def call(self, c: Any, level: int = 0) -> str:
        """A call; expressions of tensor programs go their own way."""
        if isinstance(c, tir.Call):
            return super().call(c, level)
        if isinstance(c.op, OpDef):
            special = _SPECIAL.get(c.op.name)
            text = getattr(self, special)(c) if special else self._operator(c)
            return text if text is not None else self._raw(c, python_string(c.op.name))
        if isinstance(c.op, graph.ExternFunc):
            return self._packed(c)
        name = self.function_name(c.op) if isinstance(c.op, GlobalVar) else self.value_of(c.op)
        if c.attrs or c.sinfo_args:
            return self._raw(c, name)
        return f"{name}({', '.join(self._operand(a) for a in c.args)})"

    def _operand(self, a: Any, level: int = 0) -> str:
        if isinstance(a, tir.Expr | int):
            return super()._operand(a, level)
        return self.function_name(a) if isinstance(a, GlobalVar) else self.value_of(a)

    def _raw(self, c: graph.Call, op: str) -> str:
        parts = [op, *(self._operand(a) for a in c.args)]
        parts += [f"attrs={self.attrs(c.attrs)}"] if c.attrs else []
        parts += [f"sinfo_args=[{', '.join(map(self.info, c.sinfo_args))}]"] if c.sinfo_args else []
        return f"R.call({', '.join(parts)})"

    def _operator(self, c: graph.Call) -> str | None:
        """``R.sum(x, axis=[1])``: attributes that differ from their defaults, where that reads back equal."""
        op: Any = c.op
        if c.sinfo_args or not all(map(_is_keyword_argument, c.attrs)):
            return None
        given = {
            n: v
            for n, v in c.attrs.items()
            if n not in op.attributes or op.attributes[n] is ... or not _same(v, op.attributes[n])
        }
        operands: list[Any] = [
            None if a is ABSENT or (isinstance(a, graph.Tuple) and not a.fields and _optional(op, k)) else a
            for k, a in enumerate(c.args)
        ]
        try:
            again = make_call(op, operands, given)
        except (RoundelError, TypeError, ValueError, KeyError, AttributeError, IndexError, NotImplementedError):
            return None
        if again.attrs != c.attrs or len(again.args) != len(c.args):
            return None
        parts = ["None" if a is None else self._operand(a) for a in operands]
        parts += [f"{n}={self.value(v)}" for n, v in given.items()]
        return f"R.{op.name}({', '.join(parts)})"

    def _out(self, c: graph.Call) -> str | None:
        if len(c.sinfo_args) != 1:
            return None
        out = c.sinfo_args[0]
        if isinstance(out, TupleInfo) and len(out.fields) > 1:
            return f"[{', '.join(map(self.info, out.fields))}]"
        return self.info(out)

    def _call_tir(self, c: graph.Call) -> str | None:
        out = self._out(c)
        inplace = c.op is CALL_TIR_INPLACE
        if out is None or len(c.args) not in (2, 3) or set(c.attrs) != set(c.op.attributes):  # type: ignore[union-attr]
            return None
        if not isinstance(c.args[1], graph.Tuple) and not isinstance(c.args[1].sinfo, TupleInfo):  # type: ignore[union-attr]
            return None
        parts = [self._operand(c.args[0]), "R.tuple()" if c.args[1] == ABSENT else self._operand(c.args[1])]
        parts += [f"inplace_indices={self.value(c.attrs['inplace_indices'])}"] if inplace else []
        parts.append(f"out_sinfo={out}")
        parts += [f"{name}={self.value(v)}" for name, v in c.attrs.items() if not inplace]
        parts += [f"tir_vars={self._operand(c.args[2])}"] if len(c.args) == 3 else []
        return f"R.{c.op.name}({', '.join(parts)})"  # type: ignore[union-attr]

    def _call_dps_packed(self, c: graph.Call) -> str | None:
        out = self._out(c)
        usual = isinstance(c.args[0], graph.ExternFunc) and len(c.args) == 2 and not c.attrs
        if out is None or not usual or not isinstance(c.args[1], graph.Tuple):
            return None
        return f"R.call_dps_packed({python_string(c.args[0].name)}, {self._operand(c.args[1])}, out_sinfo={out})"  # type: ignore[union-attr]

    def _packed(self, c: graph.Call) -> str:
        op: Any = c.op
        parts = [
            python_string(op.name),
            *(self._operand(a) for a in c.args),
            *(f"{n}={self.value(v)}" for n, v in c.attrs.items()),
        ]
        if not all(_is_keyword_argument(n) and n != "sinfo_args" for n in c.attrs):
            return self._raw(c, f"R.ExternFunc({python_string(op.name)})")
        if c.sinfo_args:
            parts.append(
                f"sinfo_args=({', '.join(map(self.info, c.sinfo_args))}{',' if len(c.sinfo_args) == 1 else ''})"
            )
        return f"R.call_packed({', '.join(parts)})"


def _same(a: Any, b: Any) -> bool:
    """Whether two attribute values are one, type and all (1 is not True)."""
    b = tuple(b) if isinstance(b, list) else b
    kinds = type(a) is type(b) or (isinstance(a, str) and isinstance(b, str))
    return kinds and (
        all(map(_same, a, b)) and len(a) == len(b)
        if isinstance(a, tuple)
        else bool(a == b)
        if not isinstance(a, Node)
        else a is b
    )


def _is_keyword_argument(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _optional(op: Any, k: int) -> bool:
    return k < len(op.operands) and op.operands[k].endswith("?")


def symbolic_vars(func: graph.Function) -> list[tir.Var]:
    """Variables of shapes, in order of appearance."""
    infos: list[Node] = [*(p.sinfo for p in func.params), func.ret_sinfo]
    for n in walk(func):
        infos += (
            [n.var.sinfo]
            if isinstance(n, Binding)
            else [v.sinfo for v in n.loop_vars]
            if isinstance(n, graph.While)
            else [*(p.sinfo for p in n.params), n.ret_sinfo]
            if isinstance(n, graph.Function) and n is not func
            else []
        )
        infos += [n.sinfo] if isinstance(n, graph.Constant) else []
    attrs = [v for n in walk(func) for v in _attr_nodes(getattr(n, "attrs", EMPTY))]
    bound = {v for a in (func, *attrs) for n in walk(a) if isinstance(n, tir.IndexMap) for v in n.initial_indices}
    found = {v: None for i in (*infos, func, *attrs) for v in walk(i) if isinstance(v, tir.Var)}
    return [v for v in found if v not in bound]


def _attr_nodes(value: Any) -> list[Node]:
    if isinstance(value, Node):
        return [value]
    items = value.values() if hasattr(value, "values") else value if isinstance(value, tuple) else ()
    return [n for v in items for n in _attr_nodes(v)]


GraphPrinter.values = {
    Var: GraphPrinter.variable,
    graph.DataflowVar: GraphPrinter.variable,
    GlobalVar: GraphPrinter.function_name,
    graph.ExternFunc: lambda p, e: (
        f"R.ExternFunc({python_string(e.name)})"
        if isinstance(e.sinfo, graph.ObjectInfo)
        else f"R.ExternFunc({python_string(e.name)}, {p.info(e.sinfo)})"
    ),
    graph.Constant: GraphPrinter.constant,
    graph.ShapeExpr: lambda p, e: f"R.shape([{', '.join(map(p.expr, e.values))}])",
    graph.PrimValue: lambda p, e: f"R.prim_value({p.expr(e.value)})",
    graph.StringValue: lambda p, e: f"R.str({python_string(e.value)})",
    graph.DTypeValue: lambda p, e: f'R.dtype("{e.value}")',
    graph.Tuple: GraphPrinter.tuple,
    graph.TupleGetItem: lambda p, e: f"{p.value_of(e.tuple_value)}[{e.index}]",
    graph.Call: GraphPrinter.call,
}
_SPECIAL: dict[str, str] = {
    CALL_TIR.name: "_call_tir",
    CALL_TIR_INPLACE.name: "_call_tir",
    CALL_TIR_WITH_GRAD.name: "_call_tir",
    CALL_DPS_PACKED.name: "_call_dps_packed",
}
