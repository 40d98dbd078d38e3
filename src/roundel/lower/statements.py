# SPDX-License-Identifier: Apache-2.0
"""A rewriter of statements that leaves expressions unchanged and does not visit them."""

from __future__ import annotations

from collections.abc import Callable

from roundel.ir import Rewriter, tir
from roundel.ir.visit import unchanged


class StatementRewriter(Rewriter):
    """Handlers for statements only."""

    @classmethod
    def _way(cls, kind: type) -> Callable:
        bare = kind in (tir.BufferStore, tir.Evaluate) and kind not in cls._table and cls.buffer is Rewriter.buffer  # nothing in them but expressions
        return unchanged if bare or issubclass(kind, tir.Expr) else super()._way(kind)
