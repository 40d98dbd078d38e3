# SPDX-License-Identifier: Apache-2.0
"""``tvm.tir.transform``: passes of one's own over the tensor programs of a module. TVM's own are steps of its code generation; here
``rd.compile`` takes the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.module import IRModule
from ...ir.tir import PrimFunc
from .rooms import missing
from .transform import Pass, PassContext


def prim_func_pass(pass_func: Any = None, opt_level: int = 0, name: str = "", **_: Any) -> Any:
    """A pass of a function ``(func, mod, ctx)``, or of a class with ``transform_function(self, func, mod, ctx)``."""
    if pass_func is None:
        return lambda found: prim_func_pass(found, opt_level, name)
    if isinstance(pass_func, type):
        return lambda *args, **kwargs: prim_func_pass(pass_func(*args, **kwargs).transform_function, opt_level, name or pass_func.__name__)

    def run(mod: IRModule) -> IRModule:
        return mod.with_functions({key: pass_func(func, mod, PassContext.current()) for key, func in mod.items() if isinstance(func, PrimFunc)})

    return Pass(run, opt_level, name or getattr(pass_func, "__name__", "pass"))


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """A pass that changes each tensor program by itself."""
    return prim_func_pass(lambda func, _mod, _ctx: ftransform(func), name="Apply")


def DefaultGPUSchedule() -> Pass:
    """Threads for the tensor programs that have no schedule, where the target of the ``with`` around has threads; those of a processor keep what they are"""
    from .s_tir import dlight  # which is made of this room

    return dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.tir.transform.{name}", name)


__all__ = ["Apply", "DefaultGPUSchedule", "prim_func_pass"]
