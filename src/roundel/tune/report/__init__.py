# SPDX-License-Identifier: Apache-2.0
"""What tuning found as a page: one file of HTML that needs nothing else."""

from .page import page

__all__ = ["page"]
