# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend.torch``."""

from .exported_program_translator import from_exported_program
from .fx_translator import from_fx

__all__ = ["from_exported_program", "from_fx"]
