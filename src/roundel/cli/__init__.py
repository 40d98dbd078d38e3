# SPDX-License-Identifier: Apache-2.0
"""The ``roundel`` command: compile, run, bench, inspect, check, targets, report. Thin, over the public API."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point: errors that Roundel raises become one paragraph and exit status 1, an interrupt 130."""
    import typer

    from ..ir.errors import RoundelError
    from .app import app

    try:
        status = app(standalone_mode=False)
    except RoundelError as error:
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("click", "typer"):
            raise
        error.show()  # type: ignore[attr-defined]
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(status if isinstance(status, int) else 0)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
