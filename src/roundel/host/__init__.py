# SPDX-License-Identifier: Apache-2.0
"""Graph functions to host functions: calls of kernels, control flow, the memory plan, results written in place, growing caches, variants for hot sizes."""
