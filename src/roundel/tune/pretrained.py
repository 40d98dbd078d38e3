# SPDX-License-Identifier: Apache-2.0
"""What measurements of other programs tell of a candidate, before any of its own program was measured: a model of trees that ships with Roundel.

It predicts by how much the model of the machine is wrong, like `learned`, from what candidates of different programs have in common: the sketch, decisions by
their names, and a few ratios of the program. ``python -m benchmarks pretrain`` measures, trains it, and validates it on programs that it has not seen.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dataclass import dataclass
from ..strategy.cost import least_cycles
from ..strategy.statements import number

if TYPE_CHECKING:
    from .space import Space

FILE = "pretrained.json"
OF_PROGRAMS = ("expected / least", "least cycles", "bytes / cycle", "constants", "vector bytes", "registers")
_log = logging.getLogger("roundel.tune")


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Trees, and which sketches and decisions their features stand for, by name, in order."""

    sketches: Sequence[str]
    decisions: Sequence[str]
    trees: Any

    def residual(self, space: Space, way: int, rows: np.ndarray) -> np.ndarray:
        """The logarithm of how many times longer candidates take than others of the program that are expected to take as long."""
        if not len(rows) or space.program is None:
            return np.zeros(len(rows))
        return self.trees.predict(features(space, way, rows, self.sketches, self.decisions))


def features(space: Space, way: int, rows: np.ndarray, sketches: Sequence[str], decisions: Sequence[str]) -> np.ndarray:
    """A row for each candidate: the number of its sketch (-1: none of these), ratios of the program, and the decisions (NaN where a sketch has none of the
    name)."""
    found = space.ways[way]
    columns, missing = largest(found.columns(rows)), np.full(len(rows), np.nan)
    expected = np.maximum(found.cycles(rows), 1.0)
    least, nbytes = space.program.once("least work", lambda: _least(space.program))
    target = space.program.target
    facts = (np.log(expected / least), *(np.full(len(rows), float(x)) for x in (math.log(least), math.log(nbytes / least), len(space.program.constants),
                                                                               target.vector_bytes, target.vector_registers)))
    sketch = np.full(len(rows), float(sketches.index(found.name)) if found.name in sketches else -1.0)
    return np.stack([sketch, *facts, *(columns[n].astype(float) if n in columns else missing for n in decisions)], axis=1)


def largest(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Decisions by their own names, where a program of several nests has one for each: the largest."""
    found: dict[str, Any] = {}
    for name, column in columns.items():
        own = name.rsplit(".", 1)[-1]
        found[own] = np.maximum(found[own], column) if own in found else column
    return found


def _least(program: Any) -> tuple[float, float]:
    """The least cycles and the bytes of a program's arrays; symbolic sizes count as one."""
    sizes = [math.prod(number(n, {}) for n in b.shape) * b.dtype.storage_bits / 8 for b in program.func.buffer_params]
    return max(least_cycles(program.func, program.target), 1.0), max(sum(sizes), 1.0)


@cache
def lightgbm() -> ModuleType | None:
    """The library of trees; None where it is not installed, which is told once."""
    try:
        import lightgbm as found
    except (ImportError, OSError) as error:
        _log.warning("tuning begins without what other programs tell: %s (pip install 'roundel[tune]')", error)
        return None
    return found


@cache
def shipped() -> Pretrained | None:
    """The model that ships with Roundel; None where its library is not installed or the file cannot be read."""
    library, path = lightgbm(), resources.files(__package__) / FILE
    if library is None or not path.is_file():
        return None
    try:
        found = json.loads(path.read_text())
        return Pretrained(found["sketches"], found["decisions"], library.Booster(model_str=found["trees"]))
    except (ValueError, KeyError, library.basic.LightGBMError) as error:
        _log.warning("the pretrained model cannot be read, and tuning goes on without it: %s", error)
        return None
