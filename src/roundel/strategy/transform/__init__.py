# SPDX-License-Identifier: Apache-2.0
"""Strategies for products between two linear transforms: Winograd convolutions and Strassen products."""
