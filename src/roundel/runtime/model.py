# SPDX-License-Identifier: Apache-2.0
"""A compiled model as a user holds it: called like a function, told apart by names and shapes, saved to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir import above, escape
from ..ir.errors import BuildError, CallError, OptionError
from .executable import BoundFunction, Executable
from .metadata import FunctionInfo, TensorInfo

if TYPE_CHECKING:
    from .. import Explained
    from .profile import Profile

Saver = Callable[..., Path]
Origin = Callable[[], Mapping[str, Any] | None]
"""Gives the arguments of ``rd.compile`` that a model was made of, or None where what it was made of is gone."""


class Model:
    """``m(x, y)`` or ``m(input_ids=...)`` runs the model; ``saver(path, **options)`` writes its file."""

    def __init__(self, executable: Executable, function: str | None = None, saver: Saver | None = None) -> None:
        """``function``: the one that a call runs; by default ``main``, or the only one. Raises OptionError where there is neither."""
        self.executable = executable
        self.function: BoundFunction = executable[function or _entry(executable)]
        self._saver = saver
        self.origin: Origin | None = None

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Run; a result of its own or a tuple of them. Raises CallError when the arguments do not fit."""
        return self.function(*args, **named)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and (symbolic) shape of each input. A tensor program also takes arrays for its ``outputs``, which it writes (``arguments``)."""
        return self.function.info.inputs

    @property
    def arguments(self) -> tuple[TensorInfo, ...]:
        """What a call takes, in order: the inputs, and of a tensor program the arrays that it writes."""
        info = self.function.info
        every = (*info.inputs, *info.outputs)
        return info.inputs if info.kind == "graph" else tuple(every[place] for place in info.arguments if isinstance(place, int))

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and (symbolic) shape of each output."""
        return self.function.info.outputs

    @property
    def weights_nbytes(self) -> int:
        """Bytes of the constants as they are packed for the kernels; the option ``weight_growth`` caps them."""
        return self.executable.weights_nbytes

    def arena_nbytes(self, /, **sizes: int) -> int:
        """Bytes of the memory in which intermediate tensors of one run lie; ``sizes``: of symbolic dimensions, such as ``seq=128``."""
        return self.function.arena_nbytes(**sizes)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the compiler noted: ``version`` (of Roundel), ``target``, ``triple``, ``cpu``, ``features`` (that the CPU must have), ``options``
        that shaped the code, and of ``source`` its ``kind``, name (``file``, by which it was first compiled) and ``sha256``."""
        return self.executable.metadata

    def profile(self, inputs: Sequence[Any] | Mapping[str, Any] | None = None, *, sizes: Mapping[str, int] | None = None,
                seconds: float = 1.0) -> Profile:
        """Run the model for so many ``seconds`` and tell where their time goes: ``print(model.profile())`` is a table of its kernels.

        ``inputs``: in order or by name; those that are not given are random numbers, whose symbolic dimensions have the ``sizes`` given (1 where
        there is none). Any model can be asked, a loaded file too. Raises CallError, OptionError, and ModelError for a file that changed meanwhile.
        """
        from .profile import profiled

        executable = self.executable
        if executable.reopen is None:
            raise CallError("this model cannot be timed kernel by kernel", why="it was opened from an address", hint="load or compile it")
        timed = executable.reopen()
        return profiled(timed[self.function.info.name], timed.num_threads, inputs, sizes, seconds, self.kernels)

    @property
    def kernels(self) -> dict[str, dict[str, Any]]:
        """What the model's file tells of its kernels, by their names: ``symbol`` (of the code), ``rule`` and ``decisions`` (of the schedule), ``nodes``
        (of the model) that it computes."""
        return dict(self.metadata.get("kernels", {}))

    def explain(self, **options: Any) -> Explained:
        """How each kernel is computed and why, as ``rd.explain(model)`` tells: that takes the same ``options``, such as ``sizes`` and ``seconds``.

        Of a loaded file, and of a model whose source is gone, it has what the file carries: kernels, their schedules, the nodes they compute.
        """
        try:
            reports = above.reports()
        except ImportError:
            raise OptionError("models are not explained here", why="this package only runs them", hint="install roundel, the compiler") from None
        explained: Explained = reports.explain(self, **options)
        return explained

    def asm(self, kernel: str | None = None) -> str:
        """The machine code of a kernel, those of its tasks included, as text. ``kernel``: by its name; may be left out where there is only one.
        Any model can be asked, a loaded file too. Needs objdump. Raises OptionError for another name, BuildError without objdump."""
        from .disassembly import disassembly

        known, executable = self.kernels, self.executable
        kernel = next(iter(known)) if kernel is None and len(known) == 1 else kernel
        if not isinstance(kernel, str) or kernel not in known or executable.code is None:
            asked = "which kernel?" if kernel is None else f"there is no kernel {escape.value(kernel)}"
            raise OptionError(asked, hint=f"its kernels are {', '.join(known) or 'not told'}")
        return disassembly(executable.code(known[kernel]["symbol"]), known[kernel]["symbol"], self.metadata.get("triple", ""))

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write one shared library (``.so``), object to link (``.o``) or, compiled with ``target="c"``, C source (``.c``); returns its path. The
        file appears whole or not at all.

        Options of a model that was compiled, not loaded: ``side_file`` (weights in a file of their own, ``<stem>.weights``), ``header`` (a C
        header beside it) and ``name`` (with which names of C functions begin). Raises OptionError, BuildError.
        """
        if not isinstance(path, str | PathLike):
            raise OptionError(f"this is not the path of a file: {type(path).__name__}", hint='give it as text or pathlib.Path, such as "model.so"')
        if self._saver is None:
            raise BuildError("this model cannot be saved", why="it was not kept in a form that can be linked")
        return self._saver(Path(path), **options)

    def __repr__(self) -> str:
        if self.function.info.kind != "graph":
            return f"Model(arguments=[{', '.join(map(str, self.arguments))}], of which it writes {', '.join(t.name for t in self.outputs)})"
        return f"Model(inputs=[{', '.join(map(str, self.inputs))}], outputs=[{', '.join(map(str, self.outputs))}])"


def _entry(executable: Executable) -> str:
    """The function that stands for the whole module."""
    names = list(executable)
    if "main" not in names and len(names) != 1:
        raise OptionError("the module has no function main, which a model runs", why=f"its functions are {', '.join(names) or 'all private'}",
                          hint=f'call one main, or take it by name: rd.build(mod)["{names[0] if names else "f"}"](x)')
    return "main" if "main" in names else names[0]


class ForeignModel(Model):
    """A model compiled for another machine: it can be saved, not called. ``why`` tells what this machine lacks."""

    def __init__(self, info: FunctionInfo, metadata: dict[str, Any], saver: Saver, why: str, weights_nbytes: int = 0) -> None:
        self.function = _Elsewhere(info, why)  # type: ignore[assignment]
        self._metadata, self._saver, self._weights_nbytes, self.origin = metadata, saver, weights_nbytes, None

    @property
    def executable(self) -> Executable:  # type: ignore[override]
        """Raises CallError: there is none in this process."""
        return self.function()

    @property
    def weights_nbytes(self) -> int:
        """Bytes that the weights take in the file."""
        return self._weights_nbytes

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file will say of itself: version, target, options, source."""
        return self._metadata


class _Elsewhere:
    """Stands for a function that this machine cannot run."""

    def __init__(self, info: FunctionInfo, why: str) -> None:
        self.info, self.why = info, why

    def arena_nbytes(self, /, **sizes: int) -> int:
        return self()

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        raise CallError("this model was compiled for another machine", why=self.why, hint="save it, and load it there")
