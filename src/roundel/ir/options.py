# SPDX-License-Identifier: Apache-2.0
"""One typed, documented registry of options: environment, keyword and command line are three doors to the same option."""

from __future__ import annotations

import functools
import logging
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from . import escape
from .dataclass import dataclass
from .errors import OptionError

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def _read_bool(value: Any) -> bool:
    text = str(value).lower()
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ValueError(text)


def _read_int(value: Any) -> int:
    return int(value) if isinstance(value, str) else operator.index(value)


_READ: dict[type, Any] = {bool: _read_bool, int: _read_int}
_KINDS = {bool: "yes or no (1 or 0)", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """``name`` in Python, ``env`` in the environment, ``--name`` on the command line.

    ``least``: no number below it is taken. ``shapes_code``: what a model becomes, or whether it is refused, depends on it.
    """

    name: str
    kind: type
    default: Any
    doc: str
    choices: tuple[Any, ...] = ()
    shapes_code: bool = False
    least: float | None = None
    variable: str = ""

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return self.variable or "ROUNDEL_" + self.name.upper()

    def parse(self, value: Any, door: str = "") -> Any:
        """The value as this option's type; raises OptionError, which names the ``door`` that it came through."""
        if value is None and self.default is None:
            return None
        wanted = f"{_KINDS.get(self.kind, self.kind.__name__)}{f', at least {self.least:g}' if self.least is not None else ''}"
        try:
            out = _READ.get(self.kind, self.kind)(value)
            fits = self.least is None or out >= self.least
        except (ValueError, TypeError, OverflowError):
            fits = False
        if not fits:
            raise OptionError(f"{door or f'option {self.name}'} cannot be {escape.value(value)}", why=f"it is {wanted}: {self.doc}")
        if self.choices and out not in self.choices:
            raise OptionError(f"{door or f'option {self.name}'} cannot be {escape.value(value)}", hint=f"one of {', '.join(map(str, self.choices))}")
        return out


REGISTRY: dict[str, Option] = {}
# Variables that are read elsewhere: by the C runtime and its tests, and an option of a room that may not be imported yet.
_OTHER_VARIABLES = {"ROUNDEL_BENCH_MODELS", "ROUNDEL_CACHE_SIZE", "ROUNDEL_SPIN_US", "ROUNDEL_SHUFFLE", "ROUNDEL_POISON", "ROUNDEL_LEVEL"}
_log = logging.getLogger("roundel.options")
_overrides: ContextVar[dict[str, Any]] = ContextVar("roundel_options", default={})  # noqa: B039


def define(name: str, kind: type, default: Any, doc: str, choices: tuple[Any, ...] = (), **facts: Any) -> Option:
    """Register an option; called once at import by the room that reads it. ``facts`` are the other fields of `Option`."""
    REGISTRY[name] = Option(name, kind, default, doc, choices, **facts)
    return REGISTRY[name]


def get(name: str) -> Any:
    """Current value: an enclosing ``override``, else the environment, else the default."""
    option = _known(name)
    if name in _overrides.get():
        return _overrides.get()[name]
    text = os.environ.get(option.env)
    return option.parse(text, option.env) if text else option.default


def choose(name: str, given: Any) -> Any:
    """The value that a caller gave, checked, or else the current one."""
    return get(name) if given is None else _known(name).parse(given)


def shaping_code() -> tuple[tuple[str, Any], ...]:
    """Current values of the options on which it depends what a model becomes, or whether it is refused; part of the key of what is kept on
    disk, so that a limit holds for a model that was compiled under a higher one too."""
    return tuple((name, get(name)) for name, option in sorted(REGISTRY.items()) if option.shapes_code)


def of_schedules() -> str:
    """The options, as text, that decide which schedules of a program may be taken: what was measured under others does not count."""
    return f"accuracy={get('accuracy')}"


def check_environment() -> None:
    """Raises OptionError for a variable of the environment that cannot have its value, also where it would not be asked for now. Logs a
    warning for each that nothing reads, once in a process."""
    for name in REGISTRY:
        get(name)
    tell_unread_variables()


@functools.cache
def tell_unread_variables() -> None:
    """Log a warning for each variable ``ROUNDEL_...`` that nothing reads, which is likely to be misspelt. Once in a process."""
    import difflib

    known = {o.env for o in REGISTRY.values()} | _OTHER_VARIABLES
    for name in sorted(n for n in os.environ if n.startswith("ROUNDEL_") and n not in known):
        near = difflib.get_close_matches(name, known, 1, 0.6)
        _log.warning("nothing reads the environment variable %s%s", escape.name(name), f"; is {near[0]} meant?" if near else "")


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


define("threads", int, None, "the most threads that a run of a model uses (default: all cores this process may use)", least=1,
       variable="ROUNDEL_NUM_THREADS")
define("verify", bool, False, "after every pass run the module in the interpreter and name the first pass that changes results")
define("accuracy", str, "default", "numerics: strict forbids Winograd and approximations", ("strict", "default", "fast"), shapes_code=True)
define("bounds_checks", bool, True, "indices that are data are checked when the model runs: what is out of range is an error; without, undefined",
       shapes_code=True)
define("weights", str, None, "type in which float32 weights of matrix products and tables are stored (default: as the model has them)",
       ("float16", "bfloat16"), shapes_code=True)
define("precision", str, "float32", "type to which factors of matrix products and convolutions are rounded, where the machine has dot products of it; sums "
       "stay float32; auto: whichever 16-bit type is the fastest", ("float32", "bfloat16", "float16", "auto"), shapes_code=True)
define("weight_growth", float, 5.0, "how many times larger the weights of a layer may become for a faster algorithm (Winograd: 2.8 or 5, Strassen: "
       "1.75, or 2 for symbolic numbers of rows)",
       shapes_code=True)
define("grow", bool, True, "results that append to an input along a symbolic dimension (KV caches) lie in memory with room behind them and grow in "
       "place", shapes_code=True)
define("max_nodes", int, 20_000, "how many nodes the functions and loops of a model may expand to, beyond those that its file holds", least=0,
       shapes_code=True)
define("max_depth", int, 64, "how deep a model's functions, branches and loops may be nested", least=1, shapes_code=True)
define("max_folded_bytes", int, 256 << 20, "bytes that what is computed at compile time may add to a model's constants; what goes beyond is "
       "computed at every run", least=0, shapes_code=True)
define("rates", str, "measured", "what cost models take the speed of this machine's caches and memory from: measured once and kept on disk, "
       "or the table of machines", ("measured", "table"), shapes_code=True)
define("records", str, None, "file of measured schedules that is compiled from (default: the user's own, tuned.jsonl in the folder of the cache); off for none")
define("runner_key", str, None, "what `roundel serve-runner` and those who measure there both know: 16 characters or more")
define("libraries", str, None, "backends (see `roundel.backends`) whose kernels are chosen where they are expected or were measured to be faster than "
       "generated code, such as openblas; several with commas between them, all, or off (default: those that were measured to be the fastest for "
       "parts of models)", shapes_code=True)
define("cache", bool, True, "keep compiled models and kernels on disk")
define("cache_dir", str, None, "folder of the on-disk cache (default ~/.cache/roundel)")
define("cache_size", int, 8 << 30, "bytes that compiled models may take on disk; the least recently used go first", least=0)
define("workers", int, None, "code generation processes (default: one per core)", least=1)
define("progress", bool, True, "show progress of long steps on a terminal")


def cache_dir() -> Path | None:
    """Folder for things that can be made again: option ``cache_dir``, else ``roundel`` in the user's cache folder (XDG Base Directory
    Specification). It may not be there yet; None for a user without a home."""
    if named := get("cache_dir"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # others are to be ignored
        return Path(base) / "roundel"
    home = os.environ.get("HOME") or _home_of_user()
    return Path(home) / ".cache" / "roundel" if os.path.isabs(home) else None


def _home_of_user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""
