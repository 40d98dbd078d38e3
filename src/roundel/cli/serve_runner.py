# SPDX-License-Identifier: Apache-2.0
"""``roundel serve-runner``: measure on this machine for those who tune elsewhere."""

from __future__ import annotations

import signal

import typer

from ..ir.errors import OptionError

PORT = typer.Option(9190, "--port", min=0, max=65535, help="0: any that is free.")


def serve_runner_command(
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at; 0.0.0.0 for all of this machine."), port: int = PORT,
) -> None:
    """Run what others send and tell how long it took, one program at a time; Ctrl-C or SIGTERM ends it.

    Those who know the key in ROUNDEL_RUNNER_KEY (16 characters or more) can do here whatever your user can. Nothing is encrypted: outside of a network
    of your own, listen at 127.0.0.1 and go through ssh.
    """
    from ..target import Target
    from ..tune.measure.remote import Server

    try:
        server = Server(host, port)
    except OSError as error:
        raise OptionError(f"nothing can listen at {host}:{port}", why=error.strerror or str(error)) from error
    typer.echo(f"measuring for others at {server.address[0]}:{server.address[1]}: {Target.host()}")
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background processes ignore it
    try:
        server.serve()
    except KeyboardInterrupt:
        typer.echo("stopped")
    finally:
        server.close()
