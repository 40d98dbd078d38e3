# SPDX-License-Identifier: Apache-2.0
"""The dialect of TVM's printer: what it writes otherwise than Roundel, as overridden cases of the same printers."""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.dtype import INT32, INT64
from ...ir.escape import python_string
from ...ir.module import IRModule
from ...ir.tir import Buffer, FloatImm, IntImm, Range, Seq, StringImm, Var
from ...ir.visit import walk
from .declare import Declarations, shape_vars
from .doc import Doc
from .expr import _COMPARE, _FUNCTIONS, _OPERATORS, _UNARY, ExprPrinter
from .module import Dialect
from .names import Names
from .tensor import TensorPrinter, has_implicit_root

_IMPORT = {"I": "ir", "T": "tir", "R": "relax"}
_PLAIN = {"index": (INT32, INT64), "int32": (INT32,), "int64": (INT64,)}
_KINDS = {"spatial": "DataPar", "reduce": "CommReduce", "opaque": "Opaque", "scan": "Ordered"}
_NUMBERS = (IntImm, FloatImm)


class TvmExpressions(ExprPrinter):
    """Expressions as TVM writes them: plain numbers by ``int_dtype``, an operator of two constants by its name."""

    @property
    def exact(self) -> bool:
        """Whether plain numbers are what Roundel takes them for, so that the text reads back to an equal program."""
        return self.doc.options.int_dtype == "int64"

    def int_imm(self, e: IntImm, level: int = 0) -> str:
        """Plain numbers of the types that ``int_dtype`` names, others by name."""
        if e.dtype in _PLAIN[self.doc.options.int_dtype]:
            return f"({e.value})" if e.value < 0 and level > _UNARY else str(e.value)
        return f"T.{e.dtype}({bool(e.value) if e.dtype.is_bool else e.value})"

    def float_imm(self, e: FloatImm, level: int = 0) -> str:
        """With its type, unless that is ``float_dtype``."""
        text = self.number(e)
        return text if str(e.dtype) == self.doc.options.float_dtype and not text.startswith('"') else f"T.{e.dtype}({text})"

    def string(self, e: StringImm, level: int = 0) -> str:
        """A text; one of several lines stands in the metadata."""
        return self.metadata("tir.StringImm", e) if "\n" in e.value else python_string(e.value)

    def metadata(self, kind: str, value: Any) -> str:
        """``metadata["kind"][0]``: a value that the text does not spell out."""
        known = self.doc.metadata.setdefault(kind, [])
        if value not in known:
            known.append(value)
        return f'metadata["{kind}"][{known.index(value)}]'

    def binary(self, e: Any, level: int) -> str:
        """``a + b``, ``T.truncmod(a, b)``; ``T.Add(3, 4)`` where Python would add."""
        kind = type(e)
        constants = isinstance(e.a, _NUMBERS) and isinstance(e.b, _NUMBERS)
        of_ints = kind is tir.Div and e.dtype.is_int
        if kind in _OPERATORS and not constants and not of_ints:
            symbol, precedence, _ = _OPERATORS[kind]
            left = precedence + 1 if precedence == _COMPARE else precedence
            text = f"{self.expr(e.a, left)} {symbol} {self.expr(e.b, precedence + 1)}"
            return f"({text})" if precedence < level else text
        name = _FUNCTIONS[kind][0] if kind in _FUNCTIONS and kind is not tir.Div else kind.__name__
        return f"T.{name}({self.expr(e.a)}, {self.expr(e.b)})"

    def _pair(self, a: tir.Expr, b: tir.Expr) -> str:
        return f"{self.expr(a)}, {self.expr(b)}"

    def not_(self, e: tir.Not, level: int) -> str:
        """``not a``"""
        return f"(not {self.expr(e.a, 3)})" if level > 3 else f"not {self.expr(e.a, 3)}"

    def range_item(self, r: Range) -> str:
        """``i`` or ``i:i + 4``"""
        if self.exact:
            return super().range_item(r)
        if isinstance(r.extent, IntImm) and r.extent.value == 1:
            return self.expr(r.min)
        return f"{self.expr(r.min)}:{self.expr(tir.add(r.min, r.extent))}"

    def call(self, e: Any, level: int = 0) -> str:
        """Calls; ``T.ret`` has its operand alone."""
        if isinstance(e, tir.Call) and isinstance(e.op, graph.GlobalVar):
            known = self.module_name and e.op.name in self.functions
            name = f"{self.module_name}.{self.functions[e.op.name][0]}" if known else e.op.name
            return f"{name}({self.args(e.args)})"
        return super().call(e, level)


TvmExpressions.expressions = {
    **ExprPrinter.expressions,
    IntImm: TvmExpressions.int_imm,
    FloatImm: TvmExpressions.float_imm,
    StringImm: TvmExpressions.string,
    tir.Not: TvmExpressions.not_,
    tir.Call: TvmExpressions.call,
    **{c: TvmExpressions.binary for c in (*_OPERATORS, *_FUNCTIONS)},
}


class TvmTensorPrinter(TvmExpressions, TensorPrinter):
    """Statements and functions as TVM writes them."""

    jumps = {"break": "T.break_loop()", "continue": "T.continue_loop()"}

    def function(self, func: tir.PrimFunc, name: str, decorator_name: str | None = None) -> None:
        """``@T.prim_func``: buffers that are simple and used by their name alone are parameters."""
        attrs = func.attrs.without("global_symbol")
        self.doc.line("@T.prim_func" if "global_symbol" in func.attrs else "@T.prim_func(private=True)")

        def body() -> None:
            if self.doc.options.syntax_sugar and func.root_block is not None and has_implicit_root(func):
                self.doc.line(f'# with T.{self.doc.options.block}("root"):')
                self.root(func.root_block)
            else:
                self.stmt(func.body, True)

        self.definition(func, name, attrs, body)

    def _parameters(self, func: tir.PrimFunc) -> tuple[list[str], list[tuple[str, Buffer]]]:
        buffers, params, matches = dict(func.buffers), [], []
        used = {n for n in walk(func.body) if type(n) is Var}
        shared = [b.data for b in buffers.values()]
        for v in func.params:
            b = buffers.get(v)
            sugar = self.doc.options.syntax_sugar and b is not None and _is_simple(b)
            if b is not None and sugar and v not in used and shared.count(b.data) == 1:
                args = self.buffer_args(b, dtype=True)
                name = self.names.define(b, b.name)
                self.names.alias(b.data, name + ".data")
                params.append(f"{name}: T.Buffer({args})")
                continue
            name = self.names.define(v, v.name if b is None or v.name != b.name else f"var_{v.name}")
            params.append(f"{name}: T.{v.dtype}")
            if b is not None:
                matches.append((name, b))
        return params, matches

    def variable(self, v: Var) -> str:
        """The declaration of a free variable; a pointer says what it points to."""
        if v.dtype.is_handle:
            of = next(iter(self.found.over.get(v, ())), None) if self.found else None
            return "T.handle()" if of is None else f'T.handle("{of.dtype}", "{of.scope}")'
        return super().variable(v) if self.exact or not v.dtype.is_int else f"T.{v.dtype}()"

    def buffer_args(self, b: Buffer, matched: bool = True, scope_position: bool = False, dtype: bool = False) -> str:
        """Shape, and of the rest what is not usual."""
        parts = [self._shape(b.shape)]
        parts += [f'"{b.dtype}"'] if dtype or str(b.dtype) != "float32" else []
        parts += [f"data={self.names[b.data]}"] if b.data in self.names else []
        parts += [f"strides={self._shape(b.strides)}"] if b.strides else []
        parts += [f"elem_offset={self.expr(b.elem_offset)}"] if b.elem_offset is not None else []
        parts += [f"scope={python_string(b.scope)}"] if b.scope != "global" else []
        parts += [f"align={b.align}"] if b.align != 64 else []
        parts += [f"offset_factor={b.offset_factor}"] if b.offset_factor != 1 else []
        parts += [f"axis_separators={list(b.axis_separators)}"] if b.axis_separators else []
        return ", ".join(parts)

    # ---- statements

    def parts(self, s: Seq) -> None:
        """Statements in order; none is ``T.evaluate(0)``."""
        if not s.stmts:
            self.doc.line("T.evaluate(0)")
        super().parts(s)

    def seq(self, s: Seq, tail: bool) -> None:
        """TVM has no sequences inside of sequences."""
        self.parts(s)

    def if_(self, s: tir.If, tail: bool, word: str = "if") -> None:
        """``if`` and ``else``"""
        with self.scope(f"if {self.expr(s.condition)}:"):
            self.stmt(s.then_case, True)
        if s.else_case is not None:
            with self.scope("else:"):
                self.stmt(s.else_case, True)

    def allocation(self, s: Any, tail: bool) -> None:
        """``T.decl_buffer`` of memory that is used as a buffer, ``T.allocate`` of a pointer."""
        b, inner = s.buffer, s.body
        if type(s) is tir.DeclBuffer:
            self._named(b, f"T.decl_buffer({self.buffer_args(b, False)})", s, inner, tail)
            return
        view = inner.buffer if type(inner) is tir.DeclBuffer and inner.buffer.data is b.data else None
        accessed = any(getattr(n, "buffer", None) is b for n in walk(inner))
        if self.doc.options.syntax_sugar and view is not None and not accessed and _alike(view, b):
            self._named(view, f"T.decl_buffer({self.buffer_args(view, False)})", s, inner.body, tail)
        elif accessed:
            self._named(b, f"T.decl_buffer({self.buffer_args(b, False)})", s, inner, tail)
        else:
            extents = ", ".join(map(self.expr, b.shape))
            notes = f", annotations={self.attrs(s.annotations)}" if s.annotations else ""
            self._named(b, f'T.allocate([{extents}], "{b.dtype}", {python_string(b.scope)}{notes})', s, inner, tail, "")

    def _named(self, b: Buffer, text: str, s: Any, body: Any, tail: bool, pointer: str = ".data") -> None:
        def name_it() -> str:
            name = self.names.define(b, b.name)
            if b.data not in self.names:
                self.names.alias(b.data, name + pointer)
            return name

        if tail:
            self._scoped(f"{name_it()} = {text}", "", lambda: None, body, True)
            return
        with self.names.frame():
            self._scoped("", f"with {text} as {name_it()}:", lambda: None, body, False)

    def attr(self, s: tir.AttrStmt, tail: bool) -> None:
        """``T.attr``; the storage of a region is ``T.realize``."""
        if s.key != "realize_scope":
            super().attr(s, tail)
            return
        inner, condition = s.body, ""
        if type(inner) is tir.AttrStmt and inner.key == "realize_condition" and inner.subject is s.subject:
            condition = f", {self.expr(inner.value)}"
            inner = inner.body
        text = f"T.realize({self.node(s.subject)}, {self.expr(s.value)}{condition})"
        self._scoped(text, f"with {text}:", lambda: None, inner, tail)

    # ---- loops and blocks

    def _iterations(self, s: tir.For) -> str:
        zero = type(s.min) is IntImm and s.min.value == 0
        args = [self.expr(s.extent)] if zero else [self.expr(s.min), self.expr(tir.add(s.min, s.extent))]
        args += [f"thread={python_string(s.thread)}"] if s.thread is not None else []
        args += [f"annotations={self.attrs(s.annotations)}"] if s.annotations else []
        plain = s.kind is tir.ForKind.SERIAL and len(args) == (1 if zero else 2)
        if s.step is not None and plain:
            args = [self.expr(s.min), *args[-1:], self.expr(s.step)]
        elif s.step is not None:
            args.append(f"step={self.expr(s.step)}")
        kind = "unroll" if s.kind is tir.ForKind.UNROLLED else s.kind.value
        return f"range({', '.join(args)})" if plain else f"T.{kind}({', '.join(args)})"

    def perfect(self, s: tir.For) -> bool:
        """``T.grid`` is sugar."""
        return self.doc.options.syntax_sugar and super().perfect(s)

    def block_name(self, part: str = "") -> str:
        """``T.block`` or ``T.sblock``, with ``_attr`` or ``_alloc_buffer`` behind the newer."""
        if part == "_alloc_buffer" and self.doc.options.block == "block":
            return "T.alloc_buffer"
        return f"T.{self.doc.options.block}{part}"

    def _axes(self, b: tir.Block, values: tuple[tir.Expr, ...] | None) -> None:
        """Neighbours that are bound to loops over their domain are one ``T.axis.remap``."""
        run: list[Any] = []
        for iv, value in zip(b.iter_vars, values or [None] * len(b.iter_vars)):
            if self.doc.options.syntax_sugar and value is not None and self._is_loop(iv, value):
                run.append((iv, value))
                continue
            self._remap(run)
            run = []
            self._axis(iv, value)
        self._remap(run)

    def _remap(self, run: list[Any]) -> None:
        if len(run) == 1:
            self._axis(*run[0])
        elif run:
            bound = ", ".join(self.expr(v) for _, v in run)
            names = ", ".join(self.names.define(iv.var, iv.var.name) for iv, _ in run)
            self.doc.line(f'{names} = T.axis.remap("{"".join(_letter(iv) for iv, _ in run)}", [{bound}])')

    def _axis(self, iv: tir.IterVar, value: Any) -> None:
        args = [self.domain(iv.dom)] + ([] if value is None else [self.expr(value)])
        self.doc.line(f"{self.names.define(iv.var, iv.var.name)} = T.axis.{iv.kind.value}({', '.join(args)})")

    def domain(self, dom: Range) -> str:
        """An extent, or (begin, end)."""
        if isinstance(dom.min, IntImm) and dom.min.value == 0:
            return self.expr(dom.extent)
        return f"({self.expr(dom.min)}, {self.expr(tir.add(dom.min, dom.extent))})"


TvmTensorPrinter.statements = {
    **TensorPrinter.statements,
    Seq: TvmTensorPrinter.seq,
    tir.If: TvmTensorPrinter.if_,
    tir.Allocate: TvmTensorPrinter.allocation,
    tir.DeclBuffer: TvmTensorPrinter.allocation,
    tir.AttrStmt: TvmTensorPrinter.attr,
}


def _letter(iv: tir.IterVar) -> str:
    return {"spatial": "S", "reduce": "R", "opaque": "O", "scan": "C"}[iv.kind.value]


def _alike(a: Buffer, b: Buffer) -> bool:
    """Whether a view has all of the memory that was allocated for it."""
    return a.shape == b.shape and a.dtype is b.dtype and a.scope == b.scope and not a.strides and a.elem_offset is None


def _is_simple(b: Buffer) -> bool:
    """Whether shape and type are all that there is to say of a buffer."""
    usual = b.scope == "global" and b.align == 64 and b.offset_factor == 1 and not b.axis_separators
    return usual and not b.strides and b.elem_offset is None and not shape_vars(b)


class TvmDialect(Dialect):
    """TVM's text: imports as comments, functions in order of their names, free variables and buffers declared above."""

    def tensor(self, names: Names, module: str | None = None, functions: Any = None) -> TvmTensorPrinter:
        return TvmTensorPrinter(names, self.doc, module, functions)

    def graph(self, names: Names, module: str | None = None, functions: Any = None) -> Any:
        from .tvm_graph import TvmGraphPrinter

        return TvmGraphPrinter(names, self.doc, module, functions)

    def head(self) -> None:
        text = "\n".join(self.doc.lines)
        lines = [f"# from tvm.script import {name} as {prefix}" for prefix, name in _IMPORT.items() if f"{prefix}." in text]
        if self.doc.metadata and self.options.show_meta:
            printer = self.tensor(self.names())
            lines += ["", *(f"metadata = {metadata_text(self.doc, printer)}",)]
        elif self.doc.metadata:
            lines += ["", "# Metadata omitted. Use show_meta=True in script() method to show it."]
        self.doc.above(*lines, "")

    def in_order(self, mod: IRModule) -> list[tuple[str, Any]]:
        return sorted(mod.items(), key=lambda item: (not isinstance(item[1], tir.PrimFunc), item[0]))

    # ---- fragments

    def statement(self, s: Any) -> None:
        printer = self._with_declarations(s)
        if type(s) is Seq and s.stmts and type(s.stmts[0]) is tir.Assert:  # what follows is the body of the assertion
            check = s.stmts[0]
            with printer.scope(f"with T.Assert({printer.expr(check.condition)}, {python_string(check.message)}):"):
                printer.stmt(tir.seq(*s.stmts[1:]), True)
            return
        printer.stmt(s, False)

    def expression(self, e: Any) -> None:
        printer = self._with_declarations(e)
        if isinstance(e, tir.MatchBufferRegion):
            printer.declare(e.buffer, f"T.match_buffer({printer.region(e.source)}, {{}})")
        else:
            self.doc.line(printer.node(e))

    def _with_declarations(self, node: Any) -> TvmTensorPrinter:
        printer = self.tensor(self.names())
        printer.found = Declarations(node)
        printer.free_variables()
        printer.declare_pending()
        return printer

    def buffer(self, b: Buffer) -> None:
        printer = self.tensor(self.names())
        self.doc.line(printer.declare(b, "T.Buffer({})", again=False))

    def range(self, r: Range) -> None:
        printer = self._with_declarations(r)
        self.doc.line(f"I.Range({printer.expr(r.min)}, {printer.expr(tir.add(r.min, r.extent))})")

    def iter_var(self, v: tir.IterVar) -> None:
        printer = self._with_declarations(v.dom)
        name = printer.names.define(v.var, v.var.name)
        self.doc.line(f"{name} = {printer.variable(v.var)}")
        stop = printer.expr(tir.add(v.dom.min, v.dom.extent))
        self.doc.line(f'T.iter_var({name}, T.Range({printer.expr(v.dom.min)}, {stop}), "{_KINDS[v.kind.value]}", "")')


def metadata_text(doc: Doc, printer: TvmTensorPrinter) -> str:
    """The values that the text names by ``metadata``, as a dict of lists."""

    def one(value: Any) -> str:
        if isinstance(value, StringImm):
            return f"T.string({python_string(value.value)})"
        return f'R.const("{value.data.key}")'

    items = [f'"{kind}": [{", ".join(map(one, values))}]' for kind, values in doc.metadata.items()]
    return "{" + ", ".join(items) + "}"
