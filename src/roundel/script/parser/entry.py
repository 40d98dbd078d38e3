# SPDX-License-Identifier: Apache-2.0
"""From decorated Python or text to IR: ``@T.prim_func``, ``@R.function``, ``@I.ir_module``, ``parse(text)``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from ...ir.constant_file import load_constants
from ...ir.errors import ScriptError
from ...ir.module import IRModule
from .macros import Macro
from .module import ModuleParser, TextParser
from .source import Source, class_node, function_node


def _captured(fn: FunctionType, frame: Any) -> dict[str, Any]:
    """Names that a function sees: globals, the locals where it is defined, its closure."""
    cells = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return {**fn.__globals__, **frame.f_locals, **cells}


def _in_class(fn: FunctionType) -> bool:
    parent = fn.__qualname__.rpartition(".")[0]
    return bool(parent) and not parent.endswith("<locals>")


def _decorate(kind: str, fn: Any, frame: Any) -> Any:
    if not isinstance(fn, FunctionType):
        raise ScriptError(f"a {kind} script is a function, not {type(fn).__name__}")
    if _in_class(fn):
        return fn  # the decorator of the class reads it
    source, node = function_node(fn)
    return ModuleParser(source, _captured(fn, frame)).standalone(node)


def prim_func(
    fn: Any = None,
    *,
    private: bool = False,
    name: str | None = None,
    root: bool = True,
    check_well_formed: bool = True,
    s_tir: bool = True,
) -> Any:
    """``@T.prim_func``: the function as a tensor program."""
    frame = sys._getframe(1)
    return (
        (lambda f: _decorate("tensor program", f, sys._getframe(1)))
        if fn is None
        else _decorate("tensor program", fn, frame)
    )


def function(
    fn: Any = None, *, pure: bool = True, private: bool = False, name: str | None = None, check_well_formed: bool = True
) -> Any:
    """``@R.function``: the function as a graph function."""
    frame = sys._getframe(1)
    return (lambda f: _decorate("graph", f, sys._getframe(1))) if fn is None else _decorate("graph", fn, frame)


def macro(fn: Any = None, *, hygienic: bool = True) -> Any:
    """``@T.macro``: statements that are read in place of a call."""
    frame = sys._getframe(1)
    if fn is not None and not isinstance(fn, FunctionType):
        raise ScriptError("a macro's options are given by name", hint="@T.macro(hygienic=False)")
    if fn is None:
        return lambda f: Macro(*function_node(f), _captured(f, sys._getframe(1)), hygienic)
    return Macro(*function_node(fn), _captured(fn, frame), hygienic)


inline = macro  # names are those where it is defined


def ir_module(cls: Any = None, *, check_well_formed: bool = True, s_tir: bool = True) -> Any:
    """``@I.ir_module``: the class as a module. A class that inherits ``of_ir_module`` becomes what that makes of the module and its Python functions."""
    frame = sys._getframe(1)
    return (lambda c: module_of(c, sys._getframe(1))) if cls is None else module_of(cls, frame)


def module_of(cls: Any, frame: Any) -> Any:
    """The module that a class in this frame describes."""
    if not isinstance(cls, type):
        raise ScriptError(f"@I.ir_module decorates a class, not {type(cls).__name__}")
    captured = {**frame.f_globals, **frame.f_locals}
    for fn in vars(cls).values():
        if isinstance(fn, FunctionType):
            captured.update((k, v) for k, v in _captured(fn, frame).items() if k in fn.__code__.co_freevars)
    source, node = class_node(cls, frame.f_lineno, frame.f_code.co_filename)
    parser = ModuleParser(source, captured)
    made = parser.module(node)
    return cls.of_ir_module(made, parser.python) if hasattr(cls, "of_ir_module") else made


def namespaces() -> dict[str, Any]:
    """The names that a text may use without importing them."""
    return {
        short: import_module(f"roundel.script.{name}") for short, name in (("I", "ir"), ("T", "tir"), ("R", "relax"))
    }


def parse(
    text: str, extra_vars: Mapping[str, Any] | None = None, file: str = "<script>", constants: str | Path | None = None
) -> Any:
    """The module or function that a text defines (the last one, where there are several).

    ``extra_vars`` are names that the text may use besides ``I``, ``T`` and ``R``; ``constants`` a file that
    ``script(constants=...)`` wrote (a module's text names it itself). The text is trusted as Python is. Raises ScriptError.
    """
    source = Source(text, file)
    spaces = namespaces()
    names = {**spaces, "T": spaces["T"], "tir": spaces["T"], "relax": spaces["R"], **(extra_vars or {})}
    held = {} if constants is None else load_constants(constants)
    made = TextParser(source, names, spaces).run(source.tree)
    return made.replace(constants={**(made.constants or {}), **held}) if held and isinstance(made, IRModule) else made


__all__ = ["function", "inline", "ir_module", "macro", "parse", "prim_func"]
