# SPDX-License-Identifier: Apache-2.0
"""Sentences to vectors with a model of Hugging Face's transformers: compiled once for every number and length of sentences, compared with PyTorch.

    pip install torch transformers
    python examples/sentence_embeddings.py [sentence-transformers/all-MiniLM-L6-v2]

With the name of a model (or the folder of one's own) its weights and tokenizer are used. Without one, and without a network, it makes a small model from a
configuration and a tokenizer from a few lines of text: the vectors mean nothing then, but every step is the same.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

import roundel as rd

SENTENCES = ["A compiler turns models into native code.", "The cat sat on the mat.", "Models become machine code.",
             "Is it going to rain today, or can we leave the umbrella?"]


class Embedding(torch.nn.Module):
    """The mean of a sentence's token vectors, of length one."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weight = attention_mask.unsqueeze(-1).to(tokens.dtype)
        return torch.nn.functional.normalize((tokens * weight).sum(1) / weight.sum(1), dim=1)


def main(name: str | None) -> int:
    tokenizer, encoder = (AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)) if name else small()
    model = Embedding(encoder).eval()

    example = tokenizer(SENTENCES[:2], padding=True, return_tensors="pt")
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=512)
    sizes = {0: batch, 1: length}
    begin = time.perf_counter()
    compiled = rd.compile(model, (example["input_ids"], example["attention_mask"]), dynamic=(sizes, sizes))
    print(f"compiled in {time.perf_counter() - begin:.1f} s: {compiled}")

    for sentences in (SENTENCES[:1], SENTENCES):  # one artifact for all sizes
        given = tokenizer(sentences, padding=True, return_tensors="pt")
        vectors = compiled(given["input_ids"], given["attention_mask"]).numpy()  # what comes back is of the kind that was given
        with torch.no_grad():
            wanted = model(given["input_ids"], given["attention_mask"]).numpy()
        print(f"{len(sentences)} sentences of up to {given['input_ids'].shape[1]} tokens: at most {np.abs(vectors - wanted).max():.1e} from PyTorch's vectors")
        np.testing.assert_allclose(vectors, wanted, atol=1e-4)

    likeness = vectors @ vectors.T
    nearest = int(np.argsort(likeness[0])[-2])
    print(f"nearest to {SENTENCES[0]!r}: {SENTENCES[nearest]!r} ({likeness[0, nearest]:.2f})")
    print(f"saved: {compiled.save('embedding.so')}, which rd.load or a C program opens without PyTorch")
    return 0


def small() -> tuple[Any, torch.nn.Module]:
    """A tokenizer of whole words and a BERT of two layers with random weights, made without a network."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.train_from_iterator(SENTENCES, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    torch.manual_seed(0)
    config = BertConfig(vocab_size=words.get_vocab_size(), hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512)
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]"), BertModel(config)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
