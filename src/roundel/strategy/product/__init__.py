# SPDX-License-Identifier: Apache-2.0
"""Strategies for sums of products: matrix products and convolutions, products with few rows, products of 8-bit integers."""
