# SPDX-License-Identifier: Apache-2.0
"""Spectrograms as the input of models of sound: how loud each of some bands of frequencies is, frame by frame, on a logarithmic scale.

A frame is ``window`` samples, each multiplied by Hann's 0.5 - 0.5 cos(2 pi k / window), with zeros behind them up to ``fft``; frames begin ``hop`` samples
after one another. With ``centre`` frame t is around sample t hop, with the zeros at both its sides, the sound is reflected at both ends, and n hops give n
frames; else only whole frames count. E_b is the sum over the
frequencies f of a frame's spectrum of |X(f)|^power w_b(f), where band b's weight rises from its lower edge to 1 at its centre and falls to 0 at its upper edge.
The ``bands`` + 2 edges and centres are equally far from one another, from ``low`` to ``high`` Hz, on the scale ``htk``, 2595 log10(1 + f / 700), or
``slaney``, 3 f / 200 up to 1000 Hz and 15 + 27 log(f / 1000) / log(6.4) above. With ``area`` each band's weights are multiplied by 2 / (upper - lower edge).
The input is (L_b - mean) / std, where L_b = log(max(E_b, floor)), by the logarithm ``ln``, ``log10`` or ``db`` (10 log10), and no less than the largest L of
the window - ``range`` where that is not 0. (Davis and Mermelstein 1980; Slaney 1998.)
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..runtime.metadata import TensorInfo

_LONGEST = 1 << 14  # samples of a frame
_WORDS = {"scale": ("htk", "slaney"), "log": ("ln", "log10", "db")}


@dataclass(frozen=True)
class Mel:
    """The fields are explained above; ``fft``, ``high`` and ``bands`` are 0 where the others, or the model, tell them. ``bands_first``: of the input."""

    window: int
    hop: int
    fft: int = 0
    bands: int = 0
    low: float = 20.0
    high: float = 0.0
    power: float = 2.0
    floor: float = 1e-6
    range: float = 0.0
    mean: float = 0.0
    std: float = 1.0
    scale: str = "htk"
    log: str = "ln"
    area: bool = False
    centre: bool = False
    bands_first: bool = False

    def samples(self, frames: int) -> int:
        """How many samples so many frames are made of."""
        return frames * self.hop if self.centre else (frames - 1) * self.hop + self.window


def _forms(rate: int) -> dict[str, Mel]:
    """By name: windows of 25 ms each 10 ms; those of Whisper (Radford et al. 2022)."""
    usual = Mel(round(rate / 40), round(rate / 100))
    return {"log": usual, "whisper": replace(usual, low=0.0, floor=1e-10, range=8.0, mean=-4.0, std=4.0, scale="slaney", log="log10", area=True, centre=True,
                                             fft=usual.window)}


def parsed(text: str, rate: int) -> Mel:
    """``log``, ``whisper``, or one of them with changes behind it, such as ``log,hop=320,bands=40``. Raises OptionError."""
    first, *changes = [part.strip() for part in text.split(",")]
    forms = _forms(rate)
    if "=" in first:
        first, changes = "log", [first, *changes]
    if first not in forms:
        raise OptionError(f"--mel {text!r} is none of the known forms", hint=f"begin with {' or '.join(forms)}, then changes: log,hop=320,bands=40")
    kinds = {f.name: type(getattr(forms["log"], f.name)) for f in fields(Mel) if f.name != "bands_first"}
    given: dict[str, Any] = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in kinds:
            raise OptionError(f"--mel has no {name!r}", hint=f"it has {', '.join(kinds)}")
        given[name] = _value(name, value, kinds[name])
    mel = replace(forms[first], **given)
    if "window" in given and "fft" not in given:
        mel = replace(mel, fft=0)
    mel = replace(mel, fft=mel.fft or 1 << (mel.window - 1).bit_length(), high=mel.high or rate / 2)
    if not (0 < mel.hop and 2 <= mel.window <= mel.fft <= _LONGEST and 0 <= mel.low < mel.high <= rate / 2 and mel.std and mel.power > 0 and mel.floor > 0):
        raise OptionError(f"--mel {text!r} is no spectrogram", why=f"window {mel.window}, fft {mel.fft}, hop {mel.hop}, from {mel.low:g} to {mel.high:g} Hz of "
                          f"{rate} samples a second", hint=f"fft is at least the window and at most {_LONGEST}, high at most half of the rate; std is not 0")
    return mel


def _value(name: str, text: str, kind: type) -> Any:
    try:
        if kind is str:
            if text not in _WORDS[name]:
                raise ValueError
            return text
        value = kind(int(text)) if kind is bool else kind(text)
        if value != value or abs(value) > 1e9 or (kind is int and value < 0):
            raise ValueError
        return value
    except (ValueError, OverflowError):
        what = f"one of {', '.join(_WORDS[name])}" if kind is str else {int: "a whole number", bool: "0 or 1", float: "a number"}[kind]
        raise OptionError(f"--mel: {name} is to be {what}, not {text!r}") from None


def of_input(info: TensorInfo, mel: Mel) -> tuple[Mel, int | str] | None:
    """The form that a model's input has, and how many frames it takes; None where it is no spectrogram. Bands are the size that ``mel`` says, else the only one
    that is a number, else the smaller one. Other sizes are 1, or that of the batch."""
    shape = tuple(d for k, d in enumerate(info.shape) if d != 1 and not (k == 0 and isinstance(d, str) and len(info.shape) > 2))
    if info.dtype != "float32" or len(shape) != 2 or all(isinstance(d, str) for d in shape):
        return None
    numbers = [d for d in shape if isinstance(d, int)]
    bands = mel.bands or min(numbers)
    if bands not in shape:
        raise OptionError(f"--mel has {bands} bands, and the model takes [{', '.join(map(str, info.shape))}]", hint="leave bands out")
    first = shape[0] == bands and not (shape[1] == bands and not mel.bands_first)
    return replace(mel, bands=bands, bands_first=first), shape[1 if first else 0]
