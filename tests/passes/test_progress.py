# SPDX-License-Identifier: Apache-2.0
"""What a compilation says it does, to whoever listens."""

from __future__ import annotations

from roundel.ir.module import IRModule
from roundel.passes import run
from roundel.passes.progress import report, shown, watched


def test_passes_are_reported():
    def same_again(mod):
        return mod

    steps = []
    with watched(lambda *step: steps.append(step)):
        run(IRModule({}), [same_again])
        with shown("inside of a watched one nothing else is shown"):
            report("kernels", 2, 5)
    report("nobody listens")
    assert steps == [("same again", 0, 0), ("kernels", 2, 5)]
