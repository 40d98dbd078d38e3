# SPDX-License-Identifier: Apache-2.0
"""``roundel inspect``: the module as script at any stage."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from ..passes.progress import shown
from .arguments import FIX, NO_DIM, TARGET, dims, given_late, is_compiled, one_of
from .json_output import JSON, print_json


def _passes(incomplete: str) -> list[str]:
    """The passes of the default pipeline whose names begin so, for the shell."""
    from .. import driver

    return [name for name in dict.fromkeys(p.name for p in driver.DEFAULT) if name.startswith(incomplete)]


def inspect_command(
    model: Path = typer.Argument(..., help="An ONNX file; with --form asm also a compiled one (.so).", show_default=False),
    after: str = typer.Option(None, "--after", metavar="PASS", autocompletion=_passes, help="Show the module after this pass. Default: as imported."),
    function: str = typer.Option(None, "--function", "-f", help="Show only this function."),
    form: str = typer.Option("script", "--form", autocompletion=one_of("script", "llvm", "asm"),
                              help="script, llvm or asm (the last two of one kernel, with -f)."),
    passes: bool = typer.Option(False, "--passes", help="List the passes of the default pipeline."),
    fix: list[str] = FIX, dim: list[str] = NO_DIM, target: str = TARGET,
    color: bool = typer.Option(None, "--color/--no-color", help="Highlight. Default: on a terminal."),
    as_json: bool = JSON,
) -> None:
    """Print a model's module at any stage of compilation."""
    from .. import api, driver
    from ..ir.errors import OptionError
    from ..reports.stages import kernel_text

    names = [p.name for p in driver.DEFAULT]
    if passes:
        listed = [*dict.fromkeys(names)]
        print_json(listed) if as_json else typer.echo("\n".join(listed))
        return
    if is_compiled(model) and form == "asm":
        given_late(model, {"--fix": fix, "--target": target, "--after": after})
        text = api.load(model).asm(function)
        print_json({"function": function, "form": form, "text": text}) if as_json else typer.echo(text)
        return
    with shown(f"importing {model.name}"):
        mod = api.import_model(model, dynamic=dims(fix, "--fix") or None)
    if form != "script":
        text = kernel_text(driver.prepare(mod, target=driver.target_of(target, mod)), function, form)
        print_json({"function": function, "form": form, "text": text}) if as_json else typer.echo(text)
        return
    if after is not None:
        if after not in names:
            raise OptionError(f"there is no pass {after!r} in the pipeline", hint=f"one of {', '.join(dict.fromkeys(names))}")
        last = len(names) - 1 - names[::-1].index(after)
        with shown("running passes"):
            mod = driver.prepare(mod, target=driver.target_of(target, mod), pipeline=driver.DEFAULT[: last + 1])
    if function is not None and function not in mod.functions:
        later = "" if after is not None else "; kernels are there --after schedule"
        raise OptionError(f"the module has no function {function!r} at this stage", hint=f"it has {', '.join(mod.functions)}{later}")
    part = mod if function is None else mod[function]
    if as_json:
        functions = {name: f.script() for name, f in mod.functions.items() if function in (None, name)}
        print_json({"after": after, "functions": functions, "form": form, "text": part.script()})
        return
    if color or (color is None and sys.stdout.isatty()):
        from rich.console import Console
        from rich.syntax import Syntax

        Console(force_terminal=True, emoji=False).print(Syntax(part.script(), "python", word_wrap=True, background_color="default"))
    else:
        typer.echo(part.script())
