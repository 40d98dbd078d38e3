# SPDX-License-Identifier: Apache-2.0
"""Rewriting by rules: tables that say form and result, matching, and the simplifier that keeps what is written."""

from .simplify import rewrite_simplify

__all__ = ["rewrite_simplify"]
