# SPDX-License-Identifier: Apache-2.0
"""The race of algorithms: which time stands for several calls."""

from __future__ import annotations

from benchmarks.algorithms import typical


def test_interrupted_calls_count_by_their_share_of_the_processor():
    alone, interrupted = (2.1, 2.0, 1.5), (2.1, 9.0, 4.5)
    assert typical([alone] * 5 + [interrupted] * 5) == 1.5
    assert typical([interrupted] * 5) == 2.1 * 4.5 / 9.0


def test_a_caller_that_rests_while_other_threads_work_makes_no_call_shorter():
    """With two threads the CPU time of the calling one is less than the kernels take wherever it has finished first."""
    assert typical([(0.1, 2.0, 1.5)] * 5, threads=2) == 1.5
