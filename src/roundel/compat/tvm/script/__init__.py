# SPDX-License-Identifier: Apache-2.0
"""``tvm.script``: ``from roundel.compat.tvm.script import ir as I, relax as R, tir as T``."""

from ....script import from_source, ir, parse, relax, tir
from ....script.ir import ir_module
from . import parser

tirx = tir

__all__ = ["from_source", "ir", "ir_module", "parse", "parser", "relax", "tir", "tirx"]
