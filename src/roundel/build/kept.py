# SPDX-License-Identifier: Apache-2.0
"""A model in the cache together with what it was linked from, so that it can be linked again: under another name, weights embedded or not.

In the entry: ``model.so``, its weights in ``model.weights`` (where it has any), and ``model.parts``, a zip file of the generated
objects and of what the linker must know besides.
"""

from __future__ import annotations

import io
import json
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

from ..ir.cache_entry import Entry
from ..runtime.integrity import DIGEST
from ..runtime.metadata import FunctionInfo
from ..target import Target
from .build import Built
from .link import link
from .weights import Pieces

_FACTS = "link.json"
_CHUNK = 64 << 20  # bytes of weights that are read at once


def keep(built: Built, folder: Path) -> None:
    """Write the model into a folder. Raises BuildError where it cannot be shipped, OSError where the disk refuses."""
    built.save(folder / "model.so", side_file=True)
    with zipfile.ZipFile(folder / "model.parts", "w") as parts:
        parts.writestr(_FACTS, json.dumps({"functions": [f.info.to_json() for f in built.functions], "nbytes": built.nbytes, "levels": built.levels,
                                                "target": None if built.target is None else str(built.target), "metadata": built.metadata}))
        for index, content in enumerate(built.objects):
            parts.writestr(f"{index}.o", content)


def link_again(entry: Entry, out: str | Path, *, header: bool = False, **options: Any) -> Path:
    """Link what ``keep`` wrote for the target that it was compiled for; ``header`` and ``options`` are those of ``Built.save``. Raises BuildError, OSError."""
    with _parts(entry) as parts:
        facts = json.loads(parts.read(_FACTS))
        objects = [parts.read(name) for name in parts.namelist() if name != _FACTS]
    weights = _weights(entry, facts["nbytes"]) if facts["nbytes"] else None
    infos = [FunctionInfo.from_json(f) for f in facts["functions"]]
    target = Target(facts["target"]) if facts.get("target") else None
    return link(objects, weights, out, target, functions=[i.name for i in infos], header=infos if header else (),
                levels=facts["levels"], **options)


def described(entry: Entry) -> tuple[FunctionInfo, dict[str, Any], int]:
    """The function that a model runs, its metadata, and the bytes of its weights, of what ``keep`` wrote. Raises BuildError, OSError."""
    with _parts(entry) as parts:
        facts = json.loads(parts.read(_FACTS))
    return FunctionInfo.from_json(facts["functions"][0]), facts["metadata"], facts["nbytes"]


def _parts(entry: Entry) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(_content(entry, "model.parts", 0, entry.size("model.parts"))))


def _weights(entry: Entry, nbytes: int) -> Pieces:
    digest = _content(entry, "model.weights", nbytes, nbytes + DIGEST).decode(errors="replace")
    starts = range(0, nbytes, _CHUNK)
    return Pieces(nbytes, [(k, partial(_content, entry, "model.weights", k, min(k + _CHUNK, nbytes))) for k in starts], digest)


def _content(entry: Entry, name: str, begin: int, end: int) -> bytes:
    return b"".join(entry.blocks(name, begin, end))
