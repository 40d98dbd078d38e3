# SPDX-License-Identifier: Apache-2.0
"""What TVM calls building and running: ``tvm.build``, ``relax.build``, modules with ``time_evaluator``, the virtual machine."""

from __future__ import annotations

import enum
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ... import api
from ...driver import compile_module
from ...interp.observed import Observed
from ...ir.errors import OptionError, RoundelError
from ...ir.module import IRModule
from ...passes import get_pass
from ...passes import run as run_passes
from ...runtime.profile import Profile, profiled
from ...runtime.timing import Times, time_evaluator
from ...target import Target
from .target import Target as CompatTarget

_IN_ARCHIVE = "model.so"
_PROFILED = 0.1  # seconds
DATABASE = "database"
"""The attribute of a module that says where the records of its tuning are."""


def as_target(target: Any) -> Any:
    """A target as Roundel knows it; raises OptionError for one that is no processor."""
    target = CompatTarget.current() if target is None else target
    if target is None or (isinstance(target, Target) and target.is_host_like):
        return target
    kind = target.kind if isinstance(target, Target) else str(target).split()[0] if str(target).strip() else "llvm"
    if kind not in ("llvm", "c") and not kind.startswith("{"):
        raise OptionError(f"there is no code for the target {target}", hint='programs are built for the processor, target="llvm"; those with '
                          "threads bound to a GPU's run in the interpreter, rd.interpret(mod)")
    return None if str(target).strip() in ("llvm", "c") else target


def _arrays() -> Any:
    """The class of arrays with TVM's names."""
    from .runtime import Tensor

    return Tensor


def _out(value: Any) -> Any:
    """A result with TVM's names on its arrays."""
    if isinstance(value, np.ndarray):
        return value.view(_arrays())
    return type(value)(map(_out, value)) if isinstance(value, tuple | list) else value


class Module(Mapping[str, Callable[..., Any]]):
    """Functions that are built, by name. ``time_evaluator`` gives the times of one, ``export_library`` writes them to a file."""

    def __init__(self, functions: Mapping[str, Any], source: tuple[IRModule, Any] | None = None, model: Any = None) -> None:
        self._functions, self._source, self._model = functions, source, model

    def get_function(self, name: str) -> Callable[..., Any]:
        """A function by name, which gives arrays with TVM's names. Raises KeyError that names those there are."""
        if name == "stats" and name not in self._functions:
            return self.stats
        function = self._functions[name]
        return lambda *args: _out(function(*args))

    __getitem__ = get_function

    def __iter__(self) -> Any:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    @property
    def entry_name(self) -> str:
        """The function ``main``, or else the first."""
        return "main" if "main" in self._functions else next(iter(self._functions))

    def __call__(self, *args: Any) -> Any:
        return self[self.entry_name](*args)

    def time_evaluator(self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0, **_: Any) -> Callable[..., Times]:
        """Times of a function, ``.mean`` in seconds."""
        return time_evaluator(self._functions[func_name], number, repeat, min_repeat_ms)

    def export_library(self, file_name: str | Path, **_: Any) -> None:
        """Write a shared library, or an archive with it (``.tar``), which ``load_module`` reads. Raises RoundelError."""
        if self._source is None:
            raise RoundelError("this module was loaded from a file", hint="copy the file")
        built = self._model or compile_module(self._source[0], target=self._source[1])
        if Path(file_name).suffix != ".tar":
            built.save(file_name)
            return
        with TemporaryDirectory() as folder, tarfile.open(file_name, "w") as archive:
            built.save(library := Path(folder, _IN_ARCHIVE))
            archive.add(library, _IN_ARCHIVE)

    def observed(self, instrument: Callable[..., Any]) -> Observed:
        """The program that was built, in the interpreter, its kernels shown to ``instrument``. Raises RoundelError for a module of a file."""
        shown = lambda *args: instrument(*(a.view(_arrays()) if isinstance(a, np.ndarray) else a for a in args))
        return Observed(run_passes(self._program(), [get_pass("decompose"), get_pass("legalize")]), shown)

    def stats(self) -> str:
        """The functions, one a line."""
        return "\n".join(map(str, self._functions))

    def _program(self) -> IRModule:
        if self._source is None:
            raise RoundelError("this module was loaded from a file", hint="roundel inspect shows what is in it")
        return self._source[0]

    def as_text(self) -> str:
        """The program that was built, as script. Raises RoundelError for a module that was loaded from a file."""
        return self._program().script()

    as_python = as_text

    @property
    def mod(self) -> Module:
        """This module: TVM's executables hold another."""
        return self

    jit = mod


def build(mod: Any, target: Any = None, relax_pipeline: Any = None, **_: Any) -> Module:
    """Functions of a module, or one function, as native code; a module that `MetaScheduleApplyDatabase` has marked uses what tuning found.
    ``relax_pipeline`` is a pass that is run before."""
    if callable(relax_pipeline):
        mod = relax_pipeline(mod)
    chosen = as_target(target)
    if isinstance(mod, IRModule) and DATABASE in mod.attrs:
        model = api.compile(mod, target=chosen, records=mod.attrs[DATABASE])
        return Module(model.executable, (mod, chosen), model)
    return Module(api.build(mod, target=chosen), (mod if isinstance(mod, IRModule) else IRModule({"main": mod}), chosen))


compile = build  # noqa: A001


def lower(mod: Any, *_: Any, **__: Any) -> Any:
    """TVM 0.8's step between a schedule and ``build``, which does it all here."""
    return mod


def load_module(path: str | Path) -> Module:
    """The functions of a file that ``export_library`` wrote."""
    if Path(path).suffix == ".tar":
        with TemporaryDirectory() as folder, tarfile.open(path) as archive:
            found = archive.extractfile(_IN_ARCHIVE) if _IN_ARCHIVE in archive.getnames() else None
            if found is None:
                raise OptionError(f"{path} is no file of `export_library`", hint=f"it has no {_IN_ARCHIVE}")
            path = Path(folder, _IN_ARCHIVE)
            path.write_bytes(found.read())
            return load_module(path)
    model = api.load(path)
    return Module(model.executable if hasattr(model, "executable") else {"main": model})


class VMInstrumentReturnKind(enum.IntEnum):
    """What an instrument says before a kernel runs."""

    NO_OP = 0
    SKIP_RUN = 1


class VirtualMachine:
    """``relax.VirtualMachine(ex, tvm.cpu())["main"](x)``: there is no machine in between, functions are native code."""

    def __init__(self, rt_mod: Module, device: Any = None, memory_cfg: Any = None, profile: bool = False) -> None:
        self.module, self._observed = rt_mod, None
        self._saved: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name in self._saved:
            return self._saved[name]
        return self.module[name] if self._observed is None else lambda *args: _out(self._observed[name](*args))

    def save_function(self, func_name: str, saved_name: str, *args: Any, include_return: bool = True) -> None:
        """A function without arguments, ``vm[saved_name]()``, that calls another with these."""
        function = self[func_name]
        self._saved[saved_name] = lambda: function(*args) if include_return else (function(*args), None)[1]

    def profile(self, func_name: str, *args: Any) -> Profile:
        """Where the time of a function goes, kernel by kernel; printed, a table. Raises RoundelError for a module that was not built in this process."""
        reopen = getattr(self.module._functions, "reopen", None)
        if reopen is None:
            raise RoundelError(f"{func_name} cannot be timed kernel by kernel", hint="build the module in this process")
        timed = reopen()
        return profiled(timed[func_name], timed.num_threads, args, None, _PROFILED, {})

    def set_instrument(self, instrument: Callable[..., Any] | None) -> None:
        """Run in the interpreter from now on, and call ``instrument(func, func_symbol, before_run, ret_value, *args)`` before and after each kernel, which
        does not run where the call before gives `VMInstrumentReturnKind.SKIP_RUN`. None: native code again."""
        self._observed = None if instrument is None else self.module.observed(instrument)

    def invoke_stateful(self, func_name: str, *args: Any) -> None:
        """Call a function and keep its result, which ``get_outputs`` gives."""
        self._outputs = self._inputs if not args and hasattr(self, "_inputs") else args
        self._outputs = self.module[func_name](*self._outputs)

    def set_input(self, func_name: str, *args: Any) -> None:
        """Arguments of the next ``invoke_stateful``."""
        self._inputs = args

    def get_outputs(self, func_name: str) -> Any:
        """The result of ``invoke_stateful``."""
        return self._outputs

    def time_evaluator(self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0, **_: Any) -> Callable[..., Times]:
        """Times of a function, ``.mean`` in seconds."""
        return self.module.time_evaluator(func_name, dev, number, repeat, min_repeat_ms)
