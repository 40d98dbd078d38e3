# SPDX-License-Identifier: Apache-2.0
"""Which backends there are: those registered in this process, those of installed packages (entry points ``roundel.backends``), Roundel's own."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ..ir import extensions
from ..ir.errors import OptionError
from ..ir.warning import warn
from .backend import Backend

OWN = ("openblas", "onednn")
OFF = "off"  # in place of names: none
_registered: dict[str, Backend] = {}


def register(backend: Backend) -> Backend:
    """Know a backend from now on, in this process. Models that are compiled while it is registered are not kept in the cache on disk. Raises
    OptionError where there is one of that name already."""
    if not isinstance(backend, Backend):
        raise OptionError(f"a backend cannot be a {type(backend).__name__}", hint="make one by backends.Backend(name, patterns, implement)")
    if backend.name in available():
        raise OptionError(f"there is a backend {backend.name!r} already", hint="unregister it first, or give this one another name")
    _registered[backend.name] = backend
    extensions.add(backend)
    return backend


def unregister(backend: Backend) -> None:
    """Forget a backend that was registered. Raises OptionError where it is not."""
    if _registered.get(getattr(backend, "name", "")) is not backend:
        raise OptionError(f"backend {getattr(backend, 'name', backend)!r} is not registered", hint="give what register returned")
    del _registered[backend.name]
    extensions.remove(backend)


def registered() -> bool:
    """Has one been registered in this process?"""
    return bool(_registered)


def available() -> list[str]:
    """The names of all backends, loaded or not."""
    return list(dict.fromkeys((*_registered, *_installed(), *OWN)))


def find(name: str) -> Backend:
    """The backend of that name, loaded if it never was. Raises OptionError that lists those there are."""
    if name in _registered:
        return _registered[name]
    if name in _installed():
        return _loaded(name)
    if name in OWN:
        return import_module(f"{__package__}.{name}").BACKEND
    raise OptionError(f"there is no backend {name!r}", hint=f"there are {', '.join(available())}")


def wanted(names: str | None) -> list[str]:
    """The backends that the option ``libraries`` names: with commas or blanks between them; ``all``; ``off`` for none."""
    found = (names or "").replace(",", " ").split()
    return _all() if found == ["all"] else [] if found == [OFF] else found


def _all() -> list[str]:
    """The backends that can be loaded; a warning tells of each other one."""
    there = []
    for name in available():
        try:
            find(name)
            there.append(name)
        except OptionError as error:
            warn(f"{error.what} ({error.why or error.hint}): it is left out")
    return there


@cache
def _installed() -> dict[str, Any]:
    return {e.name: e for e in entry_points(group="roundel.backends")}


@cache
def _loaded(name: str) -> Backend:
    entry = _installed()[name]
    try:
        found = entry.load()
    except Exception as error:  # whatever a package does when it is imported
        raise OptionError(f"the backend {name!r} of an installed package cannot be loaded", where=f"entry point {entry.value}",
                          why=f"{type(error).__name__}: {error}", hint="mend or uninstall the package; other backends are not concerned") from error
    if not isinstance(found, Backend):
        raise OptionError(f"the entry point {name!r} of roundel.backends is a {type(found).__name__}", hint="it has to name a roundel.backends.Backend")
    return found
