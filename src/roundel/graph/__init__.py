# SPDX-License-Identifier: Apache-2.0
"""Graph passes: simplification, layouts, algorithms, fusion, lowering to the host function, the memory plan. One file each."""
