# SPDX-License-Identifier: Apache-2.0
"""Any node as script: modules, functions, statements, expressions, struct info."""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.constant_file import constants_of, save_constants
from ...ir.dtype import VOID
from ...ir.escape import python_identifier, python_string
from ...ir.module import IRModule
from ...ir.node import Node
from .declare import Declarations
from .doc import Doc
from .names import Names
from .options import PrinterOptions
from .places import resolve
from .tensor import TensorPrinter

_IMPORT = {"I": "ir as I", "R": "relax as R", "T": "tir as T"}


def print_script(node: Any, **options: Any) -> str:
    """The script of any node; ``PrinterOptions`` says what may be asked. Raises TypeError for an unknown option, ValueError for a value
    that one does not take.
    """
    asked = PrinterOptions.of(options)
    doc = Doc(asked)
    _speak_of(node, doc)
    dialect = _dialect(doc)
    write = next((_WRITE[t] for t in type(node).__mro__ if t in _WRITE), None) or next((p for t, p in _FAMILIES.items() if isinstance(node, t)), None)
    if write is None:
        return node.fields_text() if isinstance(node, Node) else str(node)
    with doc.about(node):
        getattr(dialect, write)(node)
    if asked.constants is not None:
        save_constants(asked.constants, constants_of(node))
    if asked.imports and isinstance(node, IRModule | tir.BaseFunc):
        dialect.head()
    return doc.text()


def _speak_of(node: Any, doc: Doc) -> None:
    """What is to be underlined or annotated, by object and by path."""
    asked = doc.options
    doc.marks.update(dict.fromkeys(asked.obj_to_underline))
    doc.marks.update(resolve(node, path) for path in asked.path_to_underline)
    doc.notes.update(asked.obj_to_annotate)
    doc.notes.update((resolve(node, path)[0], note) for path, note in asked.path_to_annotate.items())


class Dialect:
    """How a node is written into a ``Doc``; this one is Roundel's own, another overrides what differs."""

    def __init__(self, doc: Doc) -> None:
        self.doc, self.options = doc, doc.options

    # ---- printers

    def names(self, *reserved: str) -> Names:
        """Names, none of them given yet."""
        asked = self.options
        return Names((*reserved, *asked.prefixes.values(), asked.module_alias), asked.show_object_address)

    def tensor(self, names: Names, module: str | None = None, functions: Any = None) -> TensorPrinter:
        """The printer of tensor programs."""
        return TensorPrinter(names, self.doc, module, functions)

    def graph(self, names: Names, module: str | None = None, functions: Any = None) -> Any:
        """The printer of graph functions."""
        from .graph import GraphPrinter  # printed on first use: tensor programs alone do not need it

        return GraphPrinter(names, self.doc, module, functions)

    def head(self) -> None:
        """The import line above what is written."""
        text = "\n".join(self.doc.lines)
        used = ", ".join(v for k, v in _IMPORT.items() if f"{k}." in text)
        self.doc.above(f"from roundel.script import {used}", "", "")
        self.doc.lines.append("")

    # ---- modules and functions

    def module(self, mod: IRModule) -> None:
        """``@I.ir_module`` and the class."""
        class_name = python_identifier(self.options.name or "Module")
        names = self.names(class_name)
        functions = {}
        for key, func in self.in_order(mod):
            functions[key] = names.fresh(key), getattr(func, "ret_dtype", VOID)
        self.doc.line("@I.ir_module")
        with self.doc.body(f"class {class_name}:"):
            before = len(self.doc.lines)
            if self.doc.constants is not None:
                self.doc.line(f"I.module_constants({python_string(self.doc.constants)})")
            if mod.attrs:
                self.doc.line(f"I.module_attrs({self.tensor(names).attrs(mod.attrs)})")
            for key, func in self.in_order(mod):
                if len(self.doc.lines) > before:
                    self.doc.line("")
                self.function(func, names, class_name, functions, functions[key][0], key)

    def in_order(self, mod: IRModule) -> list[tuple[str, Any]]:
        """The functions in the order in which they are written."""
        return list(mod.items())

    def function(self, func: Any, names: Names, module: str | None, functions: Any, name: str, key: str) -> None:
        """A function called ``name`` in the text and ``key`` in the module."""
        if isinstance(func, graph.ExternFunc):
            self.doc.line(f"{name} = {self.graph(names).value_of(func)}")
            return
        make = self.tensor if isinstance(func, tir.PrimFunc) else self.graph
        with self.doc.about(func):
            make(names, module, functions).function(func, name, key if key != name else None)

    def alone(self, func: Any) -> None:
        """A function without a module."""
        key = self.options.name or str(func.attrs.get("global_symbol", "main"))
        self.function(func, self.names(key), None, {}, python_identifier(key), key)

    # ---- fragments

    def statement(self, s: Any) -> None:
        """A statement below what it uses without declaring it."""
        printer = self.tensor(self.names())
        printer.found = Declarations(s)
        printer.free_variables()
        printer.declare_pending()
        printer.stmt(s, True)

    def expression(self, e: Any) -> None:
        """An expression, index map, reducer or region."""
        printer = self.tensor(self.names())
        if isinstance(e, tir.MatchBufferRegion):
            printer.declare(e.buffer, f"T.match_buffer({printer.region(e.source)}, {{}})", again=False)
        else:
            self.doc.line(printer.node(e))

    def buffer(self, b: tir.Buffer) -> None:
        """The declaration of a buffer."""
        self.tensor(self.names()).declare(b, "T.Buffer({})", again=False)

    def range(self, r: tir.Range) -> None:
        """A range, as it stands in an index."""
        self.doc.line(self.tensor(self.names()).range_item(r))

    def iter_var(self, v: tir.IterVar) -> None:
        """``vi: spatial in 128``"""
        domain = self.tensor(self.names()).domain(v.dom)
        self.doc.line(f"{python_identifier(v.var.name)}: {v.kind.value} in {domain}")

    def of_graph(self, n: Any) -> None:
        """A part of a graph function."""
        self.graph(self.names()).fragment(n)

    def global_var(self, n: Any) -> None:
        """The name of a function of the module."""
        self.doc.line(f"I.GlobalVar({python_string(n.name)})")


def _dialect(doc: Doc) -> Dialect:
    if doc.options.dialect == "roundel":
        return Dialect(doc)
    from .tvm import TvmDialect

    return TvmDialect(doc)


_WRITE: dict[type, str] = {
    IRModule: "module",
    tir.PrimFunc: "alone",
    graph.Function: "alone",
    tir.Buffer: "buffer",
    tir.BufferRegion: "expression",
    tir.IndexMap: "expression",
    tir.CommReducer: "expression",
    tir.Range: "range",
    tir.IterVar: "iter_var",
    tir.MatchBufferRegion: "expression",
    graph.GlobalVar: "global_var",
}
_FAMILIES: dict[type, str] = {
    tir.Stmt: "statement",
    tir.Expr: "expression",
    graph.StructInfo: "of_graph",
    graph.GraphExpr: "of_graph",
    graph.Binding: "of_graph",
    graph.BindingBlock: "of_graph",
}


def show(node: Any, style: str | None = None, **options: Any) -> None:
    """Print the script, highlighted on a terminal; ``style``: ``"light"``, ``"dark"``, ``"ansi"`` or the name of a Pygments style."""
    from rich.console import Console
    from rich.syntax import Syntax

    theme = {"light": "default", "dark": "monokai", "ansi": "ansi_dark", None: "monokai"}.get(style, style)
    text = print_script(node, **options)
    Console(soft_wrap=True, emoji=False).print(Syntax(text, "python", theme=theme or "monokai", background_color="default"))
