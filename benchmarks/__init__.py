# SPDX-License-Identifier: Apache-2.0
"""Roundel against its peers: whole models, single kernels, random layers. ``python -m benchmarks --help`` shows how to run them."""
