# SPDX-License-Identifier: Apache-2.0
"""The kernels of models under AddressSanitizer, each called with arrays of its own.

``objects`` does not see an access from one intermediate result into another, since one block of memory holds them all. Here the graph runs in the
interpreter, which hands each tensor program to its generated code. The models and their sizes are those of ``objects``; numbers that are not finite are
among the arguments, for kernels that choose between two ways of computing a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import roundel as rd
from roundel.driver import DEFAULT, prepare
from roundel.interp.runtime import Runtime
from roundel.ir import IRModule, tir
from roundel.ir.errors import BuildError
from roundel.ir.visit import free_vars, walk
from roundel.target import Target

from . import checked_accesses, objects

BEFORE_HOST = DEFAULT[: [p.name for p in DEFAULT].index("lower_host")]


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` calls, of one kind of models after another. They are left out where the C compiler has no sanitizer."""
    try:
        yield from objects.in_process("kernels", count, seed)
    except BuildError as error:
        print(f"kernels: left out: {error}")


def compiled_apart(model: Any, *, choices: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """In place of ``rd.compile``: the model as a function whose kernels are called one by one. A number of every second call's arguments is NaN."""
    run = _Apart(prepare(rd.import_model(model), target=Target.host(), pipeline=BEFORE_HOST, choices=choices))
    calls = itertools.count()

    def call(*arguments: np.ndarray) -> Any:
        floats = [a for a in arguments if a.dtype.kind == "f" and a.size]
        if next(calls) % 2 and floats:
            floats[0].flat[floats[0].size // 2] = np.nan
        return run["main"](*arguments)

    return call


class _Apart(Runtime):
    """Runs tensor programs by their generated code."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.built: dict[str, Any] = {}

    def call_prim(self, func: tir.PrimFunc, args: Sequence[Any], name: str) -> Any:
        if not _sizes_follow(func):  # the host function of a model passes the others
            return super().call_prim(func, args, name)
        if name not in self.built:
            self.built[name] = rd.build(func, threads=1)
        apart = [checked_accesses.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        self.built[name](*apart)
        for given, array in zip(args, apart, strict=True):
            if isinstance(given, np.ndarray) and given.flags.writeable:
                given[...] = array
        return None


def _sizes_follow(func: tir.PrimFunc) -> bool:
    """Whether each size that the program uses is a whole dimension of an argument."""
    known = {n for _, b in func.buffer_map for n in b.shape}
    used = {v for n in walk(func.body) if isinstance(n, tir.Expr) for v in free_vars(n) if v.size}
    return used.union(*(free_vars(n) for _, b in func.buffer_map for n in b.shape)) <= known
