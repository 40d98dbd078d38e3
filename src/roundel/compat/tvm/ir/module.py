# SPDX-License-Identifier: Apache-2.0
"""``tvm.ir.module``."""

from ....ir import IRModule

__all__ = ["IRModule"]
