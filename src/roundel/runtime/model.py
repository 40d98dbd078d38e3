# SPDX-License-Identifier: Apache-2.0
"""A compiled model as a user holds it: called like a function, told apart by names and shapes, saved to a file."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from ..ir.errors import BuildError, CallError, OptionError
from .executable import BoundFunction, Executable
from .metadata import FunctionInfo, TensorInfo

Saver = Callable[..., Path]


class Model:
    """``m(x, y)`` or ``m(input_ids=...)`` runs the model; ``saver(path, **options)`` writes its file."""

    def __init__(self, executable: Executable, function: str | None = None, saver: Saver | None = None) -> None:
        """``function``: the one that a call runs; by default ``main``, or the only one. Raises OptionError where there is neither."""
        self.executable = executable
        self.function: BoundFunction = executable[function or _entry(executable)]
        self._saver = saver

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
        self._metadata, self._saver, self._weights_nbytes = metadata, saver, weights_nbytes

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
