# SPDX-License-Identifier: Apache-2.0
"""Schedule rules: each looks at a program's structure and, where it fits, schedules it by primitives."""

from .contraction import contraction
from .elementwise import elementwise
from .fallback import fallback
from .rows import rows
from .windows import windows
from .winograd import winograd

RULES = [elementwise, winograd, contraction, windows, rows, fallback]

__all__ = ["RULES", "contraction", "elementwise", "fallback", "rows", "windows", "winograd"]
