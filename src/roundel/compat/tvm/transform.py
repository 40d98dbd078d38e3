# SPDX-License-Identifier: Apache-2.0
"""``tvm.transform`` and ``tvm.ir.transform``: passes of one's own, lists of them, and the context, which here has nothing to set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from ...ir.graph import Function
from ...ir.module import IRModule


class PassContext(AbstractContextManager["PassContext"]):
    """``with PassContext(opt_level=3):``, which changes nothing: Roundel's options are arguments of ``rd.compile``."""

    _within: ClassVar[list[PassContext]] = []

    def __init__(self, opt_level: int = 2, config: Mapping[str, Any] | None = None, **_: Any) -> None:
        self.opt_level, self.config = opt_level, dict(config or {})

    def __enter__(self) -> PassContext:
        self._within.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        self._within.pop()

    @classmethod
    def current(cls) -> PassContext:
        """The context of the innermost ``with``."""
        return cls._within[-1] if cls._within else cls()


class Pass:
    """A pass is a function from module to module; ``opt_level`` and ``name`` tell it."""

    def __init__(self, function: Callable[[IRModule], IRModule], opt_level: int = 0, name: str = "") -> None:
        self.function, self.opt_level, self.name = function, opt_level, name or getattr(function, "__name__", "pass")

    def __call__(self, mod: IRModule) -> IRModule:
        return self.function(mod)


def Sequential(passes: Sequence[Any], opt_level: int = 0, name: str = "sequential", **_: Any) -> Pass:
    """Passes one after another."""

    def run(mod: IRModule) -> IRModule:
        for p in passes:
            mod = p(mod)
        return mod

    return Pass(run, opt_level, name)


def module_pass(pass_func: Any = None, opt_level: int = 0, name: str = "", **_: Any) -> Any:
    """A pass of a function ``(mod, ctx)``, or of a class with ``transform_module(self, mod, ctx)``, which is made before it is applied."""
    if pass_func is None:
        return lambda found: module_pass(found, opt_level, name)
    if isinstance(pass_func, type):
        return lambda *args, **kwargs: Pass(_with_context(pass_func(*args, **kwargs).transform_module), opt_level, name or pass_func.__name__)
    return Pass(_with_context(pass_func), opt_level, name or pass_func.__name__)


def function_pass(pass_func: Any = None, opt_level: int = 0, name: str = "", **_: Any) -> Any:
    """A pass over the graph functions of a module: of a function ``(func, mod, ctx)``, or of a class with ``transform_function(self, func, mod, ctx)``."""
    if pass_func is None:
        return lambda found: function_pass(found, opt_level, name)
    if isinstance(pass_func, type):
        return lambda *args, **kwargs: function_pass(pass_func(*args, **kwargs).transform_function, opt_level, name or pass_func.__name__)

    def run(mod: IRModule) -> IRModule:
        return mod.with_functions({key: pass_func(func, mod, PassContext.current()) for key, func in mod.items() if isinstance(func, Function)})

    return Pass(run, opt_level, name or getattr(pass_func, "__name__", "pass"))


def _with_context(function: Callable[..., IRModule]) -> Callable[[IRModule], IRModule]:
    return lambda mod: function(mod, PassContext.current())


__all__ = ["Pass", "PassContext", "Sequential", "function_pass", "module_pass"]
