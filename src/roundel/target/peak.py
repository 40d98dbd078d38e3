# SPDX-License-Identifier: Apache-2.0
"""What this machine reaches in a loop that does nothing else: multiply-adds per second, reading at each cache level.

The loops are LLVM text for the host's widest vectors, so no C compiler is needed. Run as a module to print the figures:
``python -m roundel.target.peak``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from ..ir import cache_folder
from ..ir.errors import OptionError
from .linker import memory_linker
from .target import Target

_TYPES = {"float32": ("float", 4, "f32"), "float64": ("double", 8, "f64")}
_REVISION = 2  # of how it is measured: figures from before are not used
_UNROLL = 8  # vectors per step of the reading loop


@dataclass(frozen=True)
class Peak:
    """Of one core: GFLOP/s (a multiply-add counts two), and GB/s reading from each level; of all cores: the same."""

    gflops: float
    gflops_float64: float
    l1_gbs: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    cores: int
    all_gflops: float
    all_dram_gbs: float


def _fma_text(target: Target, dtype: str) -> str:
    """Independent chains x = x * a + b, as many as the latency times the ports asks for (and the registers hold)."""
    element, size, suffix = _TYPES[dtype]
    lanes = target.vector_bytes // size
    vector = f"<{lanes} x {element}>"
    chains = min(target.vector_registers - 4, 2 * target.fma_latency * target.fma_ports)
    lines = [
        "define double @loop(ptr %unused, i64 %n, i64 %also_unused) {",
        "entry:",
        "  br label %body",
        "body:",
        "  %i = phi i64 [0, %entry], [%next, %body]",
    ]
    lines += [f"  %x{c} = phi {vector} [splat({element} 1.0), %entry], [%y{c}, %body]" for c in range(chains)]
    factors = f"{vector} splat({element} 0.5), {vector} splat({element} 0.25)"
    call = f"call {vector} @llvm.fma.v{lanes}{suffix}({vector} %x{{0}}, {factors})"
    lines += [f"  %y{c} = {call.format(c)}" for c in range(chains)]
    lines += [
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
    ]
    lines += _sum_lines("y", chains, vector, element, lanes)
    lines += ["}", f"declare {vector} @llvm.fma.v{lanes}{suffix}({vector}, {vector}, {vector})"]
    return "\n".join(lines)


def _read_text(target: Target) -> str:
    """Sum of n bytes as vectors, several partial sums; the whole `repeats` times."""
    lanes = target.vector_bytes // 4
    vector, step = f"<{lanes} x float>", target.vector_bytes * _UNROLL
    lines = [
        "define double @loop(ptr %data, i64 %n, i64 %repeats) {",
        "entry:",
        "  br label %again",
        "again:",
        "  %r = phi i64 [0, %entry], [%r1, %round]",
        "  br label %body",
        "body:",
        "  %i = phi i64 [0, %again], [%next, %body]",
    ]
    lines += [f"  %s{c} = phi {vector} [zeroinitializer, %again], [%y{c}, %body]" for c in range(_UNROLL)]
    for c in range(_UNROLL):
        lines += [
            f"  %o{c} = add i64 %i, {c * target.vector_bytes}",
            f"  %p{c} = getelementptr i8, ptr %data, i64 %o{c}",
            f"  %v{c} = load {vector}, ptr %p{c}, align 64",
            f"  %y{c} = fadd {vector} %s{c}, %v{c}",
        ]
    lines += [
        f"  %next = add i64 %i, {step}",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %body, label %round",
        "round:",
        "  %r1 = add i64 %r, 1",
        "  %rounds = icmp slt i64 %r1, %repeats",
        "  br i1 %rounds, label %again, label %done",
        "done:",
    ]
    return "\n".join([*lines, *_sum_lines("y", _UNROLL, vector, "float", lanes), "}"])


def _sum_lines(name: str, count: int, vector: str, element: str, lanes: int) -> list[str]:
    """The results must be used, or nothing would be computed."""
    lines = [f"  %t0 = fadd {vector} %{name}0, %{name}0"]
    lines += [f"  %t{c} = fadd {vector} %t{c - 1}, %{name}{c}" for c in range(1, count)]
    lines.append(f"  %first = extractelement {vector} %t{count - 1}, i64 {lanes - 1}")
    return (
        [*lines, "  ret double %first"]
        if element == "double"
        else [*lines, "  %wide = fpext float %first to double", "  ret double %wide"]
    )


def _compile(text: str, target: Target) -> tuple[Callable[[int, int, int], float], Any]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.llvm_features, opt=2
    )
    linked = llvm.JITLibraryBuilder().add_ir(text).export_symbol("loop").link(memory_linker(machine), "peak")
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(linked["loop"]), linked


Work = tuple[float, Callable[[], object]]
"""An amount (floating-point operations, bytes) and what does it once."""


def _best_rate(work: Work, seconds: float) -> float:
    """The highest rate in G/s seen within about ``seconds``."""
    amount, run = work
    end, best = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return amount / best * 1e-9


def _fma_work(dtype: str) -> Work:
    target = Target.host()
    text = _fma_text(target, dtype)
    loop, linked = _compile(text, target)
    chains, count = text.count(" = phi <"), 200_000
    flops = 2.0 * chains * (target.vector_bytes // _TYPES[dtype][1]) * count
    return flops, lambda _linked=linked: loop(0, count, 1)


def _read_work(nbytes: int) -> Work:
    import numpy as np

    target = Target.host()
    loop, linked = _compile(_read_text(target), target)
    step = target.vector_bytes * _UNROLL
    nbytes = max(nbytes // step, 1) * step
    memory = np.ones(nbytes + 64, np.uint8)  # untouched memory would be one page of zeros
    address = memory.ctypes.data + -memory.ctypes.data % 64
    repeats = max(1, (1 << 25) // nbytes)
    return float(nbytes * repeats), lambda _kept=(linked, memory): loop(address, nbytes, repeats)


def fma_gflops(dtype: str = "float32", seconds: float = 0.2) -> float:
    """GFLOP/s of one core in multiply-adds of ``float32`` or ``float64``: the best of short runs."""
    if dtype not in _TYPES:
        raise OptionError(f"the peak of {dtype} is not measured", hint=f"one of {', '.join(_TYPES)}")
    return _best_rate(_fma_work(dtype), seconds)


def read_gbs(nbytes: int, seconds: float = 0.1) -> float:
    """GB/s at which one core reads a working set of ``nbytes`` again and again."""
    return _best_rate(_read_work(nbytes), seconds)


def copy_gbs(nbytes: int, seconds: float = 0.3) -> float:
    """GB/s at which one core copies ``nbytes`` of memory with the C library, what is read and what is written counted both."""
    source, target = (ctypes.create_string_buffer(nbytes) for _ in range(2))
    ctypes.memset(source, 1, nbytes)
    return _best_rate((2.0 * nbytes, lambda: ctypes.memmove(target, source, nbytes)), seconds)


def on_all_cores(make: Callable[[], Work], cores: int, seconds: float = 0.3) -> float:
    """G/s of so many threads that begin together, each with work of its own: the best of rounds within about ``seconds``, in which all that
    they do counts, over the time until the last is done."""
    works = [make() for _ in range(cores)]
    with ThreadPoolExecutor(cores) as threads:
        gate = threading.Barrier(cores)

        def timed(run: Callable[[], object]) -> tuple[float, float]:
            gate.wait()
            start = time.perf_counter()
            run()
            return start, time.perf_counter()

        end, best = time.perf_counter() + seconds, float("inf")
        while time.perf_counter() < end:
            starts, ends = zip(*threads.map(timed, [run for _, run in works]), strict=True)
            best = min(best, max(ends) - min(starts))
    return sum(amount for amount, _ in works) / best * 1e-9


@functools.cache
def machine_peak() -> Peak:
    """The figures of this machine, measured once (about two seconds) and kept on disk."""
    target = Target.host()
    key = hashlib.sha256(f"{_REVISION} {target}".encode()).hexdigest()[:16]
    name = f"peak-{key}.json"
    if (remembered := cache_folder.read(name)) is not None:
        return Peak(**json.loads(remembered))
    peak = measure(target)
    cache_folder.write(name, content=json.dumps(asdict(peak)).encode())
    return peak


def measure(target: Target) -> Peak:
    """Measure now. On a machine that others use too the figures are too low; run it when it is quiet."""
    large = max(4 * target.l3_bytes, 128 << 20)
    middle = (target.l2_bytes + min(target.l3_bytes, 4 * target.l2_bytes)) // 2 if target.l3_bytes else large
    one, cores = fma_gflops(), target.cores
    dram = read_gbs(large, 0.3)
    return Peak(
        one,
        fma_gflops("float64"),
        read_gbs(target.l1_bytes // 2),
        read_gbs(target.l2_bytes // 2),
        read_gbs(middle),
        dram,
        cores,
        on_all_cores(lambda: _fma_work("float32"), cores) if cores > 1 else one,
        on_all_cores(lambda: _read_work(large), cores) if cores > 1 else dram,
    )


if __name__ == "__main__":
    print(Target.host())
    for name, value in asdict(measure(Target.host())).items():
        print(f"{name:16} {value:10.1f}")
    print(f"{'copy_gbs':16} {copy_gbs(max(4 * Target.host().l3_bytes, 128 << 20)):10.1f}")
