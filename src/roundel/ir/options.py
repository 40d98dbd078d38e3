# SPDX-License-Identifier: Apache-2.0
"""One typed, documented registry of options: environment, keyword and command line are three doors to the same option."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import OptionError

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise ValueError(text)


@dataclass(frozen=True)
class Option:
    """``name`` in Python, ``ROUNDEL_<NAME>`` in the environment, ``--name`` on the command line. ``shapes_code``: compiled code depends on it."""

    name: str
    kind: type
    default: Any
    doc: str
    choices: tuple[Any, ...] = ()
    shapes_code: bool = False

    @property
    def env(self) -> str:
        return "ROUNDEL_" + self.name.upper()

    def parse(self, value: Any) -> Any:
        """The value as this option's type; raises OptionError."""
        if value is None and self.default is None:
            return None
        try:
            read: Callable = _parse_bool if self.kind is bool and isinstance(value, str) else self.kind
            out = read(value)
        except (ValueError, TypeError):
            raise OptionError(f"option {self.name} cannot be {value!r}", why=f"it is a {self.kind.__name__}: {self.doc}") from None
        if self.choices and out not in self.choices:
            raise OptionError(f"option {self.name} cannot be {value!r}", hint=f"one of {', '.join(map(str, self.choices))}")
        return out


REGISTRY: dict[str, Option] = {}
_overrides: ContextVar[dict[str, Any]] = ContextVar("roundel_options", default={})  # noqa: B039


def define(name: str, kind: type, default: Any, doc: str, choices: tuple[Any, ...] = (), *, shapes_code: bool = False) -> Option:
    """Register an option; called once at import by the room that reads it."""
    REGISTRY[name] = Option(name, kind, default, doc, choices, shapes_code)
    return REGISTRY[name]


def get(name: str) -> Any:
    """Current value: an enclosing ``override``, else the environment, else the default."""
    option = _known(name)
    if name in _overrides.get():
        return _overrides.get()[name]
    text = os.environ.get(option.env)
    return option.default if text is None else option.parse(text)


def shaping_code() -> tuple[tuple[str, Any], ...]:
    """Current values of the options on which compiled code depends; part of the key of what is kept on disk."""
    return tuple((name, get(name)) for name, option in sorted(REGISTRY.items()) if option.shapes_code)


def _known(name: str) -> Option:
    if name not in REGISTRY:
        raise OptionError(f"there is no option {name!r}", hint=f"known are {', '.join(sorted(REGISTRY))}")
    return REGISTRY[name]


@contextmanager
def override(**values: Any) -> Iterator[None]:
    """Set options for the enclosed code (and only this thread or task)."""
    new = {**_overrides.get(), **{k: _known(k).parse(v) for k, v in values.items()}}
    mark = _overrides.set(new)
    try:
        yield
    finally:
        _overrides.reset(mark)


define("threads", int, None, "number of threads that a compiled model uses (default: all cores this process may use)")
define("verify", bool, False, "after every pass run the module in the interpreter and name the first pass that changes results")
define("accuracy", str, "default", "numerics: strict forbids Winograd and approximations", ("strict", "default", "fast"), shapes_code=True)
define("weights", str, None, "type in which float32 weights of matrix products and tables are stored (default: as the model has them)",
       ("float16", "bfloat16"), shapes_code=True)
define("weight_growth", float, 4.0, "how many times larger the weights of a layer may become for a faster algorithm (Winograd: 1.8 or 4)",
       shapes_code=True)
define("cache", bool, True, "keep compiled models and kernels on disk")
define("cache_dir", str, None, "folder of the on-disk cache (default ~/.cache/roundel)")
define("workers", int, None, "code generation processes (default: one per core)")
define("progress", bool, True, "show progress of long steps on a terminal")


def cache_dir() -> Path:
    """Folder for things that can be made again, made if need be: option ``cache_dir``, else the user's cache folder."""
    named = get("cache_dir")
    root = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roundel"
    root.mkdir(parents=True, exist_ok=True)
    return root
