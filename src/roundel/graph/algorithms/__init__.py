# SPDX-License-Identifier: Apache-2.0
"""Passes that choose how an operator is computed: Winograd, Strassen, attention in blocks, products of integers, the type of weights."""
