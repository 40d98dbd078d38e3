# SPDX-License-Identifier: Apache-2.0
"""Strategies for reductions over sliding windows: pooling and depthwise convolutions."""
