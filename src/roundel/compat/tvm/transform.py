# SPDX-License-Identifier: Apache-2.0
"""``tvm.transform`` and ``tvm.ir.transform``: passes of one's own, lists of them, and the context, which here has nothing to set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from ...ir.dataclass import dataclass
from ...ir.graph import Function
from ...ir.module import IRModule


class PassContext(AbstractContextManager["PassContext"]):
    """``with PassContext(instruments=[...]):`` shows instruments the passes that run; ``disabled_pass`` names some that do not. What else TVM has here
    changes nothing: Roundel's options are arguments of ``rd.compile``."""

    _within: ClassVar[list[PassContext]] = []

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
                 instruments: Sequence[Any] | None = None, config: Mapping[str, Any] | None = None, **_: Any) -> None:
        self.opt_level, self.config, self.instruments = opt_level, dict(config or {}), list(instruments or ())
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())

    def __enter__(self) -> PassContext:
        self._within.append(self)
        self.tell("enter_pass_ctx")
        return self

    def __exit__(self, *_: Any) -> None:
        self._within.pop()
        self.tell("exit_pass_ctx")

    def tell(self, what: str, *args: Any) -> list[Any]:
        """Call a method of the instruments that have it; what they return."""
        return [getattr(i, what)(*args) for i in self.instruments if hasattr(i, what)]

    def override_instruments(self, instruments: Sequence[Any]) -> None:
        """Other instruments in place of those there are."""
        self.tell("exit_pass_ctx")
        self.instruments = list(instruments)
        self.tell("enter_pass_ctx")

    @classmethod
    def current(cls) -> PassContext:
        """The context of the innermost ``with``."""
        return cls._within[-1] if cls._within else cls()


@dataclass(frozen=True)
class PassInfo:
    """What a pass is called, from which level on TVM runs it, and which it needs before."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()


class Pass:
    """A pass is a function from module to module; ``info`` tells its name."""

    def __init__(self, function: Callable[[IRModule], IRModule], opt_level: int = 0, name: str = "") -> None:
        self.function, self.opt_level, self.name = function, opt_level, name or getattr(function, "__name__", "pass")

    @property
    def info(self) -> PassInfo:
        """Name and level."""
        return PassInfo(self.opt_level, self.name)

    def __call__(self, mod: IRModule) -> IRModule:
        context = PassContext.current()
        if self.name in context.disabled_pass or not all(context.tell("should_run", mod, self.info)):
            return mod
        context.tell("run_before_pass", mod, self.info)
        mod = self.function(mod)
        context.tell("run_after_pass", mod, self.info)
        return mod


class Sequential(Pass):
    """Passes one after another: ``passes``."""

    def __init__(self, passes: Sequence[Any] = (), opt_level: int = 0, name: str = "sequential", **_: Any) -> None:
        super().__init__(self._run, opt_level, name)
        self.passes = list(passes)

    def _run(self, mod: IRModule) -> IRModule:
        for p in self.passes:
            mod = p(mod)
        return mod


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


__all__ = ["Pass", "PassContext", "PassInfo", "Sequential", "function_pass", "module_pass"]
