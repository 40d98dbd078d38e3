# SPDX-License-Identifier: Apache-2.0
"""Models of text: tokens in; scores of classes, an embedding, or scores of the next token out."""

from __future__ import annotations

from typing import Any

from ..ir.dataclass import dataclass
from ..runtime.metadata import TensorInfo
from .asked import Asked
from .signature import Signature
from .tokenizer import size_of

_FEW = 32  # scores of a text without labels that are classes; more are an embedding
_ROLES = (("mask", ("mask",)), ("types", ("type", "segment")), ("positions", ("position",)))  # by what inputs are called; the other one holds tokens


@dataclass(frozen=True)
class Text:
    """Places of the inputs: ``ids`` of tokens, and where there are such, their ``mask``, ``types`` and ``positions``. ``length``: how many tokens the model
    takes, 0 for any number; ``result``: the size of a result's last dimension; ``each``: there is one for each token."""

    ids: int
    mask: int | None
    types: int | None
    positions: int | None
    length: int
    result: int
    each: bool


def text_of(model: Signature, asked: Asked) -> Text | None:
    """How a model takes tokens; None for one that does not, or where nothing makes tokens of text."""
    roles: dict[str, int] = {}
    for place, info in model.fresh.items():
        role = next((role for role, words in _ROLES if any(word in info.name.lower() for word in words)), "ids")
        if role in roles or not 1 <= len(info.shape) <= 2 or (role == "ids" and info.dtype not in ("int64", "int32")) or not _is_one(info):
            return None
        roles[role] = place
    if "ids" not in roles or asked.tokenizer is None or not model.results or not model.results[0].shape or not isinstance(model.results[0].shape[-1], int):
        return None
    ids, result = model.inputs[roles["ids"]], model.results[0].shape
    length = ids.shape[-1]
    each = len(result) == 3 or (len(ids.shape) == 1 and len(result) == 2)
    return Text(roles["ids"], roles.get("mask"), roles.get("types"), roles.get("positions"), length if isinstance(length, int) else 0, int(result[-1]), each)


def _is_one(info: TensorInfo) -> bool:
    """Whether it can hold one text."""
    return len(info.shape) == 1 or not isinstance(info.shape[0], int) or info.shape[0] == 1


def generation(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """Scores of the next token, with or without keys and values so far as states."""
    text = text_of(model, asked)
    if text is None or asked.tokenizer is None or text.result < size_of(asked.tokenizer) or not (text.each or model.states):
        return None
    return {"text": text, "states": model.states, "template": asked.template}


def classes(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """A text in, one row of scores out; some tens at most where the classes have no names."""
    text = text_of(model, asked)
    if text is None or model.states or text.each or not (asked.kind or asked.labels or text.result <= _FEW):
        return None
    return {"text": text}


def embedding(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """A text in, an embedding out, or one for each token, of which the page takes the mean."""
    text = text_of(model, asked)
    return None if text is None or model.states else {"text": text}
