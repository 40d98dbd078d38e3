# SPDX-License-Identifier: Apache-2.0
"""TVMScript: programs as Python, ``from roundel.script import ir as I, relax as R, tir as T``."""

from __future__ import annotations

from . import ir, relax, tir
from .parser.entry import parse
from .printer.module import print_script, show

from_source = parse

__all__ = ["from_source", "ir", "parse", "print_script", "relax", "show", "tir"]
