# SPDX-License-Identifier: Apache-2.0
"""What makes tokens of text: a file ``tokenizer.json`` as Hugging Face's library writes it, or what a GGUF file says, in the same form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..frontend.gguf import read
from ..ir.errors import OptionError

_MOST = 64 << 20  # bytes of a file
_BYTES: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_LLAMA = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _split(digits: str) -> list[dict[str, Any]]:
    """Words by an expression that takes so many digits at a time, then bytes."""
    return [{"type": "Split", "pattern": {"Regex": _LLAMA % digits}, "behavior": "Isolated", "invert": False}, {**_BYTES, "use_regex": False}]


_WORDS = {"gpt-2": [_BYTES], "default": [_BYTES], "smollm": [_DIGITS, _BYTES], "llama-bpe": _split("{1,3}"), "qwen2": _split("")}
"""How GGUF's names of tokenizers cut text into words before pairs of bytes are merged (llama.cpp's ``llama-vocab.cpp``)."""
_CONTROL, _USER = 3, 4  # types of tokens


def tokenizer_for(model: Any, given: str | Path | None) -> dict[str, Any] | None:
    """The tokenizer of the file ``given``, else that of a GGUF file, or ``tokenizer.json`` beside the model's file. None where there is none. With the ids of
    tokens that end a text as ``ends``. Raises OptionError for a file that is none."""
    if given is not None:
        return _read(Path(given))
    if not isinstance(model, str | Path):
        return None
    path = Path(model)
    if path.suffix == ".gguf":
        return of_gguf(read(path).metadata)
    beside = path.with_name("tokenizer.json")
    return _read(beside) if beside.is_file() else None


def size_of(tokenizer: Mapping[str, Any]) -> int:
    """How many different tokens there are."""
    vocabulary = tokenizer["model"].get("vocab", ())
    return len(vocabulary)


def _read(path: Path) -> dict[str, Any]:
    hint = "give --tokenizer the file tokenizer.json that comes with the model"
    try:
        if not path.is_file() or path.stat().st_size > _MOST:
            raise OptionError(f"{path} is no tokenizer", hint=hint)
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # a name with a NUL, what is no UTF-8 and what is no JSON are ValueErrors
        raise OptionError(f"{path} is no tokenizer", why=getattr(error, "strerror", None) or str(error), hint=hint) from None
    except RecursionError:
        raise OptionError(f"{path} is no tokenizer", why="it is nested too deeply", hint=hint) from None
    model = found.get("model") if isinstance(found, dict) else None
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise OptionError(f"{path} is no tokenizer", why="it has no model with a vocabulary", hint=hint)
    return {**found, "ends": _ends(path.with_name("tokenizer_config.json"), found)}


def _ends(path: Path, tokenizer: Mapping[str, Any]) -> list[int]:
    """Ids of the token that a file beside the tokenizer names as the end of a text."""
    try:
        named = json.loads(path.read_text(encoding="utf-8")).get("eos_token")
    except (OSError, ValueError, AttributeError, RecursionError):
        return []
    content = named.get("content") if isinstance(named, dict) else named
    added = {t.get("content"): t.get("id") for t in tokenizer.get("added_tokens") or () if isinstance(t, dict)}
    vocabulary = tokenizer["model"]["vocab"]
    found = added.get(content, vocabulary.get(content) if isinstance(vocabulary, dict) and isinstance(content, str) else None)
    return [found] if isinstance(found, int) else []


def of_gguf(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the metadata of a GGUF file say, as ``tokenizer.json`` has it; None where they say nothing, or have a tokenizer of another kind than pairs of
    bytes (GPT-2's)."""
    fact = lambda name: metadata.get(f"tokenizer.ggml.{name}")
    tokens, merges, words = fact("tokens"), fact("merges"), _WORDS.get(fact("pre") or "default")
    if fact("model") != "gpt2" or not isinstance(tokens, list) or not isinstance(merges, list) or words is None:
        return None
    types = fact("token_type") or []
    special = [k for k, kind in enumerate(types[: len(tokens)]) if kind in (_CONTROL, _USER)]
    added = [{"id": k, "content": tokens[k], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": types[k] == _CONTROL}
             for k in special]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
             "byte_fallback": False, "ignore_merges": fact("pre") == "llama-bpe", "vocab": {t: k for k, t in enumerate(tokens)}, "merges": merges}
    end = fact("eos_token_id")
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": words}, "post_processor": None, "decoder": _BYTES, "model": model,
            "ends": [end] if isinstance(end, int) else []}
