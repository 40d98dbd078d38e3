# SPDX-License-Identifier: Apache-2.0
"""Functions by name: those that Python registers get arrays with TVM's names."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.saved import saved
from ...runtime.registry import get_func, has_func
from ...runtime.registry import register_func as _register
from .runtime import Tensor


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Make a function callable from modules, under a name or its own; a decorator too: `rd.register_func`"""
    if callable(func_name):
        func_name, f = func_name.__name__, func_name
    if f is None:
        return lambda found: register_func(func_name, found, override)
    _register(func_name, _with_names(f), override=override)
    return f


def register_object(type_key: Any = None) -> Any:
    """A class whose objects are saved with the programs that hold them, a dataclass: a decorator, with TVM's name of the class or without one"""
    if isinstance(type_key, type):
        return saved(type_key if dataclasses.is_dataclass(type_key) else dataclasses.dataclass(type_key))
    return register_object


def _with_names(function: Callable[..., Any]) -> Any:
    if not hasattr(function, "__code__"):
        return function  # the address of a C function, or one that the table holds already

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*(a.view(Tensor) if isinstance(a, np.ndarray) else a for a in args))

    return call


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The function of this name: `rd.get_func`; None where there is none and it may be missing"""
    return None if allow_missing and not has_func(name) else get_func(name)


__all__ = ["get_global_func", "register_func", "register_object"]
