# SPDX-License-Identifier: Apache-2.0
"""Searches on spaces whose times are known: nothing is measured twice, the same seed gives the same, and the default search finds what is fast."""

import numpy as np
import pytest

from roundel.ir.errors import OptionError
from roundel.tune.learned import Learned
from roundel.tune.search import SEARCHES, Evolutionary, Exhaustive, Random, Replay, Search, search_named

from ..programs import space, table


def misjudged(seed=0):
    """A space whose expectations are wrong by a factor that depends on two decisions, and the true times."""
    rng = np.random.default_rng(seed)
    factors = {"rows": rng.uniform(0.6, 1.8, 12), "unroll": rng.uniform(0.6, 1.8, 6)}
    found = space(table(lambda c: 1000 + 50 * np.abs(c["rows"] - 7) + 30 * c["vectors"], rows=range(12), vectors=range(8), unroll=range(6)),
                  table(lambda c: 1300 + 100 * c["tile"], tile=range(20)))

    def seconds(candidate):
        choice = found.choice(candidate)
        wrong = factors["rows"][choice["rows"]] * factors["unroll"][choice["unroll"]] if candidate.way == 0 else 0.9
        return found.cycles(candidate) * wrong * 1e-9

    return found, seconds


def run(search, seconds, trials, batch=8):
    times = []
    while len(times) < trials and (proposed := search.propose(min(batch, trials - len(times)))):
        for candidate in proposed:
            times.append(seconds(candidate))
            search.learn(candidate, times[-1])
    return times


@pytest.mark.parametrize("kind", [Random, Exhaustive, Evolutionary])
def test_no_candidate_is_proposed_twice_and_all_are_in_the_end(kind):
    found, seconds = misjudged()
    search, proposed = kind(found), []
    while batch := search.propose(50):
        proposed += batch
        for candidate in batch:
            search.learn(candidate, seconds(candidate))
    assert len(proposed) == len(set(proposed)) == found.size


@pytest.mark.parametrize("kind", [Random, Evolutionary])
def test_the_same_seed_gives_the_same_proposals(kind):
    found, seconds = misjudged()
    assert run(kind(found, 3), seconds, 40) == run(kind(found, 3), seconds, 40)


def test_what_was_measured_before_is_not_proposed():
    found, seconds = misjudged()
    search = Evolutionary(found)
    first = search.propose(8)
    again = Evolutionary(found)
    for candidate in first:
        again.learn(candidate, seconds(candidate))
    assert not set(first) & set(again.propose(8))


@pytest.mark.parametrize("seed", range(4))
def test_the_default_search_finds_what_random_search_needs_five_times_the_trials_for(seed):
    found, seconds = misjudged(seed)
    best = min(map(seconds, found))
    evolved = min(run(Evolutionary(found, seed), seconds, 64))
    assert evolved <= 1.05 * best
    assert evolved <= min(run(Random(found, seed), seconds, 320))


def test_the_search_learns_which_decisions_are_misjudged():
    found, seconds = misjudged(1)
    search = Evolutionary(found, 1)
    run(search, seconds, 100)
    rows = found.ways[0].all()
    rows = found.ways[0].all()
    wrong = np.log([seconds(c) * 1e9 for c in found if c.way == 0]) - np.log(found.ways[0].cycles(rows))
    assert np.corrcoef(search.learned.residual(0, rows), wrong)[0, 1] > 0.7


def test_without_decisions_the_offset_of_each_sketch_is_learned():
    found, _ = misjudged()
    learned = Learned(found, uses_decisions=False)
    for candidate in [c for c in found if c.way or c.rows[0] % 20 == 0]:
        learned.add(candidate, found.cycles(candidate) * (3e-9 if candidate.way else 1e-9))
    one = np.zeros((1, 1), dtype=np.int64)
    assert 0.7 < float(learned.residual(1, one)[0] - learned.residual(0, one)[0]) < 1.2


def test_failures_are_avoided():
    found = space(table(lambda c: 100 + c["x"], x=range(40), y=range(4)))
    search = Evolutionary(found)
    for _ in range(3):
        for candidate in search.propose(8):
            search.learn(candidate, None if found.choice(candidate)["y"] < 3 else 1e-7)
    late = [found.choice(c)["y"] for c in search.propose(8)]
    assert late.count(3) >= 5


def test_replay_proposes_what_is_known_the_fastest_first():
    found, seconds = misjudged()
    search = Replay(found)
    known = list(found)[:30]
    for candidate in known:
        search.learn(candidate, seconds(candidate))
    order = [*search.propose(10), *search.propose(100)]
    assert order == sorted(known, key=seconds) and search.propose(10) == []


def test_a_search_of_ones_own_is_a_class():
    class Backwards(Search):
        def propose(self, count):
            return [c for c in reversed(list(self.space)) if c not in self.seen][:count]

    assert search_named(Backwards) is Backwards and set(SEARCHES) == {"evolutionary", "random", "exhaustive", "replay"}
    found, seconds = misjudged()
    assert len(run(Backwards(found), seconds, 10, batch=5)) == 10
    with pytest.raises(OptionError, match="no search"):
        search_named("magic")
