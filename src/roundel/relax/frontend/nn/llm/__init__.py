# SPDX-License-Identifier: Apache-2.0
"""What language models that serve many sequences are made of."""

from . import kv_cache

__all__ = ["kv_cache"]
