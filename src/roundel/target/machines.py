# SPDX-License-Identifier: Apache-2.0
"""Machines by name: what code generation and the cost model must know of a microarchitecture.

Sizes in bytes; latency in cycles; a port is one vector multiply-add per cycle at full vector width. Figures are those of the vendors'
optimisation guides, and of public measurements where these say nothing (what a core reads from its last cache and from memory). They hold
for machines that code is compiled for elsewhere; of the machine at hand, rates are measured (`roundel.target.profile`).
"""

from __future__ import annotations

from typing import Any

from ..ir.dataclass import dataclass
from .behaviour import IN_ORDER, OUT_OF_ORDER, OUT_OF_ORDER_ARM, OUT_OF_ORDER_ZEN, PORTABLE, Behaviour

K, M = 1 << 10, 1 << 20
_ALL_X86 = "sse2"  # that have 64 bits
_V2 = _ALL_X86 + ",cx16,popcnt,sse3,sse4.1,sse4.2,ssse3"
_V3 = _V2 + ",avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe"
_V4 = _V3 + ",avx512bw,avx512cd,avx512dq,avx512f,avx512vl"
_ICELAKE = _V4 + ",avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,gfni,vaes,vpclmulqdq"
_AMD_V4 = _ICELAKE + ",avx512bf16"
_SAPPHIRE = _AMD_V4 + ",avxvnni,avx512fp16,amx-tile,amx-int8,amx-bf16"
_NEON = "neon,fullfp16,dotprod,lse,crc,rdm"
_X86, _ARM, _MAC = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx13.0"
_RISCV = "riscv64-unknown-linux-gnu"
_SHARED = "simd128,atomics,bulk-memory"  # WebAssembly with threads
_RELAXED = (("", ""), ("-relaxed", ",relaxed-simd"))
_X86_32, _ARM_32 = "i686-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf"
_M3, _M4F, _M33F, _M55F = (f"thumbv{name}" for name in ("7m-none-eabi", "7em-none-eabihf", "8m.main-none-eabihf", "8.1m.main-none-eabihf"))
_RISCV_32, _RISCV_64 = "riscv32-unknown-elf", "riscv64-unknown-elf"


@dataclass(frozen=True)
class _Core:
    """What is alike in all machines with a kind of core: vector loads and instructions per cycle, instructions of the reorder buffer, ways of
    both caches, bytes per cycle from the first, second and last cache, bytes of a line; vector stores per cycle, what a miss in the first cache,
    a store that is loaded again, an inner loop and a branch that was guessed wrong cost (cycles), and a lane that is loaded by itself (instructions);
    vector additions per cycle beside multiply-adds, where they have ports of their own; the
    shares of the rates of the second and last cache and of memory at which lines are written to them; of constants that a run has not touched before, at
    what share of a level's rate they come, and what share of working or waiting for them the longer does not hide. The first is how it behaves beyond
    that."""

    behaviour: Behaviour
    loads: int
    issue: int
    window: int
    l1_ways: int
    l2_ways: int
    l1_rate: float
    l2_rate: float
    l3_rate: float
    line_bytes: int = 64
    stores: float = 1
    miss_cycles: float = 8.0
    forwarding: float = 4.0
    entry_cycles: float = 1.0
    wrong_branch: float = 16.0
    gather_instructions: float = 2.0
    add_ports: int = 0
    l2_stored: float = 0.4
    l3_stored: float = 0.8
    memory_stored: float = 0.7
    cold_share: float = 0.83
    cold_exposed: float = 0.4


# fmt: off
_ANY_X86 = _Core(OUT_OF_ORDER, 2, 4, 128, 8, 8, 32, 16, 8)  # the processors of the last 15 years have this much
_HASWELL = _Core(OUT_OF_ORDER, 2, 4, 192, 8, 8, 64, 32, 12)
_SKYLAKE = _Core(OUT_OF_ORDER, 2, 4, 224, 8, 4, 64, 36, 14)
_SKYLAKE_SERVER = _Core(OUT_OF_ORDER, 2, 4, 224, 8, 16, 128, 48, 9)  # its caches are connected by a mesh
_ICELAKE_SERVER = _Core(OUT_OF_ORDER, 2, 5, 352, 12, 20, 128, 48, 9)
_GOLDEN_COVE = _Core(OUT_OF_ORDER, 3, 6, 512, 12, 10, 96, 48, 16, stores=2, forwarding=1.0)
_GOLDEN_COVE_SERVER = _Core(OUT_OF_ORDER, 2, 6, 512, 12, 16, 128, 48, 9, forwarding=1.0, l2_stored=0.36, l3_stored=1.0, memory_stored=0.7, cold_exposed=0.7)
_ZEN1 = _Core(OUT_OF_ORDER, 2, 5, 192, 8, 8, 32, 24, 12, forwarding=1.0, add_ports=2)
_ZEN2 = _Core(OUT_OF_ORDER, 2, 6, 224, 8, 8, 64, 32, 18, forwarding=1.0, add_ports=2)
_ZEN3 = _Core(OUT_OF_ORDER, 2, 6, 256, 8, 8, 64, 32, 20, forwarding=1.0, add_ports=2)
_ZEN4 = _Core(OUT_OF_ORDER_ZEN, 1, 6, 320, 8, 8, 64, 32, 24, stores=0.5, forwarding=1.0, add_ports=1)  # 512 bits in two halves
_ZEN5 = _Core(OUT_OF_ORDER_ZEN, 2, 6, 448, 12, 16, 128, 64, 32, forwarding=1.0, add_ports=2)
_N1 = _Core(OUT_OF_ORDER_ARM, 2, 4, 128, 4, 8, 32, 20, 10, wrong_branch=11.0)
_V1 = _Core(OUT_OF_ORDER_ARM, 3, 8, 256, 4, 8, 48, 32, 12, stores=2, wrong_branch=11.0)
_A72 = _Core(OUT_OF_ORDER_ARM, 1, 3, 128, 2, 16, 16, 8, 4)
_A76 = _Core(OUT_OF_ORDER_ARM, 2, 4, 128, 4, 8, 32, 20, 8, wrong_branch=11.0)
_A53 = _Core(IN_ORDER, 1, 2, 16, 4, 16, 16, 8, 4, wrong_branch=8.0)
_A7 = _Core(IN_ORDER, 1, 2, 16, 4, 8, 8, 4, 2, wrong_branch=8.0)
_FIRESTORM = _Core(OUT_OF_ORDER_ARM, 3, 8, 630, 8, 12, 48, 32, 16, line_bytes=128, stores=2)
_MICRO = _Core(IN_ORDER, 1, 1, 2, 4, 4, 4, 4, 4, line_bytes=32, gather_instructions=1.0, wrong_branch=3.0)  # all of its memory is near, and waits for nobody
_SMALL_RISCV = _Core(IN_ORDER, 1, 2, 32, 8, 8, 16, 8, 4, wrong_branch=5.0)
_ANY_WASM = _Core(PORTABLE, 2, 4, 192, 8, 8, 32, 16, 8)
# fmt: on


def _machine(
    core: _Core,
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
    all_dram: float,
    **more: Any,
) -> dict[str, Any]:
    return {
        "triple": triple,
        "features": tuple(sorted(f for f in features.split(",") if f)),
        "vector_bytes": vector,
        "unit_bytes": vector,
        "vector_registers": registers,
        "fma_latency": latency,
        "fma_ports": ports,
        "l1_bytes": l1,
        "l2_bytes": l2,
        "l3_bytes": l3,
        "frequency_ghz": ghz,
        "dram_gbs": dram,
        "all_dram_gbs": all_dram,
        "region_us": 8.0,
        "start_us": 1.5,
        **{name: value for name, value in vars(core).items() if name != "behaviour"},
        **vars(core.behaviour),
        **more,
    }


# fmt: off
# name -> fields of Target; the name is also LLVM's name of the CPU unless `cpu` says another
MACHINES: dict[str, dict[str, Any]] = {
    "x86-64": _machine(_ANY_X86, _X86, _ALL_X86, 16, 16, 4, 1, 32 * K, 256 * K, 8 * M, 3.0, 15, 25),
    "x86-64-v2": _machine(_ANY_X86, _X86, _V2, 16, 16, 4, 1, 32 * K, 256 * K, 8 * M, 3.0, 15, 25),
    "x86-64-v3": _machine(_HASWELL, _X86, _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.0, 15, 25),
    "x86-64-v4": _machine(_SKYLAKE_SERVER, _X86, _V4, 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 3.0, 15, 80),
    "haswell": _machine(_HASWELL, _X86, _V3, 32, 16, 5, 2, 32 * K, 256 * K, 8 * M, 3.2, 15, 22),
    "skylake": _machine(_SKYLAKE, _X86, _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.5, 15, 34),
    "alderlake": _machine(_GOLDEN_COVE, _X86, _V3 + ",avxvnni", 32, 16, 4, 2, 48 * K, 1280 * K, 24 * M, 4.5, 25, 65),
    "skylake-avx512": _machine(_SKYLAKE_SERVER, _X86, _V4, 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 2.8, 13, 100),
    "cascadelake": _machine(_SKYLAKE_SERVER, _X86, _V4 + ",avx512vnni", 64, 32, 4, 2, 32 * K, 1 * M, 16 * M, 2.8, 13, 110),
    "icelake-server": _machine(_ICELAKE_SERVER, _X86, _ICELAKE, 64, 32, 4, 2, 48 * K, 1280 * K, 24 * M, 2.9, 13, 160),
    "sapphirerapids": _machine(_GOLDEN_COVE_SERVER, _X86, _SAPPHIRE, 64, 32, 4, 2, 48 * K, 2 * M, 32 * M, 3.0, 13, 230),
    "emeraldrapids": _machine(_GOLDEN_COVE_SERVER, _X86, _SAPPHIRE, 64, 32, 4, 2, 48 * K, 2 * M, 160 * M, 3.0, 13, 260),
    "graniterapids": _machine(_GOLDEN_COVE_SERVER, _X86, _SAPPHIRE + ",amx-fp16,prefetchi", 64, 32, 4, 2, 48 * K, 2 * M, 256 * M, 3.2, 15, 400),
    "znver1": _machine(_ZEN1, _X86, _V3, 16, 16, 5, 2, 32 * K, 512 * K, 8 * M, 3.2, 18, 110),
    "znver2": _machine(_ZEN2, _X86, _V3, 32, 16, 5, 2, 32 * K, 512 * K, 16 * M, 3.3, 20, 150),
    "znver3": _machine(_ZEN3, _X86, _V3 + ",vaes,vpclmulqdq", 32, 16, 4, 2, 32 * K, 512 * K, 32 * M, 3.4, 20, 150),
    "znver4": _machine(_ZEN4, _X86, _AMD_V4, 64, 32, 4, 1, 32 * K, 1 * M, 32 * M, 3.7, 25, 350, unit_bytes=32),
    "znver5": _machine(_ZEN5, _X86, _AMD_V4 + ",avxvnni,avx512vp2intersect", 64, 32, 4, 2, 48 * K, 1 * M, 32 * M, 4.0, 45, 450),
    "neoverse-n1": _machine(_N1, _ARM, _NEON, 16, 32, 4, 2, 64 * K, 1 * M, 32 * M, 2.6, 20, 150),
    "neoverse-v1": _machine(_V1, _ARM, _NEON + ",bf16,i8mm,sve", 16, 32, 4, 4, 64 * K, 1 * M, 32 * M, 2.6, 25, 240),
    "neoverse-v1-sve": _machine(_V1, _ARM, _NEON + ",bf16,i8mm,sve,sve256", 32, 32, 4, 2, 64 * K, 1 * M, 32 * M, 2.6, 25, 240, cpu="neoverse-v1"),
    "i686": _machine(_ANY_X86, _X86_32, "sse2", 16, 8, 4, 1, 32 * K, 256 * K, 2 * M, 2.0, 5, 8, cpu="pentium4"),
    "cortex-a7": _machine(_A7, _ARM_32, "neon,vfp4", 16, 16, 8, 1, 32 * K, 256 * K, 0, 1.0, 1.5, 2),  # a multiply-add of four lanes takes two cycles at least
    "armv8-a": _machine(_A72, _ARM, "neon", 16, 32, 7, 1, 32 * K, 512 * K, 0, 1.8, 5, 8, cpu="generic"),
    "armv8.2-a": _machine(_A76, _ARM, _NEON, 16, 32, 4, 2, 64 * K, 512 * K, 2 * M, 2.4, 10, 18, cpu="generic"),
    "armv8.6-a": _machine(_A76, _ARM, _NEON + ",bf16,i8mm", 16, 32, 4, 4, 64 * K, 512 * K, 4 * M, 2.8, 15, 40, cpu="generic"),
    "cortex-a53": _machine(_A53, _ARM, "neon,crc", 16, 32, 4, 1, 32 * K, 512 * K, 0, 1.4, 2.5, 4),
    "cortex-a72": _machine(_A72, _ARM, "neon,crc", 16, 32, 7, 1, 32 * K, 1 * M, 0, 1.5, 4, 5),
    "cortex-a76": _machine(_A76, _ARM, _NEON, 16, 32, 4, 2, 64 * K, 512 * K, 2 * M, 2.4, 10, 18),
    "apple-m1": _machine(_FIRESTORM, _MAC, _NEON, 16, 32, 4, 4, 128 * K, 12 * M, 0, 3.2, 60, 62),
    "aarch64-macos": _machine(_FIRESTORM, _MAC, _NEON, 16, 32, 4, 4, 128 * K, 12 * M, 0, 3.2, 60, 62, cpu="apple-m1"),
    "x86_64-macos": _machine(_HASWELL, "x86_64-apple-macosx13.0", _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.0, 15, 25, cpu="x86-64-v3"),
    "x86_64-windows": _machine(_HASWELL, "x86_64-pc-windows-gnu", _V3, 32, 16, 4, 2, 32 * K, 256 * K, 8 * M, 3.0, 15, 25, cpu="x86-64-v3"),
    "rv64gcv": _machine(_SMALL_RISCV, _RISCV, "m,a,f,d,c,v", 16, 32, 5, 1, 32 * K, 512 * K, 2 * M, 1.6, 5, 6, cpu="generic-rv64"),
    "rv64gc": _machine(_SMALL_RISCV, _RISCV, "m,a,f,d,c", 8, 32, 5, 1, 32 * K, 512 * K, 2 * M, 1.5, 3, 4, cpu="generic-rv64"),  # without vectors
    # without a system: C source, for one core
    "cortex-m3": _machine(_MICRO, _M3, "", 4, 10, 30, 1, 64 * K, 256 * K, 0, 0.1, 0.2, 0.2, kind="c"),  # floats are computed by functions
    "cortex-m4": _machine(_MICRO, _M4F, "dsp", 4, 10, 3, 1, 128 * K, 256 * K, 0, 0.12, 0.2, 0.2, kind="c"),
    "cortex-m7": _machine(_MICRO, _M4F, "dsp", 4, 10, 3, 1, 16 * K, 512 * K, 0, 0.4, 0.4, 0.4, kind="c"),
    "cortex-m33": _machine(_MICRO, _M33F, "dsp", 4, 10, 3, 1, 128 * K, 256 * K, 0, 0.15, 0.2, 0.2, kind="c"),
    "cortex-m55": _machine(_MICRO, _M55F, "dsp,mve.fp", 16, 8, 3, 1, 128 * K, 512 * K, 0, 0.25, 0.5, 0.5, kind="c"),
    "rv32imac": _machine(_MICRO, _RISCV_32, "", 4, 24, 30, 1, 128 * K, 256 * K, 0, 0.1, 0.2, 0.2, kind="c"),
    "rv32imafc": _machine(_MICRO, _RISCV_32, "", 4, 24, 4, 1, 128 * K, 256 * K, 0, 0.2, 0.2, 0.2, kind="c"),
    "rv64gcv-bare": _machine(_MICRO, _RISCV_64, "m,a,f,d,c,v", 16, 24, 4, 1, 128 * K, 1 * M, 0, 0.5, 1.0, 1.0, kind="c"),
}
# fmt: on


def _engine(system: str, bits: int, features: str, **more: Any) -> dict[str, Any]:
    """What runs WebAssembly with pointers of so many bits. Engines give the 16 registers of x86-64 to vectors, one excepted; a product that is not fused with
    its addition takes another."""
    registers = 15 if "relaxed-simd" in features else 14
    return _machine(_ANY_WASM, f"wasm{bits}-unknown-{system}", features, 16, registers, 8, 1, 32 * K, 256 * K, 8 * M, 3.0, 10, 20, cpu="generic", **more)


MACHINES |= {f"wasm{bits}{relaxed}": _engine("unknown", bits, f"simd128{more}") for bits in (32, 64) for relaxed, more in _RELAXED}
MACHINES |= {f"wasm{bits}{relaxed}-threads": _engine("unknown", bits, _SHARED + more, cores=4) for bits in (32, 64) for relaxed, more in _RELAXED}
MACHINES |= {f"wasm32-wasi{relaxed}": _engine("wasi", 32, f"simd128{more}") for relaxed, more in _RELAXED}  # with a system: files, arguments

LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64-any": ("x86-64", "haswell", "skylake-avx512", "cascadelake"),
    "aarch64-any": ("armv8-a", "armv8.2-a", "armv8.6-a"),
}
"""Names for several machines that one file is compiled for, each with what it takes to run on all of a family (`roundel.target.levels`)."""
