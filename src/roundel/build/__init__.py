# SPDX-License-Identifier: Apache-2.0
"""Tensor programs to native code: lower, generate, compile (with an object cache and worker processes), link."""

from .build import Built, build, compile_module
from .inspect import Inspection, inspect

__all__ = ["Built", "Inspection", "build", "compile_module", "inspect"]
