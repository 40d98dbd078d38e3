# SPDX-License-Identifier: Apache-2.0
"""What a tensor program is: its blocks and their accesses, the roles of axes in a product, what only moves data, borders of zeros."""
