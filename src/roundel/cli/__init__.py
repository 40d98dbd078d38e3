# SPDX-License-Identifier: Apache-2.0
"""The ``roundel`` command: compile, run, bench, tune, info, inspect, explain, check, targets, web, report. Thin, over the public API."""

from __future__ import annotations

import os
import signal
import sys

_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask the command to end: what it has made elsewhere is removed first, such as a program on a board."""


def main() -> None:
    """Entry point: errors of Roundel and of the system become one paragraph and exit status 1, an interrupt 130.

    What is left is a mistake in Roundel; it is shown with its traceback and exit status 3.
    """
    import typer

    from ..ir.errors import RoundelError
    from ..ir.escape import markup
    from .app import app

    for ends in _ENDS:
        if signal.getsignal(ends) is signal.SIG_DFL:  # nohup has one of them ignored
            signal.signal(ends, lambda number, _: sys.exit(128 + number))
    try:
        status = app(standalone_mode=False, prog_name="roundel")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has seen enough; do not complain at exit either
        sys.exit(0)
    except (RoundelError, OSError, MemoryError) as error:
        from rich.console import Console

        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error) or "not enough memory"
        Console(stderr=True, emoji=False).print(f"[bold red]error:[/] {markup(text)}", soft_wrap=True, highlight=False)
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("click", "typer"):
            _admit()
        error.show()  # type: ignore[attr-defined]
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(status if isinstance(status, int) else 0)


def _admit() -> None:
    """Show the error that is being handled, which nobody foresaw."""
    import traceback

    from .. import __version__

    traceback.print_exc()
    print(f"This is a mistake in Roundel {__version__}, not in what you did; please report it with the lines above.", file=sys.stderr)
    sys.exit(3)
