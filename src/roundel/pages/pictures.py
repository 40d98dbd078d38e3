# SPDX-License-Identifier: Apache-2.0
"""Models of pictures: how a picture becomes the input, and whether the outputs are scores of classes, boxes, or the letters of a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..runtime.metadata import TensorInfo
from .asked import Asked
from .signature import Signature

_SIDE, _DETECTION_SIDE = 224, 640  # pixels, where the model takes pictures of any size
_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # of ImageNet's pictures, which most networks with channels first were trained on
_HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))  # ... and those with channels last: numbers from -1 to 1
_AS_THEY_ARE = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_STEP = 32  # pixels; sides of pictures for networks that halve them up to five times
_FINISHED = 6  # numbers of a box whose overlaps the model itself removed: corners, score, class


@dataclass(frozen=True)
class Picture:
    """How a picture becomes the model's input: its size in pixels, its channels and whether they come first, and what is taken from each channel
    (of numbers from 0 to 1) and what that is divided by. Integers are given as they are. ``fit``: ``cover`` (the middle), ``contain`` (all of it, with
    borders), ``limit`` (all of it; ``width`` and ``height`` are the most, in steps of 32) or ``line`` (all of it at this height)."""

    width: int
    height: int
    channels: int
    channels_first: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fit: str = "cover"
    bgr: bool = False


@dataclass(frozen=True)
class Boxes:
    """How boxes are read from the outputs. ``form``: ``rows`` (of one output, each with a box and scores; ``columns``: they are columns), ``finished``
    (the same without overlaps: corners, score, class), ``lists`` (an output of boxes, and one of scores beside it) or ``map`` (how likely each pixel is
    inside). ``order``: ``centre`` (and size), ``corners`` (x first) or ``rows first`` (corners, y first). ``places``: of the outputs of boxes, scores,
    classes. ``objectness``: a score of its own before those of classes."""

    form: str
    order: str = "centre"
    columns: bool = False
    objectness: bool = False
    places: tuple[int, int, int | None] = (0, 0, None)


def picture_of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], asked: Asked, fit: str = "cover",
               usual: Sequence[Sequence[float]] | None = None) -> Picture | None:
    """How a model of one picture takes it; None for another model. Raises OptionError for as many means or deviations as there are no channels."""
    if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].dtype not in ("float32", "uint8"):
        return None
    shape = inputs[0].shape
    first, last = shape[1] in (1, 3), shape[3] in (1, 3)
    if not (first or last) or not outputs or outputs[0].dtype not in ("float32", "int64", "int32"):
        return None
    channels = int(shape[1] if first else shape[3])
    sides = shape[2:4] if first else shape[1:3]
    side = asked.size or (_SIDE if fit == "cover" else _DETECTION_SIDE)
    height, width = (d if isinstance(d, int) else side for d in sides)
    if fit == "contain" and not all(isinstance(d, int) for d in sides):
        fit = "limit"
    usual = usual or (_STATISTICS if first else _HALVES)
    mean, std = _channels("mean", asked.mean, usual[0], channels), _channels("std", asked.std, usual[1], channels)
    return Picture(width, height, channels, first, mean, std, fit, asked.bgr)


def _channels(name: str, given: Sequence[float], usual: Sequence[float], channels: int) -> tuple[float, ...]:
    values = tuple(given or usual[:channels])
    if len(values) not in (1, channels):
        raise OptionError(f"--{name} has {len(values)} numbers, and the model's pictures have {channels} channel{'s' * (channels > 1)}",
                          hint="give one number" + f", or {channels}, one for each channel" * (channels > 1))
    if name == "std" and not all(values):
        raise OptionError("--std has a 0, and each channel is divided by its number", hint="give numbers, none of them 0")
    return values * channels if len(values) == 1 else values


def classes(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """A picture in, one row of scores out."""
    picture = picture_of(model.inputs, model.outputs, asked)
    if picture is None or model.outputs[0].dtype != "float32" or not _is_row(model.outputs[0].shape):
        return None
    return {"picture": picture}


def _is_row(shape: Sequence[int | str]) -> bool:
    """(n, classes), where the other sizes are 1 or that of the batch."""
    return len(shape) == 1 or all(d == 1 for d in shape[2:]) or (len(shape) == 4 and shape[1:3] == (1, 1))


def detection(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """A picture in, boxes out, in one of the forms that detectors have."""
    boxes = boxes_of(model.outputs, len(asked.labels), model.inputs[0].shape[:1]) if model.inputs else None
    if boxes is None:
        return None
    picture = picture_of(model.inputs, model.outputs, asked, "contain", _AS_THEY_ARE if boxes.form in ("rows", "finished") else None)
    return None if picture is None else {"picture": picture, "boxes": boxes}


def boxes_of(outputs: Sequence[TensorInfo], labels: int = 0, batch: tuple[int | str, ...] = ()) -> Boxes | None:
    """The form of boxes that a detector's outputs have; ``labels``: how many classes have names, ``batch``: the number of pictures, which is no number of
    boxes. None where there are no boxes."""
    shapes = [o.shape for o in outputs]
    lists = [k for k, s in enumerate(shapes) if 2 <= len(s) <= 3 and s[-1] == 4 and (len(s) == 3 or s[:1] != batch)]
    if lists and len(outputs) >= 2:
        return _lists(outputs, lists[0])
    shape = shapes[0]
    if len(shape) == 4 and shape[1] == 1 and 1 not in shape[2:]:
        return Boxes("map", "corners")
    if len(shape) != 3 or outputs[0].dtype != "float32":
        return None
    rows, columns = (d if isinstance(d, int) else 1 << 30 for d in shape[1:])
    if columns == _FINISHED and rows <= 1000 and labels != 1:
        return Boxes("finished", "corners")
    width, stands = (rows, True) if rows < columns else (columns, False)
    if not 5 <= width < 1 << 30 or rows == columns:
        return None
    return Boxes("rows", "centre", stands, labels == width - 5 if labels else not stands)


def _lists(outputs: Sequence[TensorInfo], boxes: int) -> Boxes | None:
    count = outputs[boxes].shape[-2]
    beside = {k: o for k, o in enumerate(outputs) if k != boxes and count in o.shape and o.shape[-1] != 4}
    wide = next((k for k, o in beside.items() if o.dtype == "float32" and len(o.shape) == len(outputs[boxes].shape) and o.shape[-1] != count), None)
    if wide is not None:  # scores of each class, as transformers for detection have them
        return Boxes("lists", "centre", places=(boxes, wide, None))
    whole = next((k for k, o in beside.items() if "int" in o.dtype), None)
    floats = [k for k, o in beside.items() if o.dtype == "float32"]
    if whole is not None and floats:
        return Boxes("lists", "corners", places=(boxes, floats[0], whole))
    if len(floats) == 2:  # TensorFlow's: boxes, classes, scores
        return Boxes("lists", "rows first", places=(boxes, floats[1], floats[0]))
    return Boxes("lists", "corners", places=(boxes, floats[0], None)) if floats else None


def classes_of_boxes(boxes: Boxes, outputs: Sequence[TensorInfo]) -> tuple[int, ...]:
    """How many classes a detector has; empty where its outputs do not say."""
    if boxes.form == "rows":
        width = outputs[0].shape[1 if boxes.columns else 2]
        return (width - 4, width - 5) if isinstance(width, int) else ()
    if boxes.form == "lists" and boxes.order == "centre":  # the last one of all may be none
        width = outputs[boxes.places[1]].shape[-1]
        return (width, width - 1) if isinstance(width, int) else ()
    return (1,) if boxes.form == "map" else ()


def recognition(model: Signature, asked: Asked) -> dict[str, Any] | None:
    """A picture of one line of text in, scores of letters from left to right out (connectionist temporal classification, Graves et al. 2006)."""
    picture = picture_of(model.inputs, model.outputs, asked, "line", _HALVES)
    shape = model.outputs[0].shape if model.outputs else ()
    if picture is None or len(shape) != 3 or model.outputs[0].dtype != "float32" or not isinstance(shape[2], int):
        return None
    sides = model.inputs[0].shape[2:4] if picture.channels_first else model.inputs[0].shape[1:3]
    height, width = sides
    if not isinstance(height, int) or not (asked.kind or isinstance(width, str) or width >= 2 * height):
        return None
    return {"picture": picture, "open": isinstance(width, str), "letters": letters(asked.labels, int(shape[2]))}


def letters(labels: Sequence[str], count: int) -> list[str]:
    """What each of so many classes stands for: nothing for the first, the blank. A dictionary may leave out the blank, and a space at its end. Raises
    OptionError for one of another length."""
    fitting = {count: list(labels), count - 1: ["", *labels], count - 2: ["", *labels, " "]}.get(len(labels)) if labels else None
    if fitting is None:
        raise OptionError(f"{len(labels)} letters are named, and the model has scores of {count}",
                          hint="give --labels, a text file with a letter in each line, without the blank; or --kind numbers")
    return ["", *fitting[1:]]
