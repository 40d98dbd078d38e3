# SPDX-License-Identifier: Apache-2.0
"""A shared library that kernels call without being linked to it: its functions are looked up once, when one is first needed.

A model that is shipped with calls of a library needs it not: where it is not found, generated code runs and a note is written to standard error.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ir.escape import c_string

_DECLARED = re.compile(r"\b(\w+)\s*\([^()]*\)\s*;")

_OPEN = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
{declarations}
static struct {name}_functions {{ {table} }} {name}_table;
static int {name}_state;
static pthread_once_t {name}_once = PTHREAD_ONCE_INIT;

static int {name}_look_up(void *handle, const char *prefix) {{
  static const char *const names[] = {{ {names} }};
  void **entries = (void **)&{name}_table;
  char text[128];
  for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {{
    if (snprintf(text, sizeof text, "%s%s", prefix, names[k]) >= (int)sizeof text || !(entries[k] = dlsym(handle, text))) return 0;
  }}
  return 1;
}}

static void {name}_set_up(void) {{ {setup} }}

static void {name}_open(void) {{
  static const char *const files[] = {{ {files} }};
  static const char *const prefixes[] = {{ {prefixes} }};
  for (unsigned f = 0; f < sizeof files / sizeof *files; f++) {{
    void *handle = dlopen(files[f], RTLD_NOW | RTLD_LOCAL);
    for (unsigned p = 0; handle && p < sizeof prefixes / sizeof *prefixes; p++)
      if ({name}_look_up(handle, prefixes[p])) {{
        {name}_set_up();
        {name}_state = 1;
        return;
      }}
    if (handle) dlclose(handle);
  }}
  fprintf(stderr, "roundel: the library %s is not found (%s): generated code runs instead of it\n", {title}, files[0]);
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
{source}
"""


def _quoted(text: str) -> str:
    return f'"{c_string(text)}"'


@dataclass(frozen=True)
class Library:
    """``declarations`` are C declarations of the functions that are called, ``source`` is C text that calls them, by their names: it defines what
    kernels call. ``files`` gives the places to look at when the model runs, absolute paths or names that the system's loader knows; the first
    that has all functions is taken. ``prefixes`` may stand before the functions' names in the library. ``setup`` is a C statement that is run
    once after the library was found, such as one that sets its threads."""

    name: str
    declarations: str
    source: str
    files: Callable[[], Sequence[str]]
    prefixes: tuple[str, ...] = ("",)
    setup: str = ""

    @property
    def functions(self) -> list[str]:
        """The functions that are declared."""
        return _DECLARED.findall(self.declarations)

    @property
    def found_symbol(self) -> str:
        """The C function that says whether the library is there."""
        return f"{self.name}_found"

    @cached_property
    def c_source(self) -> str:
        """What is compiled into a model that calls the library."""
        names = self.functions
        setup = re.sub(rf"\b({'|'.join(names)})\b", rf"{self.name}_table.\1", self.setup)
        return _OPEN.format(
            name=self.name, title=_quoted(self.name), declarations=self.declarations, source=self.source, setup=setup,
            table=" ".join(f"__typeof__({n}) *{n};" for n in names), names=", ".join(map(_quoted, names)),
            defines="\n".join(f"#define {n} ({self.name}_ready()->{n})" for n in names),
            files=", ".join(map(_quoted, self.files() or (f"lib{self.name}.so",))), prefixes=", ".join(map(_quoted, self.prefixes)))

    @cached_property
    def missing(self) -> str:
        """Why the library cannot be called on this machine; empty where it can."""
        return "" if self._opened else f"the library {self.name} is not on this machine ({', '.join(self.files()) or 'no file of it is known'})"

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
        for file in self.files():
            try:
                handle = ctypes.CDLL(file)
            except OSError:
                continue
            for prefix in self.prefixes:
                if all(hasattr(handle, prefix + n) for n in self.functions):
                    return handle, prefix
        return None
