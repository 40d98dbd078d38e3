# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as kernels: they get arrays that they may only read, and one that they write. What they do instead is an error with their name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..ir.dataclass import dataclass
from ..ir.errors import CallError, OptionError


@dataclass(frozen=True)
class Function:
    """A function that computes a part of the graph, and the positions of the operands that it gets, in its order (None: all)."""

    function: Callable[..., Any]
    operands: tuple[int, ...] | None = None

    def __call__(self, *arrays: Any) -> Any:
        """Call it with arrays of all operands and of the result."""
        taken = arrays[:-1] if self.operands is None else [arrays[k] for k in self.operands]
        return self.function(*taken, arrays[-1])


@dataclass(frozen=True)
class Guarded:
    """A function whose inputs cannot be written, and which is asked whether it wrote the result. ``who``: the backend and the node, for errors."""

    function: Callable[..., Any]
    who: str

    def __call__(self, *arrays: Any) -> None:
        """Call it. Raises CallError where it returns something else than the array that it is to write."""
        returned = self.function(*map(_read_only, arrays[:-1]), arrays[-1])
        if returned is not None and not (isinstance(returned, np.ndarray) and np.may_share_memory(returned, arrays[-1])):
            raise CallError(f"the function of Python returned a {type(returned).__name__}", where=self.who,
                            why="what it returns is not taken: its last argument is the array of the result, which it has to write",
                            hint="out[:] = ..., or the argument out= of NumPy's functions")


def guarded(function: Callable[..., Any], who: str, count: int) -> Guarded:
    """A function for that many operands. Raises OptionError where it cannot take its operands and the result."""
    inner, positions = (function.function, function.operands) if isinstance(function, Function) else (function, None)
    if not callable(inner):
        raise OptionError(f"a kernel of Python is a function, and not a {type(inner).__name__}", where=who)
    wrong = [k for k in positions or () if type(k) is not int or not 0 <= k < count]
    if wrong:
        raise OptionError(f"operands= names the operand {wrong[0]!r}", where=who,
                          why=f"the positions of operands of this part of the graph are 0 to {count - 1}")
    given = count if positions is None else len(positions)
    try:
        with suppress(ValueError):  # a builtin function that does not say what it takes
            inspect.signature(inner).bind(*range(given + 1))
    except TypeError as error:
        raise OptionError(f"the function of Python does not take {given} operand{'s' * (given != 1)} and the array of the result", where=who, why=str(error),
                          hint="it gets the operands, or those that operands= names, and at last the array that it writes") from error
    return Guarded(function, who)


def _read_only(array: Any) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view
