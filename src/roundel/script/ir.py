# SPDX-License-Identifier: Apache-2.0
"""The names of modules: ``from roundel.script import ir as I``."""

from __future__ import annotations

from typing import Any

from ..ir.graph import GlobalVar
from ..ir.op import FuseKind
from .marks import ConstantsFile
from .parser.entry import ir_module


def pyfunc(fn: Any) -> Any:
    """A Python function of the module: it takes and returns arrays, as a method also ``self``, by which it calls the module's functions."""
    return fn


def module_attrs(attrs: dict[str, Any], overwrite: bool = False) -> dict[str, Any]:
    """Attributes of the module."""
    return dict(attrs)


def module_constants(file: str) -> ConstantsFile:
    """The file that ``mod.script(constants=file)`` wrote beside the text; as the text says it or beside the text's own file."""
    return ConstantsFile(file)


def module_get_attrs() -> dict[str, Any]:
    """The attributes set so far (none: scripts state them)."""
    return {}


def module_global_infos(infos: dict[str, Any]) -> dict[str, Any]:
    """Devices and other global facts, kept as the module attribute ``global_infos``."""
    return {"global_infos": infos}


def vdevice(target: Any = "llvm", vdevice_id: int = 0, memory_scope: str = "global") -> str:
    """A virtual device as ``target:id:scope``."""
    return f"{target}:{vdevice_id}:{memory_scope}"


def dummy_global_info() -> str:
    """A global info without content."""
    return "dummy"


__all__ = [
    "FuseKind",
    "GlobalVar",
    "dummy_global_info",
    "ir_module",
    "module_attrs",
    "module_constants",
    "module_get_attrs",
    "module_global_infos",
    "pyfunc",
    "vdevice",
]
