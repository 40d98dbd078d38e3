# SPDX-License-Identifier: Apache-2.0
"""The kinds of page, and which of them a model is for, told from what it takes and gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.errors import OptionError
from . import pictures, sounds, texts
from .asked import Asked
from .signature import Signature

_Told = Callable[[Signature, Asked], dict[str, Any] | None]
_KINDS: dict[str, tuple[_Told, str]] = {
    "generation": (texts.generation, "takes tokens and gives scores of the next one, for which it needs --tokenizer"),
    "text": (texts.classes, "takes tokens and gives scores of classes, for which it needs --tokenizer"),
    "embedding": (texts.embedding, "takes tokens and gives an embedding, for which it needs --tokenizer"),
    "sound": (sounds.sound, "takes samples of sound, or with --mel their spectrogram, and beside them only states and their rate"),
    "recognition": (pictures.recognition, "takes a picture of a line of text and gives scores of letters"),
    "detection": (pictures.detection, "takes one picture and gives boxes"),
    "picture": (pictures.classes, "takes one picture and gives scores"),
    "numbers": (lambda model, asked: {}, "takes numbers"),
}
KINDS = (*_KINDS,)
"""In the order in which a model is tried for them."""


def told(model: Signature, asked: Asked) -> tuple[str, dict[str, Any]]:
    """The kind of page, and how the model's inputs and outputs are meant: the kind asked for, or the first that fits. Raises OptionError for a kind that
    there is not, or that does not fit."""
    if asked.kind is None:
        return next((kind, facts) for kind, (tell, _) in _KINDS.items() if (facts := tell(model, asked)) is not None)
    if asked.kind not in _KINDS:
        raise OptionError(f"there is no kind of page {asked.kind!r}", hint=f"kinds are {', '.join(KINDS)}")
    tell, what = _KINDS[asked.kind]
    facts = tell(model, asked)
    if facts is None:
        raise OptionError(f"this is no model for a page of the kind {asked.kind}: such a model {what}",
                          hint="leave --kind out: the page asks for what the model takes")
    return asked.kind, facts


def classes(kind: str, model: Signature, facts: dict[str, Any]) -> tuple[int, ...]:
    """How many classes the model of such a page has; more than one number where some may mean something else, none where it is not known."""
    if kind == "text":
        return (facts["text"].result,)
    if kind == "detection":
        return pictures.classes_of_boxes(facts["boxes"], model.outputs)
    if kind not in ("picture", "sound") or (kind == "sound" and facts["sound"].letters):
        return ()
    sizes = [d for d in model.results[0].shape[-1 if kind == "sound" else 0 if len(model.results[0].shape) == 1 else 1 :] if d != 1]
    return () if any(isinstance(d, str) for d in sizes) else (math.prod(map(int, sizes)),)


def wants_tokenizer(kind: str, model: Signature, asked: Asked) -> bool:
    """Whether a page of numbers could be one of text if there were a tokenizer."""
    if kind != "numbers" or asked.kind or asked.tokenizer is not None:
        return False
    text = texts.text_of(model, replace(asked, tokenizer={}))
    return text is not None and model.results[0].dtype == "float32" and (text.mask is not None or "id" in model.inputs[text.ids].name.lower())
