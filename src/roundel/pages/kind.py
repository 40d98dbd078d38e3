# SPDX-License-Identifier: Apache-2.0
"""What a page asks its user for, told from what the model takes: a picture, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..runtime.metadata import TensorInfo

KINDS = ("picture", "numbers")
_SIDE = 224  # pixels, where the model takes pictures of any size
_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # of ImageNet's pictures, which most networks with channels first were trained on
_HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))  # ... and those with channels last: numbers from -1 to 1


@dataclass(frozen=True)
class Picture:
    """How a picture becomes the model's input: its size in pixels, its channels and whether they come first, and what is taken from each channel
    (of numbers from 0 to 1) and what that is divided by. Integers are given as they are."""

    width: int
    height: int
    channels: int
    channels_first: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]


def picture_of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], mean: Sequence[float] = (), std: Sequence[float] = ()) -> Picture | None:
    """How a classifier of pictures takes them; None for another model. ``mean`` and ``std`` are those asked for, one number or one for each channel.
    Raises OptionError for another number of them."""
    if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].dtype not in ("float32", "uint8"):
        return None
    shape = inputs[0].shape
    first, last = shape[1] in (1, 3), shape[3] in (1, 3)
    if not (first or last) or not outputs or outputs[0].dtype != "float32":
        return None
    channels = int(shape[1] if first else shape[3])
    height, width = (d if isinstance(d, int) else _SIDE for d in (shape[2:4] if first else shape[1:3]))
    usual = _STATISTICS if first else _HALVES
    return Picture(width, height, channels, first, _channels("mean", mean, usual[0], channels), _channels("std", std, usual[1], channels))


def _channels(name: str, given: Sequence[float], usual: Sequence[float], channels: int) -> tuple[float, ...]:
    values = tuple(given or usual[:channels])
    if len(values) not in (1, channels) or (name == "std" and not all(values)):
        raise OptionError(f"--{name} has {len(values)} numbers", hint=f"give one, or {channels}, one for each channel" + ", none of them 0" * (name == "std"))
    return values * channels if len(values) == 1 else values


def chosen(kind: str | None, picture: Any) -> str:
    """The kind of page: the one asked for, or the one that the model is for. Raises OptionError for one that there is not, or that does not fit."""
    if kind not in (None, *KINDS):
        raise OptionError(f"there is no kind of page {kind!r}", hint=f"kinds are {', '.join(KINDS)}")
    if kind == "picture" and picture is None:
        raise OptionError("this model does not take one picture and give scores", hint="leave --kind out: the page asks for numbers")
    return kind or ("numbers" if picture is None else "picture")
