# SPDX-License-Identifier: Apache-2.0
"""Passes after which a graph computes the same with less: inlining, folding of constants, rules of arithmetic, common subexpressions, dead code."""
