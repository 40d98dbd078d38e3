# SPDX-License-Identifier: Apache-2.0
"""Room for recursion over long models: a host function declares each tensor in the scope of the one before, so that a walk over it goes as
deep as the model is long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from ..ir.graph import Function
from ..ir.module import IRModule

T = TypeVar("T")

_LONG = 1000  # bindings, from which on there is a thread for the work
_CALLS = 24  # of Python functions that a walk makes for a binding, at most
_STACK = 512  # MiB of address space, of which only what is used is memory
_deep = threading.local()
_one_at_a_time = threading.Lock()  # the limit of recursion and the size of stacks are the process's


def with_room(mod: IRModule, work: Callable[[], T]) -> T:
    """What ``work`` returns or raises, done in a thread with a stack that is deep enough for the module where it is long."""
    bindings = sum(len(b.bindings) for f in mod.functions.values() if isinstance(f, Function) for b in f.body.blocks)
    if bindings < _LONG or getattr(_deep, "inside", False):
        return work()
    out: list[Any] = []
    context = copy_context()

    def run() -> None:
        _deep.inside = True
        try:
            out.extend((True, context.run(work)))
        except BaseException as error:  # raised again where the work was asked for
            out.extend((False, error))

    with _one_at_a_time:
        before, size = sys.getrecursionlimit(), threading.stack_size(_STACK << 20)
        sys.setrecursionlimit(max(before, _CALLS * bindings))  # before the thread starts: it may be deep at once
        try:
            thread = threading.Thread(target=run, name="roundel-compile", daemon=True)
            try:
                thread.start()
            finally:
                threading.stack_size(size)
            thread.join()
        finally:
            sys.setrecursionlimit(before)
    if not out[0]:
        raise out[1]
    return out[1]
