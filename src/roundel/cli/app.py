# SPDX-License-Identifier: Apache-2.0
"""The Typer application and its commands."""

from __future__ import annotations

import typer

from . import bench, check, compile, explain, info, inspect, quantize, report, run, serve_runner, targets, tune, web  # noqa: A004
from .logs import log_to_terminal

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False,
                  help="Roundel compiles machine-learning models to native code.")
app.command("compile")(compile.compile_command)
app.command("run")(run.run_command)
app.command("bench")(bench.bench_command)
app.command("info")(info.info_command)
app.command("inspect")(inspect.inspect_command)
app.command("tune")(tune.tune_command)
app.command("serve-runner")(serve_runner.serve_runner_command)
app.command("serve-tracker")(serve_runner.serve_tracker_command)
app.command("quantize")(quantize.quantize_command)
app.command("explain")(explain.explain_command)
app.command("check")(check.check_command)
app.command("targets")(targets.targets_command)
app.command("web")(web.web_command)
app.add_typer(report.app, name="report")


@app.callback(invoke_without_command=True)
def _general(context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and leave."),
             verbose: int = typer.Option(0, "--verbose", "-v", count=True, help="Tell what is done; twice: every pass with its time.")) -> None:
    log_to_terminal(verbose)
    if version:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


__all__ = ["app"]
