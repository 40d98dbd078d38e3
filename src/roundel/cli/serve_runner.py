# SPDX-License-Identifier: Apache-2.0
"""``roundel serve-runner`` and ``serve-tracker``: measure on this machine for those who tune elsewhere; lend such machines by name."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import typer

from ..ir import escape
from ..ir.errors import OptionError

PORT = typer.Option(9190, "--port", min=0, max=65535, help="0: any that is free.")


HOST = typer.Option("127.0.0.1", "--host", help="The address to listen at; 0.0.0.0 for all of this machine.")


def serve_runner_command(
    host: str = HOST, port: int = PORT,
    tracker: str = typer.Option(None, "--tracker", metavar="HOST[:PORT]", help="Also tell a tracker (`roundel serve-tracker`) that this machine is there."),
    device: str = typer.Option(None, "--device", help="What the tracker calls machines of this kind."),
    target: str = typer.Option(None, "--target", help="With --on: the target of the machine that is there."),
    on: str = typer.Option(None, "--on", metavar="BOARD", help="Measure on a board that needs nothing but ssh (ssh://user@host), or in an emulator (a command "
                           "such as qemu-aarch64-static). Default: here."),
) -> None:
    """Run what others send and tell how long it took, one program at a time; Ctrl-C or SIGTERM ends it.

    Those who know the key in ROUNDEL_RUNNER_KEY (16 characters or more) can do here whatever your user can. Nothing is encrypted: outside of a network
    of your own, listen at 127.0.0.1 and go through ssh.
    """
    from ..target import Target
    from ..tune.measure.boards import BoardRunner
    from ..tune.measure.remote import Server
    from ..tune.measure.tracker import Registration, lent_name

    if (on is None) != (target is None):
        raise OptionError("--on and --target go together", hint="--target names the machine that --on reaches; programs for this machine are measured here")
    name = lent_name(tracker, device)
    measuring = BoardRunner(on, target) if on is not None else None
    server = _listening(partial(Server, runner=measuring), host, port)
    try:
        registered = Registration(tracker, name, server.address) if name is not None else None
        typer.echo(f"measuring for others at {server.address[0]}:{server.address[1]}: {measuring.target if measuring is not None else Target.host()}")
        _serve(server)
    finally:
        server.close()
    if registered is not None:
        registered.close()


def serve_tracker_command(host: str = HOST, port: int = typer.Option(9191, "--port", min=0, max=65535, help="0: any that is free.")) -> None:
    """Know which machines measure (`roundel serve-runner --tracker`), and lend them by name to those who tune (`roundel tune --tracker`).

    All of them know the key in ROUNDEL_RUNNER_KEY.
    """
    from ..tune.measure.tracker import Tracker

    tracker = _listening(Tracker, host, port)
    typer.echo(f"lending devices at {tracker.address[0]}:{tracker.address[1]}")
    try:
        _serve(tracker)
    finally:
        tracker.close()


def _listening(kind: Any, host: str, port: int) -> Any:
    if not host:  # which sockets take for all addresses: where a variable of the shell was empty, nobody asked for that
        raise OptionError("--host is empty", hint="leave it out for this machine alone; 0.0.0.0 is all of this machine's addresses")
    try:
        return kind(host, port)
    except OptionError:
        raise
    except (OSError, TypeError, ValueError) as error:  # the latter two for what cannot be a name
        raise OptionError(f"nothing can listen at {escape.name(host)}:{port}", why=getattr(error, "strerror", None) or str(error)) from error


def _serve(server: Any) -> None:
    """Until somebody ends it."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background processes ignore it
    try:
        server.serve()
    except KeyboardInterrupt:
        typer.echo("stopped")
