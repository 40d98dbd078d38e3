# SPDX-License-Identifier: Apache-2.0
"""Schedule rules: each looks at a program's structure and, where it fits, schedules it by primitives."""

from .attempt import Attempt, as_written, attempt, takes
from .attention import attention
from .bilinear import bilinear
from .columns import columns
from .contraction import contraction
from .dot_products import dot_products
from .elementwise import elementwise
from .fallback import fallback
from .matvec import matvec
from .points import points
from .rows import rows
from .totals import totals
from .transposition import transposition
from .windows import windows
from .winograd import winograd

RULES = [transposition, elementwise, winograd, bilinear, attention, dot_products, matvec, contraction, columns, windows, rows, totals, points, fallback,
         as_written]

__all__ = [
    "RULES", "Attempt", "as_written", "attempt", "attention", "bilinear",
    "columns", "contraction", "dot_products", "elementwise", "fallback", "matvec", "points", "rows", "takes", "totals",
    "transposition", "windows", "winograd",
]
