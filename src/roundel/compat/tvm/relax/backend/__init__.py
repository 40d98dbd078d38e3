# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend``: patterns for code generators, by name. A code generator is a `roundel.backends.Backend` of the patterns' prefix."""

from __future__ import annotations

from .....backends import Backend, register, unregister
from . import pattern_registry, patterns
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = ["Backend", "get_pattern", "get_patterns_with_prefix", "pattern_registry", "patterns", "register", "register_patterns", "unregister"]
