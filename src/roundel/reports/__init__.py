# SPDX-License-Identifier: Apache-2.0
"""A compiled model as people look at it: what each kernel is and why, and the whole circle from the graph to the assembly on one page."""
