# SPDX-License-Identifier: Apache-2.0
"""``@dataclass`` as the standard library has it, which costs little to import.

The standard decorator writes and compiles up to six functions for each class, a third of a millisecond; compiling a model imports some 250 classes, in each
of its processes. Here only ``__init__`` is compiled. Classes share what compares, hashes, prints and protects their instances.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, *, frozen: bool = False, eq: bool = True, repr: bool = True, init: bool = True, slots: bool = False) -> Any:  # noqa: A002
        """The standard decorator with these of its options. Classes with ``slots`` are made by the standard one."""
        if cls is None:
            return lambda c: dataclass(c, frozen=frozen, eq=eq, repr=repr, init=init, slots=slots)
        if slots:
            return dataclasses.dataclass(frozen=frozen, eq=eq, repr=repr, init=init, slots=True)(cls)
        own, doc = cls.__dict__, cls.__doc__
        cls.__doc__ = doc or cls.__name__  # else the standard decorator works out a signature to tell
        hashed = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls.__doc__ = doc
        fields = dataclasses.fields(cls)
        made: dict[str, Any] = {}
        if init:
            made["__init__"] = _initializer(cls, fields, frozen)
        if repr:
            made["__repr__"] = _printer([f.name for f in fields if f.repr])
        if eq:
            value = _values([f.name for f in fields if f.compare])
            made["__eq__"] = lambda self, other: value(self) == value(other) if other.__class__ is self.__class__ else NotImplemented
            if not hashed:
                given = _values([f.name for f in fields if (f.compare if f.hash is None else f.hash)])
                cls.__hash__ = (lambda self: hash(given(self))) if frozen else None
        for name, function in made.items():
            if name not in own:
                function.__qualname__, function.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
                setattr(cls, name, function)
        if frozen:
            cls.__setattr__, cls.__delattr__ = _protection(cls, frozenset(f.name for f in fields))
        return cls


def _initializer(cls: type, fields: tuple[dataclasses.Field, ...], frozen: bool) -> Callable:
    """``__init__``: a parameter for each field that has one, and then ``__post_init__``."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_none_given": _FACTORY}
    parameters, lines = [], []
    for f in fields:
        value = name = f.name
        if f.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = f.default_factory
            value = f"_make_{name}() if {name} is _none_given else {name}" if f.init else f"_make_{name}()"
            parameters += [f"{name}=_none_given"] if f.init else []
        elif f.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = f.default
            parameters += [f"{name}=_default_{name}"] if f.init else []
        elif f.init:
            parameters.append(name)
        if f.init or f.default_factory is not dataclasses.MISSING:
            lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n    " + ("\n    ".join(lines) or "pass"), known)
    made = known["__init__"]
    made.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return made


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()  # stands for what a field's factory makes


def _values(names: list[str]) -> Callable[[Any], Any]:
    """What an instance has in these fields."""
    return attrgetter(*names) if names else lambda self: ()


def _printer(names: list[str]) -> Callable[[Any], str]:
    return lambda self: f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _protection(cls: type, names: frozenset[str]) -> tuple[Callable, Callable]:
    """``__setattr__`` and ``__delattr__`` of a class whose instances stay as they are."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


__all__ = ["dataclass"]
