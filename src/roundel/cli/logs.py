# SPDX-License-Identifier: Apache-2.0
"""What the commands show of the log: warnings always, more with ``--verbose``."""

from __future__ import annotations

import logging
import sys
from typing import Any

from ..ir import escape


class _Line(logging.Formatter):
    """``WARNING roundel.cache: ...``, with nothing in it that would steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escape.message(super().format(record))


class _Terminal(logging.StreamHandler):
    """Writes to what is standard error at that time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:  # type: ignore[override]
        """Not the one that was standard error before."""
        return sys.stderr


def log_to_terminal(verbose: int) -> None:
    """Show warnings (0), what is done (1), or every pass (2 and more)."""
    log = logging.getLogger("roundel")
    log.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
    if not any(isinstance(h, _Terminal) for h in log.handlers):
        handler = _Terminal()
        handler.setFormatter(_Line("%(levelname)s %(name)s: %(message)s"))
        log.addHandler(handler)
