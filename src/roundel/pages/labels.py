# SPDX-License-Identifier: Apache-2.0
"""Names of classes, and letters: from a file, from the metadata of an ONNX model, or from ``config.json`` beside it."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..ir.errors import OptionError

_MOST = 1 << 20  # bytes of a file of labels
_KEYS = ("character", "names", "labels", "classes")  # under which programs that export models keep them


def labels_for(model: Any, given: str | Path | None) -> tuple[str, ...]:
    """The lines of the file ``given``, else what the model's own file says, else what ``config.json`` beside it says; empty where nothing says any. Raises
    OptionError for a file that is none."""
    if given is not None:
        return tuple(_lines(Path(given)))
    if not isinstance(model, str | Path) or Path(model).suffix != ".onnx":
        return ()
    return tuple(_of_metadata(Path(model)) or _of_config(Path(model).with_name("config.json")))


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _MOST or not path.is_file():
            raise OptionError(f"{path} is no file of labels", hint="a text file with the name of one class in each line")
        found = _names(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise OptionError(f"{path} is no text", hint="a file of labels has the name of one class in each line, as UTF-8") from None
    except (OSError, ValueError) as error:
        raise OptionError(f"{path} cannot be read", why=getattr(error, "strerror", None) or str(error)) from None
    if not found:
        raise OptionError(f"{path} has no labels", hint="a file of labels has the name of one class in each line")
    return found


def _names(text: str) -> list[str]:
    """The lines but empty ones at the end; an empty one before is that of a class without a name."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _of_metadata(path: Path) -> list[str]:
    """A list in lines, or as Python or JSON writes lists and dictionaries by number."""
    import onnx

    with suppress(Exception):  # what is wrong with the file is told by who compiles it
        told = {p.key: p.value for p in onnx.load(str(path), load_external_data=False).metadata_props}
        text = next((told[key] for key in _KEYS if key in told), "")
        if text[:1] not in ("[", "{"):
            return _names(text)
        return _named(ast.literal_eval(text))
    return []


def _of_config(path: Path) -> list[str]:
    with suppress(OSError, ValueError, AttributeError, RecursionError):
        return _named(json.loads(path.read_text(encoding="utf-8")).get("id2label"))
    return []


def fitting(labels: tuple[str, ...], counts: tuple[int, ...], given: str | Path | None) -> tuple[str, ...]:
    """Names for a model that has one of these numbers of classes (none: it is not known); none where those that were found fit no such model. Raises
    OptionError where the file ``given`` does not fit."""
    if not labels or not counts or len(labels) in counts:
        return labels
    if given is not None:
        raise OptionError(f"{given} names {len(labels)} classes, and the model has {' or '.join(map(str, counts))}",
                          hint="a file of labels has the name of one class in each line, in the order of the scores")
    return ()


def _named(found: Any) -> list[str]:
    """A list, or a dictionary from 0, 1, 2 and so on."""
    if isinstance(found, dict):
        by_number = {int(k): v for k, v in found.items()}
        found = [by_number.get(k) for k in range(len(by_number))]
    return [str(v) for v in found] if isinstance(found, list) else []
