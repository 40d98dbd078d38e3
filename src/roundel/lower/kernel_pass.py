# SPDX-License-Identifier: Apache-2.0
"""``@kernel_pass("name")``: a function on one tensor program, wrapped as a pass over a module.

The pass applies it to every PrimFunc that is not a host function or a task (those are flat already); ``.on_func`` is
the wrapped function.
"""

from __future__ import annotations

from collections.abc import Callable

from roundel.ir import IRModule, PrimFunc
from roundel.passes import pass_
from roundel.target import Target

FLAT_KINDS = ("host", "task")


def kernel_pass(name: str, *, for_target: bool = False) -> Callable[[Callable[..., PrimFunc]], Callable[[IRModule], IRModule]]:
    """Decorator; ``name`` is the pass's name in listings and on the command line. ``for_target``: the function takes the module's target, or
    this machine's, as a second argument."""

    def wrap(fn: Callable[..., PrimFunc]) -> Callable[[IRModule], IRModule]:
        def run(mod: IRModule) -> IRModule:
            more = (mod.attrs.get("target") or Target.host(),) if for_target else ()
            return mod.with_functions({k: fn(f, *more) for k, f in mod.items() if is_kernel(f)})

        run.__doc__, run.__module__ = fn.__doc__, fn.__module__
        made = pass_(name)(run)
        made.on_func = fn
        return made

    return wrap


def is_kernel(func: object) -> bool:
    """Whether lowering is concerned with this function."""
    return isinstance(func, PrimFunc) and func.attrs.get("kind") not in FLAT_KINDS
