# SPDX-License-Identifier: Apache-2.0
"""LLVM: flat tensor programs as LLVM IR text, and from there to assembly and objects (``backend``)."""
