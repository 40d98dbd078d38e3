# SPDX-License-Identifier: Apache-2.0
"""Commands with hostile values of their options: a short run."""

from . import commands


def test_short_form():
    assert list(commands.attack(60, seed=0)) == []


def test_every_option_of_every_command_is_attacked():
    from roundel.cli.app import app

    for given in app.registered_commands:
        import inspect

        parameters = inspect.signature(given.callback).parameters.values()
        known = {name for option in commands.OPTIONS.get(given.name, {}) for name in (option, option.replace("--no-", "--"))}
        flags = {flag.split("/")[0] for p in parameters for flag in getattr(p.default, "param_decls", ()) if flag.startswith("--")}
        assert flags <= known | {"--measure", "--profile", "--color"}, given.name
