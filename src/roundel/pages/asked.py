# SPDX-License-Identifier: Apache-2.0
"""What the user says about a page beside the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError

_PICTURES, _TEXTS = ("picture", "detection", "recognition"), ("text", "embedding", "generation")
_USED = {"labels": (*_PICTURES, "sound", "text"), "sample": (*_PICTURES, "sound"), "tokenizer": _TEXTS, "template": ("generation",),
         **dict.fromkeys(("mean", "std", "bgr", "size"), _PICTURES), **dict.fromkeys(("rate", "window", "overlap", "mel"), ("sound",))}
"""The kinds of page that an option is for."""
_PICTURE_FILES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".avif", ".svg")
_SOUND_FILES = (".wav", ".mp3", ".ogg", ".oga", ".opus", ".flac", ".m4a", ".mp4", ".aac", ".webm", ".weba")


@dataclass(frozen=True)
class Asked:
    """The options of ``write_site`` that say what a model's inputs and outputs mean; see there. What is empty, None or 0 is not asked for."""

    kind: str | None = None
    labels: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    bgr: bool = False
    size: int = 0
    tokenizer: dict[str, Any] | None = None
    template: str = "{prompt}"
    rate: int = 16000
    window: int = 0
    overlap: int = 0
    mel: str = ""


def check_used(kind: str, given: set[str], sample: str | Path | None) -> None:
    """Raises OptionError where one of the options ``given`` is not for this kind of page, or where the file ``sample`` is not what such a page takes."""
    for option, kinds in _USED.items():
        if option in given and kind not in kinds:
            raise OptionError(f"--{option} is not for a page of the kind {kind}", hint=f"it is for {', '.join(kinds)}")
    endings = _SOUND_FILES if kind == "sound" else _PICTURE_FILES
    if sample is not None and Path(sample).suffix.lower() not in endings:
        raise OptionError(f"{sample} is no {'sound' if kind == 'sound' else 'picture'}, which a page of the kind {kind} takes",
                          hint=f"its name ends with one of {', '.join(endings)}")
