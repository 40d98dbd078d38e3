# SPDX-License-Identifier: Apache-2.0
"""The constants of a module in a file beside its script: an ``.npz`` of raw bytes by key, with shapes and dtypes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .constants import ConstData, lookup, restored
from .dtype import DType
from .errors import RoundelError
from .graph.expr import Constant
from .tir.expr import Call, StringImm
from .visit import walk

_INDEX = "index"  # of the file: keys, shapes and dtypes as JSON


def constants_of(node: Any) -> dict[str, ConstData]:
    """Constants in graph functions and those that host functions name, by key; raises KeyError where one is gone."""
    held: Mapping[str, ConstData] = getattr(node, "constants", None) or {}
    found: dict[str, ConstData] = {}
    for n in walk(node):
        if type(n) is Constant:
            found[n.data.key] = n.data
        elif type(n) is Call and n.op == "constant_ptr" and type(n.args[0]) is StringImm:
            key = n.args[0].value
            found[key] = held[key] if key in held else lookup(key)
    return found


def save_constants(path: str | Path, constants: Mapping[str, ConstData]) -> None:
    """Write constants to exactly this file."""
    index = {key: [list(c.shape), str(c.dtype)] for key, c in constants.items()}
    arrays = {key.removeprefix("sha:"): c.numpy().reshape(-1).view(np.uint8) if c.numpy().size else np.empty(0, np.uint8) for key, c in constants.items()}
    with Path(path).open("wb") as stream:
        np.savez(stream, **arrays, **{_INDEX: np.array(json.dumps(index))})  # type: ignore[arg-type]


def load_constants(path: str | Path) -> dict[str, ConstData]:
    """What ``save_constants`` wrote; scripts that name these constants can be read while the result lives."""
    try:
        with np.load(path) as file:
            index = json.loads(str(file[_INDEX]))
            return {
                key: restored(key, file[key.removeprefix("sha:")].view(DType(dtype).numpy).reshape(shape), DType(dtype))
                for key, (shape, dtype) in index.items()
            }
    except (OSError, KeyError, ValueError) as e:
        raise RoundelError(f"constants cannot be read from {path}", why=str(e), hint="write the file by mod.script(constants=...)") from None
