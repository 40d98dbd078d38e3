# SPDX-License-Identifier: Apache-2.0
"""Operators become tensor programs, and neighbouring programs one: legalisation, fusion, merging, fewer axes and named sizes."""
