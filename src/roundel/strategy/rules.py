# SPDX-License-Identifier: Apache-2.0
"""The schedule rules in the order in which they are tried: each looks at a program's structure and, where it fits, schedules it by primitives."""

from .attempt import Attempt, attempt, takes
from .attention.attention import attention
from .generic.as_written import as_written
from .generic.fallback import fallback
from .pointwise.elementwise import elementwise
from .pointwise.points import points
from .pointwise.transposition import transposition
from .product.contraction import contraction
from .product.dot_products import dot_products
from .product.matvec import matvec
from .reduction.columns import columns
from .reduction.rows import rows
from .reduction.totals import totals
from .transform.bilinear import bilinear
from .transform.winograd import winograd
from .window.windows import windows

RULES = [transposition, elementwise, winograd, bilinear, attention, dot_products, matvec, contraction, columns, windows, rows, totals, points, fallback,
         as_written]

__all__ = [
    "RULES", "Attempt", "as_written", "attempt", "attention", "bilinear",
    "columns", "contraction", "dot_products", "elementwise", "fallback", "matvec", "points", "rows", "takes", "totals",
    "transposition", "windows", "winograd",
]
