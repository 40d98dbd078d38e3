# SPDX-License-Identifier: Apache-2.0
"""Tests of what becomes of tensor programs and of how that is chosen."""
