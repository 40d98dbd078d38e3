# SPDX-License-Identifier: Apache-2.0
"""Machines by name: what code generation and the cost model must know of a microarchitecture.

Sizes in bytes; latency in cycles; a port is one vector multiply-add per cycle at full vector width. Figures are those
of the vendors' optimisation guides; l3 is what one core may fill.
"""

from __future__ import annotations

from typing import Any

K, M = 1 << 10, 1 << 20

_V2 = "cx16,popcnt,sse3,sse4.1,sse4.2,ssse3"
_V3 = _V2 + ",avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe"
_V4 = _V3 + ",avx512bw,avx512cd,avx512dq,avx512f,avx512vl"
_ICELAKE = _V4 + ",avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,gfni,vaes,vpclmulqdq"
_ZEN4 = _ICELAKE + ",avx512bf16"
_SAPPHIRE = _ZEN4 + ",avxvnni,avx512fp16,amx-tile,amx-int8,amx-bf16"
_N1 = "neon,fullfp16,dotprod,lse,crc,rdm"
_X86, _ARM, _MAC = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-darwin"
_RISCV, _WASM = "riscv64-unknown-linux-gnu", "wasm32-unknown-unknown"


def _machine(
    triple: str,
    features: str,
    vector: int,
    registers: int,
    latency: int,
    ports: int,
    l1: int,
    l2: int,
    l3: int,
    ghz: float,
    dram: float,
    **more: Any,
) -> dict[str, Any]:
    return {
        "triple": triple,
        "features": tuple(sorted(f for f in features.split(",") if f)),
        "vector_bytes": vector,
        "vector_registers": registers,
        "fma_latency": latency,
        "fma_ports": ports,
        "l1_bytes": l1,
        "l2_bytes": l2,
        "l3_bytes": l3,
        "frequency_ghz": ghz,
        "dram_gbs": dram,
        **more,
    }


# fmt: off
# name -> fields of Target; the name is also LLVM's name of the CPU unless `cpu` says another
MACHINES: dict[str, dict[str, Any]] = {
    "x86-64": _machine(_X86, "", 16, 16, 4, 1, 32 * K, 256 * K, 8 * M, 3.0, 15),
    "x86-64-v2": _machine(_X86, _V2, 16, 16, 4, 1, 32 * K, 256 * K, 8 * M, 3.0, 15),
    "x86-64-v3": _machine(_X86, _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.0, 15),
    "x86-64-v4": _machine(_X86, _V4, 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 3.0, 15),
    "haswell": _machine(_X86, _V3, 32, 16, 5, 2, 32 * K, 256 * K, 8 * M, 3.2, 15),
    "skylake": _machine(_X86, _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.5, 15),
    "alderlake": _machine(_X86, _V3 + ",avxvnni", 32, 16, 4, 2, 48 * K, 1280 * K, 24 * M, 4.5, 25),
    "skylake-avx512": _machine(_X86, _V4, 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 2.8, 13),
    "cascadelake": _machine(_X86, _V4 + ",avx512vnni", 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 2.8, 13),
    "icelake-server": _machine(_X86, _ICELAKE, 64, 32, 4, 2, 48 * K, 1280 * K, 24 * M, 2.9, 13),
    "sapphirerapids": _machine(_X86, _SAPPHIRE, 64, 32, 4, 2, 48 * K, 2 * M, 32 * M, 3.0, 13),
    "znver1": _machine(_X86, _V3, 16, 16, 5, 2, 32 * K, 512 * K, 8 * M, 3.2, 18),
    "znver2": _machine(_X86, _V3, 32, 16, 5, 2, 32 * K, 512 * K, 16 * M, 3.3, 20),
    "znver3": _machine(_X86, _V3 + ",vaes,vpclmulqdq", 32, 16, 4, 2, 32 * K, 512 * K, 32 * M, 3.4, 20),
    "znver4": _machine(_X86, _ZEN4, 64, 32, 4, 1, 32 * K, 1 * M, 32 * M, 3.7, 25),  # 512 bits pass in two halves
    "znver5": _machine(_X86, _ZEN4 + ",avxvnni,avx512vp2intersect", 64, 32, 4, 2, 48 * K, 1 * M, 32 * M, 4.0, 45),
    "neoverse-n1": _machine(_ARM, _N1, 16, 32, 4, 2, 64 * K, 1 * M, 32 * M, 2.6, 20),
    "neoverse-v1": _machine(_ARM, _N1 + ",bf16,i8mm,sve", 16, 32, 4, 4, 64 * K, 1 * M, 32 * M, 2.6, 25),
    "cortex-a72": _machine(_ARM, "neon,crc", 16, 32, 7, 1, 32 * K, 1 * M, 0, 1.5, 4),
    "cortex-a76": _machine(_ARM, _N1, 16, 32, 4, 2, 64 * K, 512 * K, 2 * M, 2.4, 10),
    "apple-m1": _machine(_MAC, _N1, 16, 32, 4, 4, 128 * K, 12 * M, 0, 3.2, 60),
    "rv64gcv": _machine(_RISCV, "m,a,f,d,c,v", 16, 32, 5, 1, 32 * K, 512 * K, 2 * M, 1.6, 5, cpu="generic-rv64"),
    "wasm32-simd": _machine(_WASM, "simd128", 16, 16, 8, 1, 32 * K, 256 * K, 8 * M, 3.0, 10, cpu="generic"),
}
# fmt: on
