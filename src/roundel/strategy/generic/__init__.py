# SPDX-License-Identifier: Apache-2.0
"""Strategies for programs of any structure."""
