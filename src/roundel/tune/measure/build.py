# SPDX-License-Identifier: Apache-2.0
"""Programs to code, after they were scheduled where they are not, in a child process: LLVM's fatal errors end that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...build.build import Built, compile_module
from ...ir import options
from ...ir.errors import RoundelError
from ...ir.garbage import rare_collection
from ...ir.module import IRModule
from ...target import Target
from .job import Artifact, Failure, Source, Twin, code_key
from .plan import Plan, identity_of

NAME = "candidate"


class _Known(Exception):
    """Lowering has led to code that was built before."""


def build_all(sources: Sequence[Source | Plan], target: Target, settings: dict[str, Any],
              tell: Callable[[Any], None]) -> list[Artifact | Failure | Twin]:
    """Code for each program, or why there is none. ``settings``: options by name."""
    found: list[Artifact | Failure | Twin] = []
    with options.override(**settings, cache=False):
        for k, source in enumerate(sources):
            tell(k)
            found.append(build(source, target))
    return found


def build(source: Source | Plan, target: Target) -> Artifact | Failure | Twin:
    """Code for one program."""
    identity, known = "", frozenset[str]()
    if isinstance(source, Plan):
        try:
            with rare_collection():
                known, source = source.known, source.source
                identity = identity_of(source)
        except (RoundelError, RuntimeError, MemoryError) as error:
            return Failure("schedule", error.what if isinstance(error, RoundelError) else str(error))
        if identity in known:
            return Twin(identity)
    layouts = source.layouts

    digest = ""

    def accept(digests: Mapping[str, str]) -> None:
        nonlocal digest
        digest = digests[NAME]
        if (key := code_key(digest, layouts)) in known:
            raise _Known(key)

    try:
        func = source.func.with_attr("global_symbol", NAME)
        built = compile_module(IRModule({NAME: func}, {"target": target}), target, accept=accept)
    except _Known as found:
        return Twin(str(found))
    except (RoundelError, RecursionError, MemoryError) as error:
        return Failure("build", f"{type(error).__name__}: {error}")
    return artifact_of(built, digest, layouts, identity)


def artifact_of(built: Built, code: str, layouts: Any = None, identity: str = "") -> Artifact:
    """What was compiled, of one function that is called `NAME`, as it goes to who measures. ``code``: equal for equal code."""
    weights = {key: constant.numpy() for key, constant in built.weights.items()}
    parts = built.objects, built.functions, weights, built.offsets, built.nbytes, built.target, built.spec
    return Artifact(code, parts, layouts or {}, identity)


def opened(artifact: Artifact, threads: int) -> Any:
    """The program of an artifact, linked into this process."""
    return linkable(artifact).load(threads=threads)[NAME]


def linkable(artifact: Artifact) -> Built:
    """The program of an artifact, to be linked, whatever machine it is for."""
    from ...ir import ConstData

    objects, functions, weights, offsets, nbytes, target, spec = artifact.built
    constants = {key: ConstData(array) for key, array in weights.items()}
    return Built(objects, functions, constants, offsets, nbytes, target, {}, spec)
