# SPDX-License-Identifier: Apache-2.0
"""The core's multiply-add peak, measured: independent chains of ``fma`` on vectors of the target's width, in registers.

    python benchmarks/tracer/peak.py
"""

from __future__ import annotations

import ctypes
import time
from statistics import median

import llvmlite.binding as llvm


def fma_kernel(lanes: int, chains: int) -> str:
    """LLVM text of ``fma(n, out)``: n rounds of one multiply-add in each chain."""
    t = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{c} = phi {t} [ zeroinitializer, %entry ], [ %b{c}, %loop ]" for c in range(chains))
    fmas = "\n".join(f"  %b{c} = call {t} @llvm.fma.v{lanes}f32({t} %x, {t} %y, {t} %a{c})" for c in range(chains))
    sums = "\n".join(f"  %s{c + 1} = fadd {t} %s{c}, %b{c}" for c in range(1, chains))
    return f"""
declare {t} @llvm.fma.v{lanes}f32({t}, {t}, {t})
define void @fma(i64 %n, ptr %out) {{
entry:
  %x = load volatile {t}, ptr %out, align 4
  %y = load volatile {t}, ptr %out, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
{phis}
{fmas}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %loop, label %done
done:
  %s1 = fadd {t} %b0, zeroinitializer
{sums}
  store {t} %s{chains}, ptr %out, align 4
  ret void
}}
"""


def host_machine() -> llvm.TargetMachine:
    """LLVM's target machine of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic", codemodel="small"
    )


def fma_peak(vector_bits: int, *, rounds: int = 400_000, chains: int = 12, samples: int = 15) -> float:
    """Multiply-adds of one core in GFLOP/s (a multiply-add counts two): the median over samples of thread CPU time."""
    lanes = vector_bits // 32
    machine = host_machine()
    module = llvm.parse_assembly(fma_kernel(lanes, chains))
    jit = llvm.create_lljit_compiler(machine)
    library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).export_symbol("fma").link(jit, "peak")
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(library["fma"])
    out = (ctypes.c_float * (lanes + 16))()
    run(rounds, out)
    times = []
    for _ in range(samples):
        start = time.thread_time_ns()
        run(rounds, out)
        times.append(time.thread_time_ns() - start)
    return 2 * lanes * chains * rounds / median(times)


if __name__ == "__main__":
    for bits in (128, 256, 512):
        if bits < 512 or llvm.get_host_cpu_features().get("avx512f"):
            print(f"{bits}-bit vectors: {fma_peak(bits):7.1f} GFLOP/s")
