# SPDX-License-Identifier: Apache-2.0
"""``tvm.arith``."""

from ...arith import *  # noqa: F403
