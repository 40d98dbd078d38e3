# SPDX-License-Identifier: Apache-2.0
"""Modules from syntax: functions of both levels in a class, read on demand as they call each other; whole texts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...ir.attrs import Attrs
from ...ir.constant_file import load_constants
from ...ir.constants import ConstData
from ...ir.dtype import VOID, DType
from ...ir.equal import structural_equal
from ...ir.graph import ExternFunc, GlobalVar
from ...ir.module import IRModule
from ...ir.tir import BaseFunc
from ..marks import ConstantsFile
from .core import Scope, StaticEvaluator, handles
from .frames import Body
from .macros import Macro, is_hygienic, is_macro
from .python_functions import PythonFunctions
from .source import Source
from .tensor import TensorParser


class ModuleRef:
    """``Module`` (or ``cls``) inside a script: its attributes are the functions."""

    def __init__(self, names: Mapping[str, str], externs: Mapping[str, ExternFunc]) -> None:
        self._names, self._externs = names, externs

    def __getattr__(self, name: str) -> GlobalVar | ExternFunc:
        if name in self._externs:
            return self._externs[name]
        if name.startswith("__") or name not in self._names:
            raise AttributeError(f"the module has no function {name!r}; it has {', '.join(self._names)}")
        return GlobalVar(self._names[name])


class ModuleParser:
    """Reads one module, or a function that stands alone."""

    def __init__(self, source: Source, captured: Mapping[str, Any]) -> None:
        self.source, self.captured = source, dict(captured)
        self.nodes: dict[str, Any] = {}
        self.done: dict[str, BaseFunc] = {}
        self.reading: set[str] = set()
        self.returns: dict[str, DType] = {}
        self.added: dict[str, BaseFunc] = {}
        self.constants: dict[str, ConstData] = {}
        self.externs: dict[str, ExternFunc] = {}
        self.python = PythonFunctions()
        self.alone = False

    # ---- entry points

    def standalone(self, node: ast.FunctionDef) -> BaseFunc:
        """A function outside of a module."""
        self.alone = True
        kind, options = self._decorator(node)
        return self._read(node, kind, options)

    def module(self, node: ast.ClassDef) -> IRModule:
        """A class as a module."""
        attrs: dict[str, Any] = {}
        names: dict[str, str] = {}
        itself = ModuleRef(names, self.externs)
        self.captured.update({node.name: itself, "cls": itself})
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and self._is_python(item):
                self.python.add(self.source, item, self.captured)
            elif isinstance(item, ast.FunctionDef):
                _, options = self._decorator(item)
                name = options.get("name") or item.name
                if name in self.nodes:
                    raise self.source.error(item, f"the module has two functions called {name}")
                self.nodes[name], names[item.name] = item, name
                self.captured[item.name] = GlobalVar(name)
                self.returns[name] = self._return_dtype(item)
            elif not _is_docstring(item):
                self._module_item(item, attrs)
        made = {name: self.function(name) for name in self.nodes}
        mod = IRModule({**made, **self.added}, Attrs(attrs))
        self.python.mod = mod = mod.replace(constants=self.constants) if self.constants else mod
        return mod

    def add(self, func: BaseFunc, hint: str) -> GlobalVar:
        """A function that the script makes on the way (``R.emit_te``), under a free name; an equal one is shared."""
        for name, known in self.added.items():
            if structural_equal(known, func):
                return GlobalVar(name)
        taken = {*self.nodes, *self.added}
        name = next(n for n in (f"{hint}{k or ''}" for k in count()) if n not in taken)
        self.added[name] = func
        return GlobalVar(name)

    def function(self, name: str) -> BaseFunc:
        """A function of the module, read on first use; raises ScriptError on recursion without a return annotation."""
        if name not in self.done:
            node = self.nodes[name]
            if name in self.reading:
                raise self.source.error(
                    node,
                    f"function {name} calls itself before its result is known",
                    "annotate what it returns: -> R.Tensor(...)",
                )
            self.reading.add(name)
            self.done[name] = self._read(node, *self._decorator(node))
            self.reading.discard(name)
        return self.done[name]

    def evaluator(self) -> TensorParser:
        """An evaluator of expressions at module level."""
        made = TensorParser(self.source, Scope(self.captured))
        made.returns, made.body = self.returns, Body()
        return made

    # ---- parts

    def _read(self, node: ast.FunctionDef, kind: str, options: dict[str, Any]) -> BaseFunc:
        name, private = options.get("name") or node.name, bool(options.get("private"))
        if kind == "tir":
            return self.evaluator().function(node, private, name, bool(options.get("root", True)))
        from .graph import GraphParser  # read on first use: tensor programs alone do not need it

        return GraphParser(self).function(node, private, name, bool(options.get("pure", True)))

    def _is_python(self, node: ast.FunctionDef) -> bool:
        values = (StaticModule(self.source, Scope(self.captured)).visit(d) for d in node.decorator_list)
        return any(getattr(v, "__name__", "") == "pyfunc" for v in values)

    def _decorator(self, node: ast.FunctionDef) -> tuple[str, dict[str, Any]]:
        for d in node.decorator_list:
            call = d if isinstance(d, ast.Call) else None
            target = d.func if isinstance(d, ast.Call) else d
            value = StaticModule(self.source, Scope(self.captured)).visit(target)
            kind = {"prim_func": "tir", "function": "graph"}.get(getattr(value, "__name__", ""))
            if kind:
                options = (
                    {k.arg: StaticModule(self.source, Scope(self.captured)).visit(k.value) for k in call.keywords}
                    if call
                    else {}
                )
                return kind, {str(k): v for k, v in options.items()}
        raise self.source.error(
            node,
            f"function {node.name} is neither a tensor program nor a graph function",
            "decorate it with @T.prim_func or @R.function",
        )

    def _return_dtype(self, node: ast.FunctionDef) -> DType:
        if node.returns is None or self._decorator(node)[0] != "tir":
            return VOID
        found = self.evaluator().visit(node.returns)
        return VOID if found is None else DType(getattr(found, "dtype", found))

    def _module_item(self, item: ast.stmt, attrs: dict[str, Any]) -> None:
        if isinstance(item, ast.Expr):
            found = self.evaluator().visit(item.value)
            if isinstance(found, ConstantsFile):
                beside = Path(self.source.file).parent / found.file
                self.constants.update(load_constants(beside if beside.is_file() else found.file))
                return
            if isinstance(found, Mapping):
                attrs.update(found)
                return
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            name, value = item.targets[0].id, self.evaluator().visit(item.value)
            self.captured[name] = value
            if isinstance(value, ExternFunc):  # calls of it name the function itself
                self.nodes[name], self.done[name] = item, value
                self.externs[name] = value
            return
        elif isinstance(item, ast.Pass):
            return
        raise self.source.error(item, "a module holds functions, I.module_attrs({...}) and constants")


class StaticModule(StaticEvaluator):
    """Expressions outside of functions."""


class TextParser(StaticModule):
    """Reads a whole text: imports, constants, functions and modules."""

    def __init__(self, source: Source, names: Mapping[str, Any], spaces: Mapping[str, Any]) -> None:
        super().__init__(source, Scope(dict(names)))
        self.spaces = {"ir": spaces["I"], "tir": spaces["T"], "tirx": spaces["T"], "relax": spaces["R"]}
        self.result: Any = None

    def run(self, tree: ast.Module) -> Any:
        """The last module or function of the text."""
        for item in tree.body:
            self.visit(item)
        if self.result is None:
            raise self.source.error(
                tree,
                "the text defines no module and no function",
                "write a class under @I.ir_module or a function under @T.prim_func",
            )
        return self.result

    def _names(self) -> dict[str, Any]:
        return {**self.scope.captured, **self.scope.frames[0]}

    @handles(ast.ImportFrom)
    def _import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for a in node.names:
            if module.endswith("script") and a.name in self.spaces:
                value = self.spaces[a.name]
            elif module.endswith("script.parser") and a.name in self.spaces:
                value = self.spaces[a.name]
            elif module != "__future__":
                value = getattr(import_module(module), a.name)
            else:
                continue
            self.scope.define(a.asname or a.name, value)

    @handles(ast.Import)
    def _import(self, node: ast.Import) -> None:
        for a in node.names:
            if a.name.split(".")[0] == "tvm" and find_spec("tvm") is None:  # what scripts take from it is here
                self.scope.define(a.asname or "tvm", self._tvm())
                continue
            module = import_module(a.name)
            self.scope.define(
                a.asname or a.name.split(".")[0], module if a.asname else import_module(a.name.split(".")[0])
            )

    def _tvm(self) -> SimpleNamespace:
        script = SimpleNamespace(**self.spaces, ir_module=self.spaces["ir"].ir_module)
        return SimpleNamespace(script=script, tir=self.spaces["tir"], relax=self.spaces["relax"])

    @handles(ast.Assign)
    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.assign_names(target, self.visit(node.value))

    @handles(ast.Expr)
    def _expr(self, node: ast.Expr) -> None:
        if not _is_docstring(node):
            raise self.error(node, "only imports, constants, functions and modules stand at the top of a script")

    @handles(ast.FunctionDef)
    def _function(self, node: ast.FunctionDef) -> None:
        if is_macro(node):
            self.scope.define(node.name, Macro(self.source, node, self._names(), is_hygienic(node)))
            return
        if not node.decorator_list:  # plain Python, for R.emit_te and the like
            names = self._names()
            exec(compile(ast.Module([node], []), self.source.file, "exec"), names)
            self.scope.define(node.name, names[node.name])
            return
        self.result = ModuleParser(self.source, self._names()).standalone(node)
        self.scope.define(node.name, self.result)

    @handles(ast.ClassDef)
    def _class(self, node: ast.ClassDef) -> None:
        self.result = ModuleParser(self.source, self._names()).module(node)
        self.scope.define(node.name, self.result)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
