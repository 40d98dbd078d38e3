# SPDX-License-Identifier: Apache-2.0
"""Strategies for programs in which no element of a result is a sum: elementwise operators, transpositions, scans, scatters and sorts."""
