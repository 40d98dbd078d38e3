# SPDX-License-Identifier: Apache-2.0
"""The strategy for attention: two products with a softmax between them."""
