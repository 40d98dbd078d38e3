# SPDX-License-Identifier: Apache-2.0
"""What every builder and runner does: programs that do harm are failures, and whatever comes after them is measured all the same."""

from __future__ import annotations

import re

from roundel.ir import tir
from roundel.script import tir as T
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target
from roundel.tune.measure import Argument, Effort, Failure, Job, Source, Timed

from ..programs import doubled

SIZE = 4096
JOB = Job("contract", ((Argument((SIZE,), "float32"), Argument((SIZE,), "float32")),))
QUICK = Effort(rounds=(3, 5), turn_seconds=2e-4)


@T.prim_func
def slow(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    for again in range(50):
        for i in range(4096):
            Y[i] = X[i] * T.float32(2) + T.float32(0) * Y[(i * 17 + again) % 4096]


@T.prim_func
def wrong(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    for i in range(4096):
        Y[i] = X[i] * T.float32(2.1)


@T.prim_func
def unfinished(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    for i in range(4000):
        Y[i] = X[i] * T.float32(2)


@T.prim_func
def aborts(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    T.evaluate(T.call_extern("int32", "abort"))


@T.prim_func
def crashes(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    T.evaluate(T.call_extern("int32", "raise", 11))


@T.prim_func
def never_ends(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    T.evaluate(T.call_extern("int32", "pause"))


@T.prim_func
def takes_all_memory(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    T.evaluate(T.call_extern("handle", "memset", T.call_extern("handle", "malloc", T.int64(8 << 30)), 1, T.int64(8 << 30)))


@T.prim_func
def no_instruction_of_arm(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    for i in range(4096):
        Y[i] = T.Cast("float32", T.call_llvm_pure_intrin("int32", "llvm.x86.sse42.crc32.32.8", T.uint32(2), T.int32(1), T.int8(2)))


@T.prim_func
def no_instruction(X: T.Buffer((4096,), "float32"), Y: T.Buffer((4096,), "float32")):
    for i in range(4096):
        Y[i] = T.Cast("float32", T.call_llvm_pure_intrin("int32", "llvm.aarch64.crc32b", T.uint32(2), T.int32(1), T.int32(2)))


HARMFUL = {wrong: "wrong result", unfinished: "wrong result", aborts: "crash: SIGABRT", crashes: "crash: SIGSEGV", never_ends: "time limit",
           takes_all_memory: "memory|crash", no_instruction: "build"}


def good(target: Target | None = None) -> tir.PrimFunc:
    """The program as the compiler schedules it."""
    return schedule_program(doubled(SIZE), target or Target.host())[0]


def check(builder, runner, target: Target | None = None) -> None:
    """Raises AssertionError for a builder or runner that does not keep the contract. ``target``: what the runner measures for, if it is not this machine."""
    target = target or Target.host()
    harmful = [no_instruction_of_arm if f is no_instruction and "aarch64" in target.triple else f for f in HARMFUL]
    funcs = [good(target), slow, *harmful, good(target)]
    artifacts = [f.result() for f in builder.build([Source(f) for f in funcs], target)]
    built = [a for a in artifacts if not isinstance(a, Failure)]
    times, outcomes = runner.race(JOB, built[0], built[0], built[1:], QUICK)
    assert len(outcomes) == len(built) - 1 and times.ratios == (1.0,) and 0 < times.seconds[0] < 0.1
    found = iter(outcomes)
    everything = [a if isinstance(a, Failure) else next(found) for a in artifacts[1:]]
    assert isinstance(everything[0], Timed) and everything[0].ratios[0] > 3 and everything[0].runs == 1
    assert isinstance(everything[-1], Timed) and 0.5 < everything[-1].ratios[0] < 2 and everything[-1].rounds >= 3
    for kind, outcome in zip(HARMFUL.values(), everything[1:], strict=False):
        assert isinstance(outcome, Failure) and re.match(kind, str(outcome)), (kind, outcome)
