# SPDX-License-Identifier: Apache-2.0
"""Scheduled programs to code, in a child process: LLVM's fatal errors end that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...build.build import Built, compile_module
from ...ir import options
from ...ir.errors import RoundelError
from ...ir.module import IRModule
from ...target import Target
from .job import Artifact, Failure, Source

NAME = "candidate"


def build_all(sources: Sequence[Source], target: Target, settings: dict[str, Any], tell: Callable[[Any], None]) -> list[Artifact | Failure]:
    """Code for each program, or why there is none. ``settings``: options by name."""
    found: list[Artifact | Failure] = []
    with options.override(**settings, cache=False):
        for k, source in enumerate(sources):
            tell(k)
            found.append(build(source, target))
    return found


def build(source: Source, target: Target) -> Artifact | Failure:
    """Code for one program."""
    try:
        func = source.func.with_attr("global_symbol", NAME)
        built = compile_module(IRModule({NAME: func}, {"target": target}), target)
    except (RoundelError, RecursionError, MemoryError) as error:
        return Failure("build", f"{type(error).__name__}: {error}")
    weights = {key: constant.numpy() for key, constant in built.weights.items()}
    parts = built.objects, built.functions, weights, built.offsets, built.nbytes, built.target
    return Artifact(built.functions[0].symbol, parts, source.layouts)


def opened(artifact: Artifact, threads: int) -> Any:
    """The program of an artifact, linked into this process."""
    from ...ir import ConstData

    objects, functions, weights, offsets, nbytes, target = artifact.built
    constants = {key: ConstData(array) for key, array in weights.items()}
    return Built(objects, functions, constants, offsets, nbytes, target, {}).load(threads=threads)[NAME]
