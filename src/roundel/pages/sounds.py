# SPDX-License-Identifier: Apache-2.0
"""Models of sound: samples in, or their spectrogram, window by window, and scores (of speech, of words) or letters out, with states that go from window to
window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..runtime.metadata import TensorInfo
from .asked import Asked
from .mel import Mel, of_input, parsed
from .pictures import letters
from .signature import Signature

_LONG = 4000  # samples; a row of so many is sound, not features
_SHORTEST = 80  # samples, 10 ms of a telephone's 8 kHz; what goes from run to run in shorter rows is features
_WINDOW = 512  # samples of a model with states, where it takes any number
_SECOND_WINDOWS = 1  # seconds of one without


@dataclass(frozen=True)
class Sound:
    """``rate``: samples a second. ``window``: new samples of each run; ``overlap``: those of the run before that come ahead of them. ``whole``: the model
    takes a recording at once. ``input``: of the samples, ``rate_input``: that of the rate. ``letters``: of outputs that are letters from first to last.
    ``mel``: how the samples become a spectrogram, which the model takes in their place, of ``shape`` (0: as many frames as there are)."""

    rate: int
    window: int
    overlap: int
    whole: bool
    input: int
    rate_input: int | None
    letters: list[str]
    mel: Mel | None = None
    shape: tuple[int, ...] = ()


def sound(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """Samples, and beside them only states and the rate; scores, and beside them only states. Raises OptionError for a window that the model does not take."""
    fresh = model.fresh
    numbers = [k for k, info in fresh.items() if info.dtype in ("int64", "int32") and all(d == 1 for d in info.shape)]
    samples = [k for k in fresh if k not in numbers]
    if len(samples) != 1 or len(numbers) > 1 or not model.results or model.results[0].dtype != "float32":
        return None
    info = fresh[samples[0]]
    if asked.mel:
        return _by_spectrogram(model, asked, samples[0], numbers)
    length = info.shape[-1] if info.shape else 0
    batch = info.shape[0] if len(info.shape) > 1 else 1
    if info.dtype != "float32" or len(info.shape) > 3 or any(d != 1 for d in info.shape[1:-1]) or not (batch == 1 or isinstance(batch, str)):
        return None
    is_long = len(info.shape) > 1 if isinstance(length, str) else length >= _LONG
    goes_on = bool(model.states or numbers) and (isinstance(length, str) or length >= _SHORTEST)
    if length == 0 or not (asked.kind or ((is_long or goes_on) and _are_scores(model.results, info))):
        return None
    whole = isinstance(length, str) and not model.states and not asked.window
    window = asked.window or (length - asked.overlap if isinstance(length, int) else _WINDOW if model.states else _SECOND_WINDOWS * asked.rate)
    if window <= 0 or (isinstance(length, int) and window + asked.overlap != length):
        raise OptionError(f"--window {window} and --overlap {asked.overlap} are {window + asked.overlap} samples, and the model takes {length}",
                          hint="--window is the number of new samples of a run, --overlap that of older ones ahead of them")
    made = Sound(asked.rate, window, asked.overlap, whole, samples[0], numbers[0] if numbers else None, _letters(model, asked))
    return {"sound": made, "states": model.states}


def _by_spectrogram(model: Signature, asked: Asked, at: int, numbers: Sequence[int]) -> dict[str, Any] | None:
    """The input is a spectrogram. Raises OptionError for windows that are not those of its frames."""
    info, mel = model.inputs[at], parsed(asked.mel, asked.rate)
    if (found := of_input(info, mel)) is None:
        return None
    mel, frames = found
    whole = isinstance(frames, str) and not model.states and not asked.window
    length = mel.samples(frames) if isinstance(frames, int) else None
    window = asked.window or (_SECOND_WINDOWS * asked.rate if length is None else length - asked.overlap)
    if window <= 0 or (length is not None and window + asked.overlap != length):
        raise OptionError(f"--window {window} and --overlap {asked.overlap} are {window + asked.overlap} samples, and {frames} frames are made of {length}",
                          hint="--window is the number of new samples of a run, --overlap that of older ones ahead of them")
    shape = tuple(0 if d == frames and isinstance(d, str) else d if isinstance(d, int) else 1 for d in info.shape)
    made = Sound(asked.rate, window, asked.overlap, whole, at, numbers[0] if numbers else None, _letters(model, asked), mel, shape)
    return {"sound": made, "states": model.states}


def _letters(model: Signature, asked: Asked) -> list[str]:
    shape = model.results[0].shape
    return letters(asked.labels, int(shape[2])) if len(shape) == 3 and isinstance(shape[1], str) and isinstance(shape[2], int) and asked.labels else []


def _are_scores(results: Sequence[TensorInfo], samples: TensorInfo) -> bool:
    """Whether there is one result, which is not a number for each sample."""
    return len(results) == 1 and results[0].shape != samples.shape
