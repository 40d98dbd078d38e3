# SPDX-License-Identifier: Apache-2.0
"""Whoever reads a public name finds out what it is: every module, class, function and method has a docstring, or overrides a method that has one."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import roundel

MODULES = sorted(m.name for m in pkgutil.walk_packages(roundel.__path__, "roundel.") if not m.name.endswith("__main__"))


def undocumented(module: Any) -> Iterator[str]:
    """Public definitions of a module without a docstring."""
    if not module.__doc__:
        yield module.__name__
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__ or not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if thing.__name__ == name and not thing.__doc__:
            yield f"{module.__name__}.{name}"
        if inspect.isclass(thing):
            yield from methods(thing)


def methods(kind: type) -> Iterator[str]:
    """Public methods and properties of a class that have no docstring and override none."""
    for name, thing in vars(kind).items():
        function = thing.fget if isinstance(thing, property) else getattr(thing, "__func__", thing)
        if name.startswith("_") or not inspect.isfunction(function) or function.__name__ == "<lambda>" or function.__doc__:
            continue
        if not any(getattr(inspect.getattr_static(base, name, None), "__doc__", None) for base in kind.__mro__[1:]):
            yield f"{kind.__module__}.{kind.__qualname__}.{name}"


def test_every_public_definition_says_what_it_is():
    pytest.importorskip("torch")
    assert not [name for module in MODULES for name in undocumented(import_module(module))]
