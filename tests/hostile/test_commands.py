# SPDX-License-Identifier: Apache-2.0
"""Commands with hostile values of their options: a short run."""

import inspect

from roundel.cli.app import app

from . import commands


def test_short_form():
    assert list(commands.attack(60, seed=0)) == []


def test_every_option_of_every_command_is_attacked():
    for given in app.registered_commands:
        known = {name.replace("--no-", "--") for name in commands.OPTIONS[given.name]} | {"--color", "--measure"}
        declared = {d for p in inspect.signature(given.callback).parameters.values() for d in p.default.param_decls or ()}
        assert {d.split("/")[0] for d in declared if d.startswith("--")} <= known | {"--profile"}, given.name
