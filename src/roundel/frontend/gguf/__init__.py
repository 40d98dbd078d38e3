# SPDX-License-Identifier: Apache-2.0
"""GGUF files (llama.cpp's) as modules: language models of the llama architecture, with their weights as the file packs them."""

from __future__ import annotations

from .llama import from_gguf
from .reader import GGUF, read

__all__ = ["GGUF", "from_gguf", "read"]
