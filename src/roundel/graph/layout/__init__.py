# SPDX-License-Identifier: Apache-2.0
"""Passes that choose how tensors lie in memory between operators."""
