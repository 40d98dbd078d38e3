# SPDX-License-Identifier: Apache-2.0
"""What was asked for by name is had, or that is an error."""

from __future__ import annotations

from ...ir import above
from ...ir.module import IRModule
from ...passes import pass_


@pass_("check_choices")
def check_choices(mod: IRModule) -> IRModule:
    """Raises OptionError for an algorithm that somebody asked for and that no node has got. Stands behind all passes that choose."""
    mod.choices.check(above.backends().available() if mod.choices.asked else ())
    return mod
