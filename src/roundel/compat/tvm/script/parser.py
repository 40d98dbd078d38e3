# SPDX-License-Identifier: Apache-2.0
"""``tvm.script.parser``."""

from ....script import from_source, ir, parse, relax, tir
from ....script.ir import ir_module

tirx = tir
__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir", "tirx"]
