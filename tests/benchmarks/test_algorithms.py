# SPDX-License-Identifier: Apache-2.0
"""The race of algorithms: which time stands for several calls, and among which layers one is timed."""

from __future__ import annotations

from benchmarks.algorithms import LIKE_IT, layers_like, typical
from benchmarks.layers import convolution

from roundel.ir import graph


def test_interrupted_calls_count_by_their_share_of_the_processor():
    alone, interrupted = (2.1, 2.0, 1.5), (2.1, 9.0, 4.5)
    assert typical([alone] * 5 + [interrupted] * 5) == 1.5
    assert typical([interrupted] * 5) == 2.1 * 4.5 / 9.0


def test_a_caller_that_rests_while_other_threads_work_makes_no_call_shorter():
    """With two threads the CPU time of the calling one is less than the kernels take wherever it has finished first."""
    assert typical([(0.1, 2.0, 1.5)] * 5, threads=2) == 1.5


def test_a_layer_is_timed_among_others_with_weights_of_their_own():
    bindings = [b.value for block in layers_like(convolution(16, 32, 6, 5, (3, 3)))["main"].body.blocks for b in block.bindings]
    weights = [b.args[1] for b in bindings if getattr(getattr(b, "op", None), "name", "") == "nn.conv2d"]
    assert all(type(w) is graph.Constant for w in weights)
    kernels = [w for w in weights if w.sinfo.shape[-1].value == 3]
    assert [[n.value for n in w.sinfo.shape] for w in kernels] == [[32, 16, 3, 3]] * (LIKE_IT + 1)
    assert len({w.data.key for w in weights}) == len(weights) == 2 * LIKE_IT + 1
