# SPDX-License-Identifier: Apache-2.0
"""What measurements of a program tell of its other candidates: by how much the model of the machine is wrong.

What is learned is the residual, the logarithm of the measured time over the expected one, so nothing has to be learned where the model is right, and
one measurement already tells how all candidates of a sketch are to be judged. It is learned from decisions by a Gaussian process (`gaussian`), which also
says how sure it is, on top of what other programs tell (`pretrained`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .gaussian import Among, Likeness, Posterior
from .pretrained import Pretrained, shipped
from .space import Candidate, Space

FAILED = np.log(4.0)  # the residual of a candidate that failed: what is like it is not tried soon
MOST = 384            # measurements of a sketch that are learned from: the fastest half and the last


class Learned:
    """The residual of the candidates of a space. ``uses_decisions``: whether these are looked at, and not only the sketch. ``before``: what is known before
    anything of the space was measured (default: the model that ships, None: nothing); what is measured corrects it."""

    def __init__(self, space: Space, uses_decisions: bool = True, before: Pretrained | Literal["shipped"] | None = "shipped") -> None:
        self.space = space
        self.before = (shipped() if uses_decisions else None) if before == "shipped" else before
        self._likeness = [Likeness(way.tables if uses_decisions else ()) for way in space.ways]
        self._residuals: list[dict[tuple[int, ...], float]] = [{} for _ in space.ways]
        self._posteriors: dict[int, Posterior] = {}

    def __len__(self) -> int:
        return sum(map(len, self._residuals))

    def add(self, candidate: Candidate, seconds: float | None) -> None:
        """What was measured of a candidate, now or again; None where it failed."""
        way, rows = candidate.way, np.asarray([candidate.rows], dtype=np.int64).reshape(1, -1)
        expected = max(self.space.cycles(candidate), 1.0)
        self._residuals[way][candidate.rows] = float("nan") if seconds is None else float(np.log(seconds / expected) - self._before(way, rows)[0])
        self._posteriors.clear()

    def residual(self, way: int, rows: np.ndarray) -> np.ndarray:
        """What is to be added to the logarithm of the expected cycles of candidates to have that of their seconds, but for a constant."""
        return self._middle + self._before(way, rows) + self._posterior(way).mean(rows)

    def among(self, way: int, rows: np.ndarray) -> Among:
        """How sure that is, for candidates of which several are to be measured; its ``mean`` is the residual."""
        found = self._posterior(way).among(rows)
        found.mean = found.mean + self._middle + self._before(way, rows)
        return found

    def _before(self, way: int, rows: np.ndarray) -> np.ndarray:
        return self.before.residual(self.space, way, rows) if self.before is not None else np.zeros(len(rows))

    @property
    def _middle(self) -> float:
        """Of all that was measured: the model may count in other units."""
        known = [r for own in self._residuals for r in own.values() if r == r]
        return float(np.median(known)) if known else 0.0

    def _posterior(self, way: int) -> Posterior:
        if way not in self._posteriors:
            found = np.asarray(list(self._residuals[way].values()), dtype=float)
            values = np.where(np.isfinite(found), found - self._middle, FAILED)
            rows = np.asarray(list(self._residuals[way]), dtype=np.int64).reshape(len(values), len(self.space.ways[way].tables))
            if len(values) > MOST:
                times = values + np.log(np.maximum(self.space.ways[way].cycles(rows), 1.0))
                kept = np.unique([*np.argsort(times)[: MOST // 2], *range(len(values) - MOST // 2, len(values))])
                rows, values = rows[kept], values[kept]
            self._posteriors[way] = Posterior(self._likeness[way], rows, values)
        return self._posteriors[way]
