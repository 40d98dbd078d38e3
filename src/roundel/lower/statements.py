# SPDX-License-Identifier: Apache-2.0
"""A rewriter of statements that leaves expressions unchanged and does not visit them."""

from __future__ import annotations

from typing import Any

from roundel.ir import Rewriter, tir


class StatementRewriter(Rewriter):
    """Handlers for statements only."""

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, tir.Expr):
            return node
        return super().rewrite(node)
