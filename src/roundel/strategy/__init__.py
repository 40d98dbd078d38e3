# SPDX-License-Identifier: Apache-2.0
"""Which implementation of an operator runs and how it is scheduled when nobody said so."""

from .schedule_module import schedule_module

__all__ = ["schedule_module"]
