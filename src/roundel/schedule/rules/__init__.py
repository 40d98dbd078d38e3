# SPDX-License-Identifier: Apache-2.0
"""Schedule rules: each looks at a program's structure and, where it fits, schedules it by primitives."""

from .contraction import contraction
from .elementwise import elementwise

RULES = [elementwise, contraction]

__all__ = ["RULES", "contraction", "elementwise"]
