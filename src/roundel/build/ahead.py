# SPDX-License-Identifier: Apache-2.0
"""Kernels that worker processes compile while others are still scheduled.

Whoever schedules a program offers it; a compilation that builds the module later finds what was made of it meanwhile.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..ir import cache_folder, tir
from ..lower.explicit_shape_params import explicit_shape_params
from ..lower.facts import facts_of
from ..target.spec import MachineSpec
from . import compiler

_current: ContextVar[Ahead | None] = ContextVar("roundel_ahead", default=None)


class _Asked(NamedTuple):
    func: tir.PrimFunc
    message: bytes
    future: Future[Any]


class Ahead:
    """What workers were asked for, by kernel."""

    def __init__(self, spec: MachineSpec) -> None:
        self.spec = spec
        self.asked: dict[str, _Asked] = {}

    def ask(self, name: str, func: tir.PrimFunc) -> None:
        """Have a scheduled program that calls no other compiled."""
        if "global_symbol" not in func.attrs and not facts_of(func).callees:
            func = explicit_shape_params.on_func(func)  # as its callers will see it
            message = request({name: func}, name, self.spec)
            if message is not None:
                self.asked[name] = _Asked(func, message, compiler.pool().ask(message, name, self.spec))

    def found(self, name: str, func: tir.PrimFunc, spec: MachineSpec) -> tuple[bytes, Future[Any] | None] | None:
        """The request for this very kernel, and its answer where some worker has begun with it."""
        asked = self.asked.pop(name, None)
        if asked is None:
            return None
        if spec != self.spec or not _same(asked.func, func):
            asked.future.cancel()
            return None
        return asked.message, None if asked.future.cancel() else asked.future

    def drop(self) -> None:
        """Forget what no worker has begun with."""
        for asked in self.asked.values():
            asked.future.cancel()
        self.asked.clear()


def request(functions: Mapping[str, tir.PrimFunc], name: str, spec: MachineSpec) -> bytes | None:
    """What a worker is sent to compile a kernel; None where an attribute of the user's is known to this process only."""
    place = cache_folder.folder(make=True)
    settings = {"cache": place is not None, "cache_dir": place and str(place)}
    try:
        return pickle.dumps(("kernel", (functions, name, spec), settings), protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None


def _same(offered: tir.PrimFunc, func: tir.PrimFunc) -> bool:
    """Whether a function is the one that was offered, but for being called a kernel."""
    same = func.body is offered.body and func.buffer_map is offered.buffer_map and len(func.params) == len(offered.params)
    return same and all(a is b for a, b in zip(func.params, offered.params, strict=True)) and func.attrs.without("kind") == offered.attrs.without("kind")


def offer(name: str, func: tir.PrimFunc) -> None:
    """A program is scheduled."""
    ahead = _current.get()
    if ahead is not None:
        ahead.ask(name, func)


def current() -> Ahead | None:
    """What the compilation that runs has asked for."""
    return _current.get()


@contextmanager
def working_ahead(spec: MachineSpec | None) -> Iterator[None]:
    """Within, programs that are offered are compiled for a machine (None: are not)."""
    ahead = Ahead(spec) if spec is not None else None
    mark = _current.set(ahead)
    try:
        yield
    finally:
        _current.reset(mark)
        if ahead is not None:
            ahead.drop()
