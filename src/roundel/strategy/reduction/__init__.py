# SPDX-License-Identifier: Apache-2.0
"""Strategies for reductions along contiguous rows, along other axes, and of whole tensors."""
