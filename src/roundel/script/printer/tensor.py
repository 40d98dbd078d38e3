# SPDX-License-Identifier: Apache-2.0
"""Statements and functions of tensor programs as script."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, ClassVar

from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.dtype import INT64, VOID
from ...ir.escape import python_string
from ...ir.jumps import BREAK, CONTINUE, jump
from ...ir.tir import Block, BlockRealize, Buffer, Expr, For, ForKind, IntImm, IterKind, Range, Seq, Stmt, Var
from ...ir.visit import walk
from .declare import Declarations, shape_vars
from .doc import Doc
from .expr import ExprPrinter, stop_of
from .names import Names

_KINDS = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "thread_binding",
}
_AXES = {
    IterKind.SPATIAL: ("spatial", "S"),
    IterKind.REDUCE: ("reduce", "R"),
    IterKind.OPAQUE: ("opaque", "O"),
    IterKind.SCAN: ("scan", "C"),
}


_JUMPS = {BREAK: "break", CONTINUE: "continue"}


def _is_true(e: Expr) -> bool:
    return type(e) is IntImm and e.dtype.is_bool and bool(e.value)


def has_implicit_root(func: tir.PrimFunc) -> bool:
    """Whether the root block is one that the parser adds by itself."""
    root, realize = func.root_block, func.body
    if (
        root is None
        or root.name != "root"
        or root.reads
        or root.writes
        or root.init
        or root.match_buffers
        or not _is_true(realize.predicate)
    ):
        return False
    if root.annotations:
        return False
    if root.alloc_buffers:
        return True
    nested = isinstance(root.body, BlockRealize) and not root.body.block.iter_vars
    return not nested and any(isinstance(n, BlockRealize) for n in walk(root.body))


class TensorPrinter(ExprPrinter):
    """Prints statements into a ``Doc``."""

    jumps: ClassVar[dict[str, str]] = {}  # other words for break and continue
    statements: ClassVar[dict[type, Callable[..., None]]] = {}  # type of statement to (printer, statement, tail)

    def __init__(self, names: Names, doc: Doc, module: str | None = None, functions: Any = None) -> None:
        super().__init__(names, doc, module, functions)
        self.loops: dict[Var, Range] = {}
        self.found: Declarations | None = None
        self.pending: list[Buffer] = []

    # ---- functions

    def function(self, func: tir.PrimFunc, name: str, decorator_name: str | None = None) -> None:
        """``@T.prim_func`` and the function."""
        attrs, options = func.attrs, [f"name={python_string(decorator_name)}"] if decorator_name else []
        symbol = decorator_name or name
        if attrs.get("global_symbol") == symbol and type(attrs["global_symbol"]) is str:
            attrs = attrs.without("global_symbol")
        elif "global_symbol" not in attrs:
            options.insert(0, "private=True")
        implicit = has_implicit_root(func)
        if not implicit and func.root_block is None and any(isinstance(n, BlockRealize) for n in walk(func.body)):
            options.append("root=False")
        self.doc.line(f"@T.prim_func({', '.join(options)})" if options else "@T.prim_func")
        self.definition(func, name, attrs, lambda: self.root(func.root_block) if implicit else self.stmt(func.body, True))

    def definition(self, func: tir.PrimFunc, name: str, attrs: Attrs, body: Callable[[], None]) -> None:
        """What follows the decorator: the signature, attributes, declarations, and what ``body`` prints."""
        self.found = Declarations(func)
        with self.names.frame():
            params, matches = self._parameters(func)
            returns = "" if func.ret_dtype is VOID else f" -> T.{func.ret_dtype}"
            with self.doc.body(f"def {name}({', '.join(params)}){returns}:"):
                if attrs:
                    self.doc.line(f"T.func_attr({self.attrs(attrs)})")
                self.free_variables()
                for handle, b in matches:
                    self.declare(b, f"T.match_buffer({handle}, {{}})")
                self.declare_pending()
                body()

    def _parameters(self, func: tir.PrimFunc) -> tuple[list[str], list[tuple[str, Buffer]]]:
        buffers, params, matches = dict(func.buffers), [], []
        for v in func.params:
            b = buffers.get(v)
            if b is None or shape_vars(b) or b.data in self.names or b.data in func.params or b in self.names:
                name = self.names.define(v, v.name if b is None or v.name != b.name else v.name + "_handle")
                size = v.size and v.dtype.is_int
                kind = ("T.SizeVar" if v.dtype is INT64 else f'T.SizeVar("", "{v.dtype}")') if size else f"T.{v.dtype}"
                params.append(f"{name}: {kind}")
                if b is not None:
                    matches.append((name, b))
            else:
                args = self.buffer_args(b)
                name = self.names.define(b, b.name)
                self.names.alias(b.data, name + ".data")
                params.append(f"{name}: T.Buffer({args})")
                if v in self.found.free_vars or any(n is v for n in walk(func.body)):  # the handle itself is used
                    params[-1] = f"{self.names.define(v, b.name + '_handle')}: T.handle"
                    matches.append((self.names[v], b))
        return params, matches

    def free_variables(self) -> None:
        """``n = T.int64()`` for variables that nothing declares."""
        for v in self.found.free_vars if self.found else ():
            if v not in self.names:
                self.doc.line(f"{self.names.define(v, v.name)} = {self.variable(v)}")
        self.pending = list(self.found.free_buffers) if self.found else []

    def variable(self, v: Var) -> str:
        """The declaration of a free variable."""
        return variable_text(v)

    def declare_pending(self) -> None:
        """Buffers that no statement declares, as soon as what they need is there."""
        for b in list(self.pending):
            if b not in self.names and self.found and all(v in self.names for v in self.found.needs(b)):
                self.declare(b, "T.Buffer({})", again=False)

    # ---- buffers

    def declare(self, b: Buffer, form: str, again: bool = True) -> str:
        """``name = form`` with the buffer's description in place of ``{}``."""
        args = self.buffer_args(b, matched="match_buffer" in form or "T.Buffer" in form)
        name = self.names.define(b, b.name)
        if b.data not in self.names:
            self.names.alias(b.data, name + ".data")
        self.doc.line(f"{name} = {form.format(args)}")
        if again:
            self.declare_pending()
        return name

    def buffer_args(self, b: Buffer, matched: bool = True, scope_position: bool = False) -> str:
        """Shape, dtype and what is not default. ``matched`` forms make an offset variable for an ``offset_factor``."""
        parts = [self._shape(b.shape), f'"{b.dtype}"']
        if scope_position:
            parts.append(python_string(b.scope))
        if b.data in self.names:
            parts.append(f"data={self.names[b.data]}")
        if b.strides:
            parts.append(f"strides={self._shape(b.strides)}")
        if b.elem_offset is not None:
            parts.append(f"elem_offset={self.expr(b.elem_offset)}")
        elif matched and b.offset_factor > 1:
            parts.append("elem_offset=None")
        if b.scope != "global" and not scope_position:
            parts.append(f"scope={python_string(b.scope)}")
        if b.align != 64:
            parts.append(f"align={b.align}")
        if b.offset_factor != 1:
            parts.append(f"offset_factor={b.offset_factor}")
        if b.axis_separators:
            parts.append(f"axis_separators={list(b.axis_separators)}")
        return ", ".join(parts)

    def _shape(self, items: tuple[Expr, ...]) -> str:
        return f"({', '.join(map(self.expr, items))}{',' if len(items) == 1 else ''})"

    # ---- statements

    def stmt(self, s: Stmt, tail: bool) -> None:
        """One statement; ``tail`` when nothing follows in this body, so that its own body need not be indented."""
        with self.doc.about(s):
            self.statements[type(s)](self, s, tail and s not in self.doc.notes)

    @contextmanager
    def scope(self, head: str) -> Any:
        """A body with a frame of names."""
        with self.names.frame(), self.doc.body(head):
            yield

    def seq(self, s: Seq, tail: bool) -> None:
        """Statements in order; a sequence that is part of another, or has one statement, says so."""
        if len(s.stmts) == 1 or not tail:
            with self.scope("with T.seq():"):
                self.parts(s)
        else:
            self.parts(s)

    def parts(self, s: Seq) -> None:
        """The statements of a sequence."""
        for k, part in enumerate(s.stmts):
            self.stmt(part, k == len(s.stmts) - 1 and not isinstance(part, Seq))

    def store(self, s: tir.BufferStore, tail: bool) -> None:
        """``A[i] = value``"""
        if s.predicate is None:
            self.doc.line(f"{self.buffer(s.buffer)}[{self.indices(s.indices)}] = {self.expr(s.value)}")
        else:
            indices = ", ".join(map(self.expr, s.indices))
            self.doc.line(
                f"{self.buffer(s.buffer)}.vstore([{indices}], {self.expr(s.value)}, predicate={self.expr(s.predicate)})"
            )

    def evaluate(self, s: tir.Evaluate, tail: bool) -> None:
        """A call as it is, other expressions under ``T.evaluate``."""
        is_return = (
            isinstance(s.value, tir.Call) and s.value.op == "ret" and s.value.dtype is VOID and len(s.value.args) == 1
        )
        word = _JUMPS.get(jump(s) or "")
        if word is not None:
            self.doc.line(self.jumps.get(word, word))
        elif is_return and tail:
            self.doc.line(f"return {self.expr(s.value.args[0])}")
        else:
            self.doc.line(self.expr(s.value) if isinstance(s.value, tir.Call) else f"T.evaluate({self.expr(s.value)})")

    def if_(self, s: tir.If, tail: bool, word: str = "if") -> None:
        """``if``, ``elif`` and ``else``"""
        with self.scope(f"{word} {self.expr(s.condition)}:"):
            self.stmt(s.then_case, True)
        if isinstance(s.else_case, tir.If):
            self.if_(s.else_case, True, "elif")
        elif s.else_case is not None:
            with self.scope("else:"):
                self.stmt(s.else_case, True)

    def while_(self, s: tir.While, tail: bool) -> None:
        """``while``"""
        with self.scope(f"while {self.expr(s.condition)}:"):
            self.stmt(s.body, True)

    def assert_(self, s: tir.Assert, tail: bool) -> None:
        """``assert``"""
        message = python_string(s.message)
        if s.values:
            message = f"({', '.join([message, *map(self.expr, s.values)])})"
        self.doc.line(f"assert {self.expr(s.condition)}, {message}")

    def _scoped(self, flat: str, opened: str, define: Callable[[], None], body: Stmt, tail: bool) -> None:
        """A statement with a body: flat when nothing follows, else under ``with``."""
        if tail:
            self.doc.line(flat)
            define()
            self.declare_pending()
            self.stmt(body, True)
            return
        with self.names.frame():
            with self.doc.body(opened):
                define()
                self.declare_pending()
                self.stmt(body, True)

    def let(self, s: tir.Let, tail: bool) -> None:
        """``x: T.int32 = value``; a variable that the signature mentions already is bound by ``T.bind``."""
        value = self.expr(s.value)
        if s.var in self.names:
            known = f"{value}, var={self.names[s.var]}"
            self._scoped(f"T.bind({known})", f"with T.LetStmt({known}):", lambda: None, s.body, tail)
            return
        if tail:
            name = self.names.define(s.var, s.var.name)
            size = "T.SizeVar" if s.var.dtype is INT64 else f'T.SizeVar("", "{s.var.dtype}")'
            self._scoped(
                f"{name}: {size if s.var.size else f'T.{s.var.dtype}'} = {value}", "", lambda: None, s.body, True
            )
            return
        with self.names.frame():
            name = self.names.define(s.var, s.var.name)
            var = f', var=T.SizeVar({name!r}, "{s.var.dtype}")' if s.var.size else ""
            self._scoped("", f"with T.LetStmt({value}{var}) as {name}:", lambda: None, s.body, False)

    def allocation(self, s: Any, tail: bool) -> None:
        """``A = T.allocate(...)``, ``A = T.decl_buffer(...)``"""
        b = s.buffer
        if isinstance(s, tir.Allocate):
            text = f"T.allocate({self.buffer_args(b, False, True)}" + (
                f", annotations={self.attrs(s.annotations)})" if s.annotations else ")"
            )
        else:
            text = f"T.decl_buffer({self.buffer_args(b, False)})"

        def define(name: str) -> None:
            if b.data not in self.names:
                self.names.alias(b.data, name + ".data")

        if tail:
            name = self.names.define(b, b.name)
            self._scoped(f"{name} = {text}", "", lambda: define(name), s.body, True)
            return
        with self.names.frame():
            name = self.names.define(b, b.name)
            self._scoped("", f"with {text} as {name}:", lambda: define(name), s.body, False)

    def attr(self, s: tir.AttrStmt, tail: bool) -> None:
        """``T.attr(subject, key, value)``"""
        text = f"T.attr({self.value(s.subject)}, {python_string(s.key)}, {self.expr(s.value)})"
        self._scoped(text, f"with {text}:", lambda: None, s.body, tail)

    # ---- loops

    def for_(self, s: For, tail: bool) -> None:
        """``for``; perfect nests of plain loops as one ``T.grid``."""
        nest = [s]
        while (
            self.perfect(nest[-1])
            and isinstance(nest[-1].body, For)
            and self.perfect(nest[-1].body)
            and not any(v in {f.loop_var for f in nest} for v in walk(nest[-1].body.extent))
        ):
            nest.append(nest[-1].body)
        what = f"T.grid({', '.join(self.expr(f.extent) for f in nest)})" if len(nest) > 1 else self._iterations(s)
        with self.names.frame():
            variables = ", ".join(self.names.define(f.loop_var, f.loop_var.name) for f in nest)
            for f in nest:
                self.loops[f.loop_var] = Range(f.min, f.extent)
            with self.doc.body(f"for {variables} in {what}:"):
                self.declare_pending()
                self.stmt(nest[-1].body, True)

    def perfect(self, s: For) -> bool:
        """Whether a loop may be one of ``T.grid``."""
        return _plain_loop(s) and s not in self.doc.notes

    def _iterations(self, s: For) -> str:
        dtype, zero = s.loop_var.dtype, type(s.min) is IntImm and s.min.value == 0
        stop = stop_of(s.min, s.extent)
        if s.min.dtype is dtype and stop is not None:
            args = [self.expr(s.extent)] if zero else [self.expr(s.min), self.expr(stop)]
        else:
            args = [self.expr(s.min), f"extent={self.expr(s.extent)}", f'dtype="{dtype}"']
        plain = (
            len(args) + (s.kind is not ForKind.SERIAL) < 3 and not s.annotations and s.step is None and s.thread is None
        )
        if s.thread is not None:
            args.append(f"thread={python_string(s.thread)}")
        if s.annotations:
            args.append(f"annotations={self.attrs(s.annotations)}")
        if s.step is not None:
            args.append(f"step={self.value(s.step)}")
        return (
            f"range({', '.join(args)})"
            if plain and s.kind is ForKind.SERIAL
            else f"T.{_KINDS[s.kind]}({', '.join(args)})"
        )

    # ---- blocks

    def block_name(self, part: str = "") -> str:
        """What a block, its attributes and its buffers are called."""
        return f"T.sblock{part}"

    def realize(self, s: BlockRealize, tail: bool) -> None:
        """``with T.sblock(name):``"""
        self.block(s.block, s.iter_values, s.predicate)

    def block(self, b: Block, values: tuple[Expr, ...] | None, predicate: Expr) -> None:
        """A block; without ``values`` one that stands alone."""
        with self.scope(f"with {self.block_name()}({python_string(b.name)}{'' if values is not None else ', no_realize=True'}):"):
            self._axes(b, values)
            if not _is_true(predicate):
                self.doc.line(f"T.where({self.expr(predicate)})")
            self.doc.line(f"T.reads({', '.join(map(self.region, b.reads))})")
            self.doc.line(f"T.writes({', '.join(map(self.region, b.writes))})")
            self._inside(b)

    def root(self, b: Block | None) -> None:
        """The contents of an implicit root block."""
        if b is not None:
            self._inside(b)

    def _inside(self, b: Block) -> None:
        if b.annotations:
            self.doc.line(f"{self.block_name('_attr')}({self.attrs(b.annotations)})")
        self.declare_pending()
        for a in b.alloc_buffers:
            self.declare(a, self.block_name("_alloc_buffer") + "({})")
        for m in b.match_buffers:
            self.declare(m.buffer, f"T.match_buffer({self.region(m.source)}, {{}})")
        if b.init is not None:
            with self.scope("with T.init():"):
                self.stmt(b.init, True)
        self.stmt(b.body, True)

    def _axes(self, b: Block, values: tuple[Expr, ...] | None) -> None:
        pairs = list(zip(b.iter_vars, values or [None] * len(b.iter_vars)))
        if len(pairs) > 1 and all(self._is_loop(iv, v) for iv, v in pairs):
            bound = ", ".join(self.expr(v) for _, v in pairs)
            names = ", ".join(self.names.define(iv.var, iv.var.name) for iv, _ in pairs)
            self.doc.line(f'{names} = T.axis.remap("{"".join(_AXES[iv.kind][1] for iv, _ in pairs)}", [{bound}])')
            return
        for iv, value in pairs:
            args = [self.domain(iv.dom)] + ([] if value is None else [self.expr(value)])
            if value is not None and iv.var.dtype is not value.dtype:
                args.append(f'dtype="{iv.var.dtype}"')
            self.doc.line(f"{self.names.define(iv.var, iv.var.name)} = T.axis.{_AXES[iv.kind][0]}({', '.join(args)})")

    def _is_loop(self, iv: tir.IterVar, value: Any) -> bool:
        loop = self.loops.get(value) if isinstance(value, Var) else None
        return (
            loop is not None and loop.min is iv.dom.min and loop.extent is iv.dom.extent and iv.var.dtype is value.dtype
        )

    def domain(self, dom: Range) -> str:
        """The domain of an axis: an extent, or (begin, end)."""
        stop = stop_of(dom.min, dom.extent)
        if dom.extent in self.loops or stop is None:
            return f"T.Range({self.expr(dom.min)}, {self.expr(dom.extent)})"
        return (
            self.expr(dom.extent)
            if type(dom.min) is IntImm and dom.min.value == 0
            else f"({self.expr(dom.min)}, {self.expr(stop)})"
        )


def variable_text(v: Var) -> str:
    """The declaration of a free variable."""
    return f"T.{v.dtype}()" if v.size == v.dtype.is_int else f"T.{v.dtype}(is_size_var={v.size})"


def _plain_loop(s: For) -> bool:
    zero = type(s.min) is IntImm and s.min.value == 0 and s.min.dtype is s.extent.dtype is s.loop_var.dtype
    return s.kind is ForKind.SERIAL and zero and not s.annotations and s.step is None and s.thread is None


TensorPrinter.statements = {
    Seq: TensorPrinter.seq,
    tir.BufferStore: TensorPrinter.store,
    tir.Evaluate: TensorPrinter.evaluate,
    tir.If: TensorPrinter.if_,
    tir.While: TensorPrinter.while_,
    tir.Assert: TensorPrinter.assert_,
    tir.Let: TensorPrinter.let,
    tir.Allocate: TensorPrinter.allocation,
    tir.DeclBuffer: TensorPrinter.allocation,
    tir.AttrStmt: TensorPrinter.attr,
    For: TensorPrinter.for_,
    BlockRealize: TensorPrinter.realize,
    Block: lambda p, s, tail: p.block(s, None, tir.logical_and()),
}
