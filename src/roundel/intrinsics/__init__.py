# SPDX-License-Identifier: Apache-2.0
"""Hardware instructions as TensorIntrins: a description (what it computes) with an implementation (how to emit it)."""

from .registry import Cost, TensorIntrin, load

__all__ = ["Cost", "TensorIntrin", "load"]
