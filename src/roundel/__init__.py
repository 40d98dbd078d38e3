# SPDX-License-Identifier: Apache-2.0
"""Roundel: a machine-learning compiler. See README.md and docs/."""

__version__ = "0.1.0"
