# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend.pattern_registry``."""

from __future__ import annotations

from .....backends.run_codegen import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = ["get_pattern", "get_patterns_with_prefix", "register_patterns"]
