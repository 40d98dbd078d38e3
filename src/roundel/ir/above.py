# SPDX-License-Identifier: Apache-2.0
"""The only places where a room needs one that stands above it: each is imported by name, when it is needed first.

Nodes print themselves although ``script`` reads and prints nodes; the tables of operators and of passes are looked up from everywhere and
filled by what defines them; ``from roundel.builder import relax`` still works. Whoever adds another such place adds it here, where a reader
who follows imports finds it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def script() -> Any:
    """The printer and parser of every node."""
    return import_module("roundel.script")


def define_operators() -> None:
    """Fill the table of operators (``ir.op``)."""
    import_module("roundel.ops")


def define_instructions() -> None:
    """Fill the table of instructions, and that of what LLVM intrinsics of single processors compute (``interp.llvm_meanings``)."""
    import_module("roundel.intrinsics").load()


def define_passes() -> None:
    """Fill the table of passes (``passes.registry``)."""
    import_module("roundel.driver")


def builder() -> Any:
    """Binding of parameters, which simplifies dimensions: ``func.bind_params({...})``."""
    return import_module("roundel.builder")


def build() -> Any:
    """Machine code of a tensor program: the interpreter calls that of programs with C code in them."""
    return import_module("roundel.build")


def api() -> Any:
    """What compiles: a module written with ``nn`` compiles itself, ``module.jit({...})``."""
    return import_module("roundel.api")


def backends() -> Any:
    """Which libraries and kernels of one's own there are: an error names them where a choice of an unknown name may mean one."""
    return import_module("roundel.backends.known")


def relax() -> Any:
    """TVM's names for building graph functions, which were ``roundel.builder.relax`` before they stood above it."""
    return import_module("roundel.relax")


def builtin_functions() -> None:
    """Register the functions that models reach under ``vm.builtin.``: those of caches."""
    import_module("roundel.embed.paged_kv_cache")


def reports() -> Any:
    """What explains models: ``model.explain()``. Raises ImportError where models are only run, by the package that has no compiler."""
    return import_module("roundel.reports.explained")
