# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.testing``: modules that emit into the function that is being built."""

from . import nn

__all__ = ["nn"]
