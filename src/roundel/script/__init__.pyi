# SPDX-License-Identifier: Apache-2.0
# What type checkers see of scripts: they are read as text and never run, so their names may stand for anything.

from typing import Any

from .parser.entry import parse as parse
from .printer.module import print_script as print_script
from .printer.module import show as show

from_source = parse
ir: Any
relax: Any
tir: Any
