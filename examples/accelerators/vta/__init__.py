# SPDX-License-Identifier: Apache-2.0
"""A chip like VTA for Roundel, with a simulator: ``rd.compile(model, target=Target("host -device=vta"))`` once `CHIP` is registered."""

from __future__ import annotations

from pathlib import Path

from roundel.intrinsics import accelerators
from roundel.script import tir as T

from ..simulated import STATUSES, simulated

FUNCTIONS = """
int32_t sim_begin(void); int32_t sim_finish(void);
void sim_share(const void *memory, int64_t bytes);
void sim_signal(int64_t from, int64_t to, int64_t number); void sim_wait(int64_t from, int64_t to, int64_t number);
void sim_load_data(int64_t to, const void *from, int64_t bytes); void sim_load_weights(int64_t to, const void *from, int64_t bytes);
void sim_store(void *to, int64_t from, int64_t bytes); void sim_clear(int64_t at, int64_t bytes);
void sim_gemm(int64_t a, int64_t b, int64_t c);
"""


@T.prim_func
def gemm(A: T.Buffer((16, 16), "uint8", scope="vta.data"), B: T.Buffer((16, 16), "int8", scope="vta.weights"),
         C: T.Buffer((16, 16), "int32", scope="vta.sums")):
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("gemm"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")


SIMULATOR = simulated("vta", Path(__file__).parent / "simulator.c", FUNCTIONS)
CHIP = accelerators.Accelerator("vta", source=SIMULATOR.c_source, begin="vta_begin", finish="vta_finish", share="vta_share", signal="vta_signal",
                                wait="vta_wait", engines=("load", "compute", "store"), semaphores=16, statuses=STATUSES)
for scope, size in (("vta.data", 32 << 10), ("vta.weights", 256 << 10), ("vta.sums", 128 << 10)):
    CHIP.memory(scope, size, alignment=16)
CHIP.loads("vta.data", "vta_load_data", engine="load", start=32, bytes_per_cycle=16)
CHIP.loads("vta.weights", "vta_load_weights", engine="load", start=32, bytes_per_cycle=16)
CHIP.stores("vta.sums", "vta_store", engine="store", start=32, bytes_per_cycle=16)
CHIP.clears("vta.sums", "vta_clear", engine="compute", start=1, bytes_per_cycle=64)
CHIP.computes("vta_gemm", gemm, engine="compute", cycles=16)
