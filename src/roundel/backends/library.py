# SPDX-License-Identifier: Apache-2.0
"""A shared library that kernels call without being linked to it: its functions are looked up once, when one is first needed.

A model that is shipped with calls of a library needs it not: where it is not found, generated code runs and a note is written to standard error.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.escape import c_string
from .sources import ASIDE

_DECLARED = re.compile(r"\b(\w+)\s*\([^()]*\)\s*;")

_OPEN = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#line 1 "the declarations of the library {name}"
{declarations}
#line 1 "the table of the library {name}"
static struct {name}_functions {{ {table} }} {name}_table;
static int {name}_state;
static pthread_once_t {name}_once = PTHREAD_ONCE_INIT;

static const char *{name}_look_up(void *handle, const char *prefix) {{ /* gives the function that is not there */
  static const char *const names[] = {{ {names} }};
  void **entries = (void **)&{name}_table;
  char text[128];
  for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {{
    if (snprintf(text, sizeof text, "%s%s", prefix, names[k]) >= (int)sizeof text || !(entries[k] = dlsym(handle, text))) return names[k];
  }}
  return 0;
}}

static void {name}_set_up(void) {{
#line 1 "the setup of the library {name}"
{setup}
#line 1 "the table of the library {name}"
}}

static void {name}_open(void) {{
  static const char *const files[] = {{ {files} }};
  static const char *const prefixes[] = {{ {prefixes} }};
  const char *lacks = 0;
  for (unsigned f = 0; f < sizeof files / sizeof *files; f++) {{
    void *handle = dlopen(files[f], RTLD_NOW | RTLD_LOCAL);
    for (unsigned p = 0; handle && p < sizeof prefixes / sizeof *prefixes; p++) {{
      const char *missing = {name}_look_up(handle, prefixes[p]);
      if (!missing) {{
        {name}_set_up();
        {name}_state = 1;
        return;
      }}
      lacks = missing;
    }}
    if (handle) dlclose(handle);
  }}
  fprintf(stderr, "roundel: the library %s %s%s (%s): generated code runs instead of it\n", {title}, lacks ? "has no function " : "is not found",
          lacks ? lacks : "", {tried});
}}

int32_t {name}_found(void) {{
  pthread_once(&{name}_once, {name}_open);
  return {name}_state;
}}

static inline struct {name}_functions *{name}_ready(void) {{ /* a kernel may be called alone, before anybody has asked */
  pthread_once(&{name}_once, {name}_open);
  return &{name}_table;
}}
{defines}
#line 1 "the source of the library {name}"
{source}
"""


def _quoted(text: str) -> str:
    return f'"{c_string(text)}"'


@dataclass(frozen=True)
class Library:
    """``declarations`` are C declarations of the functions that are called, ``source`` is C text that calls them, by their names: it defines what
    kernels call. ``files``, or what the function of that name returns, are the places to look at when the model runs, absolute paths or names that
    the system's loader knows; the first that has all functions is taken. ``prefixes`` may stand before the functions' names in the library. ``setup``
    is a C statement that is run once after the library was found, such as one that sets its threads."""

    name: str
    declarations: str
    source: str
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Callable[[], Any]
    prefixes: tuple[str, ...] = ("",)
    setup: str = ""

    def __post_init__(self) -> None:
        """Raises OptionError for a name that is none in C, and for declarations of no functions or without their end."""
        if not str(self.name).isidentifier() or not self.name.isascii():
            raise OptionError(f"a library cannot be called {self.name!r}", hint="a name of letters, digits and underscores")
        text = ASIDE.sub(" ", self.declarations).strip()
        last = text.splitlines()[-1].strip() if text else ""
        if last and last[-1] not in ";}" and not last.startswith("#"):
            raise OptionError("the last declaration has no end", where=f"library {self.name}", why=repr(last), hint="put a ';' behind it")
        if not self.functions:
            raise OptionError("no function is declared", where=f"library {self.name}", why="it is its declared functions that are looked up",
                              hint="give C declarations such as 'int kit_run(const float *, float *);'")

    @property
    def functions(self) -> list[str]:
        """The functions that are declared."""
        return _DECLARED.findall(ASIDE.sub(" ", self.declarations))

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The files to look at. Raises OptionError where ``files`` are none."""
        given = self.files
        if callable(given):
            try:
                given = given()
            except Exception as error:  # whatever a user's function does
                raise OptionError("its files cannot be told", where=f"library {self.name}", why=f"{type(error).__name__}: {error}") from error
        one = isinstance(given, str | os.PathLike)
        found = (given,) if one else tuple(given) if isinstance(given, Iterable) else (None,)
        if not all(isinstance(f, str | os.PathLike) for f in found):
            raise OptionError(f"the files of a library are paths, and not {given!r}", where=f"library {self.name}",
                              hint="give a path, a list of them, or a function of none")
        return tuple(map(os.fspath, found))

    @property
    def found_symbol(self) -> str:
        """The C function that says whether the library is there."""
        return f"{self.name}_found"

    @cached_property
    def c_source(self) -> str:
        """What is compiled into a model that calls the library."""
        names, files = self.functions, self.places or (f"lib{self.name}.so",)
        setup = re.sub(rf"\b({'|'.join(names)})\b", rf"{self.name}_table.\1", self.setup)
        return _OPEN.format(
            name=self.name, title=_quoted(self.name), declarations=self.declarations, source=self.source, setup=setup,
            table=" ".join(f"__typeof__({n}) *{n};" for n in names), names=", ".join(map(_quoted, names)),
            defines="\n".join(f"#define {n} ({self.name}_ready()->{n})" for n in names),
            tried=_quoted(", ".join(files)), files=", ".join(map(_quoted, files)), prefixes=", ".join(map(_quoted, self.prefixes)))

    @cached_property
    def missing(self) -> str:
        """Why the library cannot be called on this machine; empty where it can."""
        if self._opened:
            return ""
        files = ", ".join(self.places) or "no file of it is known"
        return f"the library {self.name} " + (f"has no function {self._lacks[0]} ({self._lacks[1]})" if self._lacks else f"is not on this machine ({files})")

    def says(self, function: str) -> str:
        """The text that a function of the library without parameters returns, such as its version; empty where there is no such function."""
        return (self.result(function, ctypes.c_char_p) or b"").decode(errors="replace")

    def result(self, function: str, kind: Any) -> Any:
        """What a function of the library without parameters returns, of this type of ctypes; None where there is no such function."""
        handle, prefix = self._opened or (None, "")
        if not hasattr(handle, prefix + function):
            return None
        called = getattr(handle, prefix + function)
        called.restype = kind
        return called()

    @cached_property
    def _opened(self) -> tuple[ctypes.CDLL, str] | None:
        """The library in this process and what stands before its functions' names; None where it is not found."""
        for file in self.places:
            if (handle := _loaded(file)) is None:
                continue
            for prefix in self.prefixes:
                if all(hasattr(handle, prefix + n) for n in self.functions):
                    return handle, prefix
        return None

    @cached_property
    def _lacks(self) -> tuple[str, str] | None:
        """A function that the library has not, and the first file of it that was opened; None where none can be."""
        for file in self.places:
            if (handle := _loaded(file)) is not None:
                lacking = [next((n for n in self.functions if not hasattr(handle, prefix + n)), "") for prefix in self.prefixes]
                return (lacking[0], file) if all(lacking) else None
        return None


def _loaded(file: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(file)
    except OSError:
        return None
