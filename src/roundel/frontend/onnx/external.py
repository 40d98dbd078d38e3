# SPDX-License-Identifier: Apache-2.0
"""The files of external data that an ONNX model names, found without parsing it (and so without importing onnx)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ...ir.errors import ModelError
from .folder import ModelFolder
from .wire import Data, FileBytes, fields

# Messages that hold tensors, at whatever depth: by message and number of field, the message that the field holds (onnx.proto).
_HELD: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_KEY, _VALUE = 1, 2  # fields of an entry of external data


def files(path: Path) -> list[str]:
    """Those locations at which there is a file that the model may name. Raises OSError as `locations` does."""
    folder, found = ModelFolder.of(path), []
    for location in locations(path):
        with suppress(ModelError):
            folder.find(location)
            found.append(location)
    return found


def locations(path: Path) -> list[str]:
    """Paths of external data as the model in a file writes them, relative to its folder, each once; none where the file is no model.
    Raises OSError when it cannot be read."""
    found: dict[str, None] = {}
    with path.open("rb") as file:
        data = FileBytes(file.fileno())
        todo = [("model", 0, len(data))]
        try:
            while todo:
                kind, begin, stop = todo.pop()
                if kind == "entry":
                    found.update(dict.fromkeys(_location(data, begin, stop)))
                else:
                    held = _HELD[kind]
                    todo += [(held[n], content, end) for n, _, content, end in fields(data, begin, stop) if n in held]
        except (IndexError, ValueError):
            return list(found)
    return list(found)


def _location(data: Data, begin: int, stop: int) -> list[str]:
    """The location that an entry of external data holds, if it is that entry."""
    entry = {number: bytes(data[content:end]) for number, _, content, end in fields(data, begin, stop)}  # type: ignore[arg-type]
    return [entry.get(_VALUE, b"").decode(errors="replace")] if entry.get(_KEY) == b"location" else []
