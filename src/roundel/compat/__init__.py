# SPDX-License-Identifier: Apache-2.0
"""Roundel under the names of other systems, for programs that were written for them."""
