# SPDX-License-Identifier: Apache-2.0
"""What a few measurements tell of other candidates."""

import numpy as np

from roundel.strategy.candidates import Candidates, combinations
from roundel.tune.gaussian import Likeness, Posterior

TABLES = (Candidates(combinations({"rows": [1, 2, 4, 8], "lanes": [8, 16]})), Candidates({"unroll": np.asarray([1, 2, 4])}),
          Candidates({"fixed": np.asarray([3, 3])}))


def candidates(count, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, len(t), count) for t in TABLES], axis=1)


def test_tables_add_up_whatever_candidates_are_asked_for_at_once():
    measured, others, values = candidates(12, 0), candidates(200, 1), np.random.default_rng(2).standard_normal(12) / 10
    found = Posterior(Likeness(TABLES), measured, values)
    together = found.likeness(others, measured, found.parts) @ found._weights
    np.testing.assert_allclose(found.mean(others), together, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.mean(others), [found.mean(others[k : k + 1])[0] for k in range(len(others))], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.among(others).mean, together, rtol=1e-5, atol=1e-6)


def test_what_was_measured_is_expected_again_and_is_sure():
    measured, values = np.asarray([[0, 0, 0], [7, 2, 1]]), np.asarray([0.3, -0.3])
    found = Posterior(Likeness(TABLES), measured, values)
    np.testing.assert_allclose(found.mean(measured), values, atol=0.05)
    spread = found.among(np.asarray([[0, 0, 0], [4, 1, 0]])).spread
    assert spread[0] < 0.05 < spread[1]


def test_without_measurements_or_decisions_all_candidates_are_alike():
    others = candidates(5, 0)
    assert not Posterior(Likeness(TABLES), np.zeros((0, 3), dtype=int), np.zeros(0)).mean(others).any()
    assert len(set(Posterior(Likeness(()), candidates(2, 1), np.asarray([0.1, 0.2])).mean(others))) == 1
