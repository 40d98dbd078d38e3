# SPDX-License-Identifier: Apache-2.0
"""``tvm.target``."""

from ...target import Target

__all__ = ["Target"]
