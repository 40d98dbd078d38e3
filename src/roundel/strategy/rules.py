# SPDX-License-Identifier: Apache-2.0
"""The rules that propose sketches, in the order in which they are asked."""

from __future__ import annotations

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
from .sketch import Rule
from .transform.bilinear import bilinear
from .transform.winograd import winograd
from .window.windows import windows

RULES: list[Rule] = [transposition, elementwise, winograd, bilinear, attention, dot_products, matvec, contraction, columns, windows, rows, totals, points,
                     fallback, as_written]
"""Roundel's own. The last two fit every program."""


def rules_in_order() -> list[Rule]:
    """Who may propose."""
    return list(RULES)
