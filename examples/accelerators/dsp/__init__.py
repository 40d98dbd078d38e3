# SPDX-License-Identifier: Apache-2.0
"""A vector DSP for Roundel, with a simulator: one memory of eight banks for everything, DMA in and out beside a vector unit."""

from __future__ import annotations

from pathlib import Path

from roundel.intrinsics import accelerators
from roundel.script import tir as T

from ..simulated import STATUSES, simulated

TCM = "dsp.tcm"
FUNCTIONS = """
int32_t sim_begin(void); int32_t sim_finish(void);
void sim_share(const void *memory, int64_t bytes);
void sim_signal(int64_t from, int64_t to, int64_t number); void sim_wait(int64_t from, int64_t to, int64_t number);
void sim_fetch(int64_t to, const void *from, int64_t bytes); void sim_drain(void *to, int64_t from, int64_t bytes);
void sim_zero(int64_t at, int64_t bytes); void sim_multiply(int64_t a, int64_t b, int64_t c);
"""


@T.prim_func
def multiply(A: T.Buffer((8, 4), "uint8", scope=TCM), B: T.Buffer((64, 4), "int8", scope=TCM), C: T.Buffer((8, 64), "int32", scope=TCM)):
    with T.block("root"):
        T.reads(C[0:8, 0:64], A[0:8, 0:4], B[0:64, 0:4])
        T.writes(C[0:8, 0:64])
        for i, j, k in T.grid(8, 64, 4):
            with T.block("multiply"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")


SIMULATOR = simulated("dsp", Path(__file__).parent / "simulator.c", FUNCTIONS)
CHIP = accelerators.Accelerator("dsp", source=SIMULATOR.c_source, begin="dsp_begin", finish="dsp_finish", share="dsp_share", signal="dsp_signal",
                                wait="dsp_wait", engines=("fetch", "vector", "drain"), semaphores=16, statuses=STATUSES)
CHIP.memory(TCM, 256 << 10, alignment=16, banks=8)
CHIP.loads(TCM, "dsp_fetch", engine="fetch", start=64, bytes_per_cycle=32)
CHIP.stores(TCM, "dsp_drain", engine="drain", start=64, bytes_per_cycle=32)
CHIP.clears(TCM, "dsp_zero", engine="vector", start=1, bytes_per_cycle=64)
CHIP.computes("dsp_multiply", multiply, engine="vector", cycles=8)
