# SPDX-License-Identifier: Apache-2.0
"""What measurements of a program tell of its other candidates: by how much the model of the machine is wrong.

What is learned is the residual, the logarithm of the measured time over the expected one, so nothing has to be learned where the model is right, and
one measurement already tells how all candidates of a sketch are to be judged. Where the residual is known, it is predicted from decisions by
gradient-boosted trees (Chen et al., 2018, https://arxiv.org/abs/1805.08166, which learn times from features of loops), on top of what other programs tell
(`pretrained`).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from types import ModuleType
from typing import Literal

import numpy as np

from .pretrained import Pretrained, shipped
from .space import Candidate, Space

ENOUGH = 8       # measurements that are worth trees
CAUTION = 2.0    # measurements of a sketch that count as much as that it behaves like all others
TREES = {"objective": "l2", "num_leaves": 15, "learning_rate": 0.15, "min_data_in_leaf": 3, "min_data_in_bin": 1, "lambda_l2": 1.0, "verbosity": -1,
         "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 0}
ROUNDS = 60
FAILED = np.log(4.0)  # the residual of a candidate that failed: what is like it is not tried soon

_log = logging.getLogger("roundel.tune")


@functools.cache
def lightgbm() -> ModuleType | None:
    """The library of trees; None where it is not installed, which is told once."""
    try:
        import lightgbm as found
    except (ImportError, OSError) as error:
        _log.warning("tuning goes by the model of the machine alone: %s (pip install 'roundel[tune]')", error)
        return None
    return found


class Learned:
    """The residual of the candidates of a space. ``uses_trees``: whether decisions are looked at, and not only the sketch. ``before``: what is known before
    anything of the space was measured (default: the model that ships, None: nothing); what is measured corrects it."""

    def __init__(self, space: Space, uses_trees: bool = True, before: Pretrained | Literal["shipped"] | None = "shipped") -> None:
        self.space = space
        self.uses_trees = uses_trees
        self.before = (shipped() if uses_trees else None) if before == "shipped" else before
        self.names = sorted({n for way in space.ways for t in way.tables for n in t.columns})
        self._features: list[np.ndarray] = []
        self._residuals: list[float] = []
        self._offsets = np.zeros(len(space.ways))
        self._trees: object | None = None
        self._fresh = True

    def __len__(self) -> int:
        return len(self._residuals)

    def add(self, candidate: Candidate, seconds: float | None) -> None:
        """A measurement; None for a candidate that failed."""
        rows = np.asarray([candidate.rows], dtype=np.int64).reshape(1, -1)
        self._features.append(self.features(candidate.way, rows)[0])
        expected = max(self.space.cycles(candidate), 1.0)
        known = self._before(candidate.way, rows)[0]
        self._residuals.append(float("nan") if seconds is None else float(np.log(seconds / expected) - known))
        self._fresh = False

    def residual(self, way: int, rows: np.ndarray) -> np.ndarray:
        """What is to be added to the logarithm of the expected cycles of candidates to have that of their seconds, but for a constant."""
        self._learn()
        offset = self._offsets[way] + self._before(way, rows)
        if self._trees is None or not len(rows):
            return offset
        return offset + self._trees.predict(self.features(way, rows))

    def _before(self, way: int, rows: np.ndarray) -> np.ndarray:
        return self.before.residual(self.space, way, rows) if self.before is not None else np.zeros(len(rows))

    def features(self, way: int, rows: np.ndarray) -> np.ndarray:
        """A row for each candidate: the sketch, the expected cycles, and the decisions (NaN where a sketch has none of the name)."""
        found = self.space.ways[way]
        columns = found.columns(rows)
        missing = np.full(len(rows), np.nan)
        own = [columns[n].astype(float) if n in columns else missing for n in self.names]
        expected = np.log(np.maximum(found.cycles(rows), 1.0))
        return np.stack([np.full(len(rows), float(way)), expected, *own], axis=1)

    def _learn(self) -> None:
        if self._fresh:
            return
        self._fresh = True
        features, residuals = np.stack(self._features), np.asarray(self._residuals)
        ways = features[:, 0].astype(int)
        known = np.isfinite(residuals)
        middle = float(np.median(residuals[known])) if known.any() else 0.0
        targets = np.where(known, residuals, middle + FAILED)
        for k in range(len(self._offsets)):
            own = targets[ways == k]
            self._offsets[k] = middle + float((own - middle).sum() / (len(own) + CAUTION))
        self._trees = self._grown(features, targets - self._offsets[ways])

    def _grown(self, features: np.ndarray, targets: np.ndarray) -> object | None:
        library = lightgbm() if self.uses_trees and len(targets) >= ENOUGH else None
        if library is None:
            return None
        data = library.Dataset(features, targets, categorical_feature=[0], params={"min_data_in_bin": 1, "verbosity": -1})
        return library.train(TREES, data, ROUNDS)


def summary(learned: Learned, pairs: Sequence[tuple[Candidate, float]]) -> float:
    """How well the order of measured candidates is predicted: the share of pairs that are in the right order (0.5 is chance)."""
    scores = [float(np.log(max(learned.space.cycles(c), 1.0)) + learned.residual(c.way, np.asarray([c.rows], dtype=np.int64).reshape(1, -1))[0])
              for c, _ in pairs]
    right = total = 0
    for i in range(len(pairs)):
        for j in range(i):
            if pairs[i][1] != pairs[j][1]:
                total += 1
                right += (scores[i] < scores[j]) == (pairs[i][1] < pairs[j][1])
    return right / total if total else 0.5
