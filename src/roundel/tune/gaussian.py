# SPDX-License-Identifier: Apache-2.0
"""What a few measurements tell of many candidates of a sketch, and how surely: a Gaussian process over their decisions.

Two values of a decision are alike as far as they are near each other on a scale of logarithms, and half of what is known of a value is known of it alone.
What is expected has three parts: one that all candidates share, one for each value of each decision, and one for each table's decisions together, alike
where most of them are. How large these parts are is what makes the measurements most likely (Rasmussen and Williams, Gaussian Processes for
Machine Learning, 2006, sections 2.2 and 5.4.1).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..ir.dataclass import dataclass
from ..strategy.candidates import Candidates

NOISE = (0.015, 0.05)  # of the logarithm of a measured time: what is tried, the first is assumed as long as little is known
SHARED = 0.3        # standard deviation of what all candidates of a sketch have in common
PARTS = (0.05, 0.15, 0.4)  # the same of what values of decisions do, and of what decisions do together: those that are tried
ASSUMED = (0.15, 0.15)     # ... and those that are assumed as long as little is known
ENOUGH = 8          # measurements that tell how large the parts are
APART = 0.5         # how little alike what differs in one decision is: the logarithm
OCTAVE = 4          # values on a scale of logarithms that count as different ones


@dataclass(frozen=True, eq=False)
class Likeness:
    """How much candidates of a sketch are like each other: ``tables`` are its decisions."""

    tables: Sequence[Candidates]

    @cached_property
    def _points(self) -> list[tuple[np.ndarray, int]]:
        """Of each table that decides something: a point for each row, such that the product of two of them is 1 where they are equal; and how many
        decisions there are."""
        found = []
        for table in self.tables:
            parts = [_points_of(c) for c in table.columns.values() if len(table) and c.min() < c.max()]
            points = np.concatenate(parts, axis=1) / np.sqrt(len(parts)) if parts else np.zeros((len(table), 0), dtype=np.float32)
            found.append((points, len(parts)))
        return found

    def __call__(self, some: np.ndarray, others: np.ndarray, parts: tuple[float, float]) -> np.ndarray:
        """The covariance of what is expected of candidates, given as rows of the tables: a row for each of ``some``, a column for each of ``others``."""
        found = np.full((len(some), len(others)), SHARED**2)
        for k in range(len(self._points)):
            found += self.of_table(k, some[:, k], others[:, k], parts)
        return found

    def of_table(self, k: int, some: np.ndarray, others: np.ndarray, parts: tuple[float, float]) -> np.ndarray:
        """What one table's decisions add to it, of its rows."""
        points, count = self._points[k]
        if not count:
            return np.zeros((len(some), len(others)))
        decisions, tables = sum(n for _, n in self._points), sum(n > 0 for _, n in self._points)
        alike = points[some] @ points[others].T
        return parts[0] ** 2 * count / decisions * alike + parts[1] ** 2 / tables * np.exp(APART * count * (alike - 1.0))

    def variance(self, parts: tuple[float, float]) -> float:
        """Of what is expected of any candidate."""
        return SHARED**2 + (parts[0] ** 2 + parts[1] ** 2 if any(n for _, n in self._points) else 0.0)


def _points_of(column: np.ndarray) -> np.ndarray:
    """A point for each value of a decision, as far apart as the values differ."""
    scaled = np.round(OCTAVE * np.log2(2.0 + np.maximum(column, -1))) / OCTAVE if len(np.unique(column)) > 64 else np.log2(2.0 + np.maximum(column, -1))
    values, at = np.unique(scaled, return_inverse=True)
    alike = 0.5 * np.eye(len(values)) + 0.5 * np.exp(-0.5 * (values[:, None] - values[None, :]) ** 2)
    return np.linalg.cholesky(alike).astype(np.float32)[at.reshape(-1)]


class Posterior:
    """What ``values`` that were found for candidates, given as ``rows`` of the tables, tell of others."""

    def __init__(self, likeness: Likeness, rows: np.ndarray, values: np.ndarray) -> None:
        self.likeness, self.rows = likeness, rows
        tried = itertools.product(itertools.product(PARTS, PARTS), NOISE) if len(values) >= ENOUGH else [(ASSUMED, NOISE[0])]
        found = ((p, noise, self._solved(p, noise, values)) for p, noise in tried)
        self.parts, self.noise, (self._root, half) = max(found, key=lambda x: _likelihood(*x[2]))
        self._weights = np.linalg.solve(self._root.T, half)

    def _solved(self, parts: tuple[float, float], noise: float, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        root = np.linalg.cholesky(self.likeness(self.rows, self.rows, parts) + noise**2 * np.eye(len(values)))
        return root, np.linalg.solve(root, values)

    def mean(self, rows: np.ndarray) -> np.ndarray:
        """What is expected of candidates: each row of each table is looked at once, however many candidates have it."""
        found = np.full(len(rows), SHARED**2 * self._weights.sum())
        for k in range(len(self.likeness.tables)):
            own, at = np.unique(rows[:, k], return_inverse=True)
            found += (self.likeness.of_table(k, own, self.rows[:, k], self.parts) @ self._weights)[at]
        return found

    def among(self, rows: np.ndarray) -> Among:
        """The same of some of which several are to be measured."""
        between = self.likeness(self.rows, rows, self.parts)
        known = np.linalg.solve(self._root, between) if len(self.rows) else between
        return Among(self, rows, between.T @ self._weights, known)


class Among:
    """Candidates of which some are to be measured: ``mean`` and ``spread`` say what is expected of each and how surely; `expect` counts one as measured."""

    def __init__(self, posterior: Posterior, rows: np.ndarray, mean: np.ndarray, known: np.ndarray) -> None:
        self.posterior, self.rows, self.mean = posterior, rows, mean
        self._known = known  # its columns' products are what the measurements take away from the covariance
        self._variance = posterior.likeness.variance(posterior.parts) - (known**2).sum(axis=0)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviations."""
        return np.sqrt(np.maximum(self._variance, 1e-12))

    def expect(self, k: int) -> None:
        """Candidate ``k`` will be measured, and takes what is expected of it: less is to be learned of those that are like it."""
        row = self.posterior.likeness(self.rows[k : k + 1], self.rows, self.posterior.parts)[0] - self._known[:, k] @ self._known
        row /= np.sqrt(max(self._variance[k], 0.0) + self.posterior.noise**2)
        self._known, self._variance = np.concatenate([self._known, row[None]]), self._variance - row**2


def _likelihood(root: np.ndarray, half: np.ndarray) -> float:
    """The logarithm of how likely values are, but for a constant."""
    return float(-0.5 * half @ half - np.log(np.diag(root)).sum())
