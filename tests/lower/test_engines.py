# SPDX-License-Identifier: Apache-2.0
"""Engines of an accelerator wait for each other: the simulators in examples/ notice every wait that is left out, and addresses that no memory has."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.hostile.accelerators import network, vta

import roundel as rd
from roundel.intrinsics import accelerators
from roundel.ir import PrimFunc
from roundel.lower import lower
from roundel.lower.engines import UNBROKEN
from roundel.target import Target

FAULTS = {"a race between engines": lambda text: text.replace("{ sim_wait(from, to, number); }", "{ if (number != WHICH) sim_wait(from, to, number); }"),
          "an access outside of a memory": lambda text: text.replace("{ sim_load_data(to,", "{ sim_load_data(to + 32768,"),
          "engines that wait forever": lambda text: text.replace("{ sim_signal(from, to, number); }", "{ if (from != 0) sim_signal(from, to, number); }"),
          "a value that was never written": lambda text: text.replace("{ sim_clear(at, bytes); }", "{ }")}


def broken(source):
    """The chip of the example with another driver."""
    chip = accelerators.Accelerator("vta", source=source, begin="vta_begin", finish="vta_finish", share="vta_share", signal="vta_signal", wait="vta_wait",
                                    engines=vta.CHIP.engines, semaphores=16, statuses=vta.CHIP.statuses)
    chip.memories, chip.moves, chip.products, chip.operations = vta.CHIP.memories, vta.CHIP.moves, vta.CHIP.products, vta.CHIP.operations
    return chip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_left_out_is_noticed(fault):
    assert FAULTS[fault](vta.CHIP.source) != vta.CHIP.source
    rng = np.random.default_rng(0)
    weight = rng.integers(-128, 128, (64, 96, 3, 3)).astype(np.int8)
    chip = accelerators.register(broken(FAULTS[fault](vta.CHIP.source).replace("WHICH", "0")))
    try:
        model = rd.compile(network(weight, 96, 14, 1), target=Target("x86-64-v3 -device=vta"), threads=1)
    finally:
        accelerators.unregister(chip)
    with pytest.raises(rd.RoundelError, match=fault):
        model(rng.integers(0, 256, (1, 96, 14, 14)).astype(np.uint8))


def test_no_run_ends_between_the_instructions_of_a_kernel(monkeypatch):
    accelerators.register(vta.CHIP)
    try:
        module = rd.driver.prepare(network(np.ones((64, 64, 3, 3), np.int8), 64, 2400, 1), target=Target("x86-64-v3 -device=vta"))
        ends = []
        for attribute in (UNBROKEN, "another"):
            monkeypatch.setattr(sys.modules["roundel.lower.checkpoints"], "UNBROKEN", attribute)
            text = next(t for t in (f.script() for _, f in lower(module).items() if isinstance(f, PrimFunc)) if "vta_gemm" in t)
            ends.append("checkpoint" in text[text.index('"vta_begin"'):text.index('"vta_finish"')])
    finally:
        accelerators.unregister(vta.CHIP)
    assert ends == [False, True]  # where the attribute does not say so, one would
