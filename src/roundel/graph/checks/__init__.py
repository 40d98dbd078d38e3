# SPDX-License-Identifier: Apache-2.0
"""Checks at run time that no program reads or writes outside of its tensors, for sizes and for indices that are data, where nothing proves it."""
