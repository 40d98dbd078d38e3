# SPDX-License-Identifier: Apache-2.0
"""Warnings that name the line of the user's program."""

from __future__ import annotations

import sys
import warnings

_PASSED_THROUGH = frozenset(("roundel", "contextlib", "functools"))
"""Packages whose lines are not the user's; decorated functions are called by the last two."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is outside of Roundel: the call that led here, wherever in Roundel this is asked."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in _PASSED_THROUGH:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
