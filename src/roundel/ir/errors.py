# SPDX-License-Identifier: Apache-2.0
"""The errors that reach a user: what happened, where, why, and what to do about it."""

from __future__ import annotations

from typing import Any

from . import escape


class RoundelError(Exception):
    """Base of all errors that Roundel raises on purpose.

    ``what`` is one sentence; ``where`` a span, a model's node or an IR node; ``why`` the cause; ``hint`` what would do.
    """

    def __init__(self, what: str, *, where: Any = None, why: str = "", hint: str = "") -> None:
        self.what, self.where, self.why, self.hint = what, where, why, hint
        place = str(where).replace("\n", "\\n") if isinstance(where, str) else where
        lines = [f"{place}: {what}" if place is not None else what]
        lines += [why] if why else []
        lines += [f"hint: {hint}"] if hint else []
        super().__init__(escape.message("\n".join(lines)))


class ScriptError(RoundelError, SyntaxError, ValueError):
    """A script does not parse; ``where`` is file:line:column and the message shows the line."""


class ScriptWarning(UserWarning):
    """A script that means something else than it seems to."""


class BuilderError(RoundelError, RuntimeError):
    """A function was built out of order: without parameters, or with two results."""


class TypeInferenceError(RoundelError, TypeError, ValueError):
    """Operands of a graph operator do not fit together."""


class ConstantError(RoundelError, ValueError):
    """A constant that its type cannot hold."""


class ModelError(RoundelError, ValueError):
    """A model file is broken, invalid or unsafe to read."""


class UnsupportedError(RoundelError, NotImplementedError):
    """A model needs operators or attributes that are not supported; the message lists all of them."""


class ScheduleError(RoundelError):
    """A schedule primitive is not legal here; the message shows the offending block."""


class ArithError(RoundelError):
    """An integer fact could not be derived."""


class NotAnIndexError(ArithError, TypeError):
    """Something else than an integer or an expression stands where an index is needed."""


class LowerError(RoundelError):
    """A tensor program cannot be lowered (for example a register tile with a dynamic index)."""


class BuildError(RoundelError):
    """Code generation or linking failed."""


class CallError(RoundelError, ValueError):
    """A compiled or interpreted function was called with arguments that do not fit."""


class MachineError(CallError):
    """Compiled code is for another machine than this one."""


class RunError(RoundelError, RuntimeError):
    """A run met sizes or values that the model, or what was assumed of it, does not allow."""


class InterpretError(RoundelError):
    """The reference interpreter met undefined behaviour (out of bounds, missing value)."""


class VerifyError(RoundelError):
    """Results changed after a pass; the message names the pass."""


class OptionError(RoundelError, ValueError):
    """An unknown option or a value of the wrong kind."""


class TuneError(RoundelError):
    """A tensor program cannot be measured."""
