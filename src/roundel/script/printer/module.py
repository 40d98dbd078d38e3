# SPDX-License-Identifier: Apache-2.0
"""Any node as script: modules, functions, statements, expressions, struct info."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...ir import graph, tir
from ...ir.constant_file import constants_of, save_constants
from ...ir.dtype import VOID
from ...ir.escape import python_identifier, python_string
from ...ir.module import IRModule
from ...ir.node import Node
from .declare import Declarations
from .doc import Doc
from .expr import ExprPrinter
from .names import Names
from .tensor import TensorPrinter

_IMPORT = {"I": "ir as I", "R": "relax as R", "T": "tir as T"}


def print_script(
    node: Any, *, name: str | None = None, indent: int = 4, imports: bool = True, constants: str | Path | None = None
) -> str:
    """The script of any node. ``name`` is the module's class name or the function's (by default ``Module``, and
    ``global_symbol`` or ``main``); ``imports`` puts the import line on top of modules and functions. ``constants`` is a
    file to which the constants go that the text names by key; a module's text then says so, and another process reads it
    (of a function by ``parse(text, constants=file)``).
    """
    printer = _PRINT.get(type(node)) or next((p for t, p in _FAMILIES.items() if isinstance(node, t)), None)
    if printer is None:
        return node.fields_text() if isinstance(node, Node) else str(node)
    doc = Doc(indent, None if constants is None else str(constants))
    printer(node, doc, name)
    if constants is not None:
        save_constants(constants, constants_of(node))
    text = doc.text()
    if imports and isinstance(node, IRModule | tir.BaseFunc):
        used = ", ".join(v for k, v in _IMPORT.items() if f"{k}." in text)
        text = f"from roundel.script import {used}\n\n\n{text}\n"
    return text


def _module(mod: IRModule, doc: Doc, name: str | None) -> None:
    class_name = python_identifier(name or "Module")
    names = Names((class_name,))
    functions = {}
    for key, func in mod.items():
        functions[key] = names.fresh(key), getattr(func, "ret_dtype", VOID)
    doc.line("@I.ir_module")
    with doc.body(f"class {class_name}:"):
        if doc.constants is not None:
            doc.line(f"I.module_constants({python_string(doc.constants)})")
        if mod.attrs:
            doc.line(f"I.module_attrs({ExprPrinter(names).attrs(mod.attrs)})")
        for k, (key, func) in enumerate(mod.items()):
            if k or mod.attrs or doc.constants is not None:
                doc.line("")
            _function(func, doc, names, class_name, functions, functions[key][0], key)


def _function(func: Any, doc: Doc, names: Names, module: str | None, functions: Any, name: str, key: str) -> None:
    decorator_name = key if key != name else None
    if isinstance(func, tir.PrimFunc):
        TensorPrinter(names, doc, module, functions).function(func, name, decorator_name)
    else:
        from .graph import GraphPrinter  # printed on first use: tensor programs alone do not need it

        GraphPrinter(names, doc, module, functions).function(func, name, decorator_name)


def _alone(func: Any, doc: Doc, name: str | None) -> None:
    key = name or str(func.attrs.get("global_symbol", "main"))
    _function(func, doc, Names((key,)), None, {}, python_identifier(key), key)


def _statement(s: Any, doc: Doc, name: str | None) -> None:
    printer = TensorPrinter(Names(), doc)
    printer.found = Declarations(s)
    printer.free_variables()
    printer.declare_pending()
    printer.stmt(s, True)


def _expression(e: Any, doc: Doc, name: str | None) -> None:
    doc.line(ExprPrinter(Names()).node(e))


def _buffer(b: tir.Buffer, doc: Doc, name: str | None) -> None:
    TensorPrinter(Names(), doc).declare(b, "T.Buffer({})", again=False)


def _range(r: tir.Range, doc: Doc, name: str | None) -> None:
    doc.line(ExprPrinter(Names()).range_item(r))


def _iter_var(v: tir.IterVar, doc: Doc, name: str | None) -> None:
    printer = TensorPrinter(Names(), doc)
    doc.line(f"{python_identifier(v.var.name)}: {v.kind.value} in {printer._domain(v.dom)}")


def _graph(n: Any, doc: Doc, name: str | None) -> None:
    from .graph import GraphPrinter

    GraphPrinter(Names(), doc).fragment(n)


_PRINT: dict[type, Callable[[Any, Doc, str | None], None]] = {
    IRModule: _module,
    tir.PrimFunc: _alone,
    graph.Function: _alone,
    tir.Buffer: _buffer,
    tir.BufferRegion: _expression,
    tir.IndexMap: _expression,
    tir.CommReducer: _expression,
    tir.Range: _range,
    tir.IterVar: _iter_var,
}
_FAMILIES: dict[type, Callable[[Any, Doc, str | None], None]] = {
    tir.Stmt: _statement,
    tir.Expr: _expression,
    graph.StructInfo: _graph,
    graph.GraphExpr: _graph,
    graph.Binding: _graph,
    graph.BindingBlock: _graph,
    graph.GlobalVar: lambda n, doc, name: doc.line(f"I.GlobalVar({python_string(n.name)})"),
}


def show(node: Any, **options: Any) -> None:
    """Print the script, highlighted on a terminal."""
    from rich.console import Console
    from rich.syntax import Syntax

    Console(soft_wrap=True).print(Syntax(print_script(node, **options), "python", background_color="default"))
