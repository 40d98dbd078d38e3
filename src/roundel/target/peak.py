# SPDX-License-Identifier: Apache-2.0
"""What a machine reaches in a loop that does nothing else: multiply-adds per second, bytes read from each level, cycles.

The loops are LLVM text for the target's widest vectors, so no C compiler is needed. `roundel.target.profile` measures with them.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from bisect import insort
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

from ..ir.errors import OptionError
from .linker import memory_linker
from .target import Target

_TYPES = {"float32": ("float", 4, "f32"), "float64": ("double", 8, "f64")}
_UNROLL = 8  # vectors per step of the reading loop, additions per step of the chain
_ROUND_BYTES = 16 << 20  # that a round reads at least, so that it takes less than a time slice
LEAST_ROUNDS = 4
MANY_ROUNDS = 9
LEAST_SECONDS = 0.02
AGREED = 1.02  # of the best round's time at most that the next best takes, where they agree
ALIKE = 1.08   # ... of the first quarter's last that the last of three quarters takes, where the middle half agrees
WHOLE = 1.02  # of a round's CPU time at most that it lasts, where nothing interrupted it


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
    call = f"call {vector} @llvm.fmuladd.v{lanes}{suffix}({vector} %x{{0}}, {factors})"
    lines += [f"  %y{c} = {call.format(c)}" for c in range(chains)]
    lines += [
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %body, label %done",
        "done:",
    ]
    lines += _sum_lines("y", chains, vector, element, lanes)
    lines += ["}", f"declare {vector} @llvm.fmuladd.v{lanes}{suffix}({vector}, {vector}, {vector})"]
    return "\n".join(lines)


def _read_text(target: Target) -> str:
    """Sum of n bytes as vectors, several partial sums; the whole `repeats` times."""
    lanes = target.vector_bytes // 4
    vector = f"<{lanes} x float>"
    sums = [f"  %s{c} = phi {vector} [zeroinitializer, %again], [%y{c}, %body]" for c in range(_UNROLL)]
    each = "  %v{c} = load " + vector + ", ptr %p{c}, align 64\n  %y{c} = fadd " + vector + " %s{c}, %v{c}"
    return _sweep_text(target, sums, each, _sum_lines("y", _UNROLL, vector, "float", lanes))


def _write_text(target: Target) -> str:
    """Vectors stored into n bytes; the whole `repeats` times."""
    each = f"  store <{target.vector_bytes // 4} x float> splat(float 1.0), ptr %p{{c}}, align {target.vector_bytes}"
    return _sweep_text(target, [], each, ["  ret double 0.0"])


def _sweep_text(target: Target, kept: list[str], each: str, done: list[str]) -> str:
    """A loop over n bytes, `repeats` times: the lines of what it keeps from one iteration to the next, what it does with the vector at ``%p{c}``, for several
    ``c`` in an iteration, and the lines behind it."""
    lines = [
        "define double @loop(ptr %data, i64 %n, i64 %repeats) {",
        "entry:",
        "  br label %again",
        "again:",
        "  %r = phi i64 [0, %entry], [%r1, %round]",
        "  br label %body",
        "body:",
        "  %i = phi i64 [0, %again], [%next, %body]",
        *kept,
    ]
    for c in range(_UNROLL):
        lines += [f"  %o{c} = add i64 %i, {c * target.vector_bytes}", f"  %p{c} = getelementptr i8, ptr %data, i64 %o{c}", each.format(c=c)]
    return "\n".join([
        *lines,
        f"  %next = add i64 %i, {target.vector_bytes * _UNROLL}",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %body, label %round",
        "round:",
        "  %r1 = add i64 %r, 1",
        "  %rounds = icmp slt i64 %r1, %repeats",
        "  br i1 %rounds, label %again, label %done",
        "done:",
        *done,
        "}",
    ])


def _panels_text(target: Target, panel: int, passes: int) -> str:
    """Multiply-adds of panels of so many bytes by rows that fill the registers, with so many passes over each, in which the lines of the next one are
    fetched; ``%apart`` bytes lie between panels."""
    lanes, rows = target.vector_bytes // 4, (target.vector_registers - 4) // 2
    vector, step = f"<{lanes} x float>", 2 * target.vector_bytes
    sums = [f"{r}_{c}" for r in range(rows) for c in range(2)]
    lines = [
        "define double @loop(ptr %data, i64 %n, i64 %apart) {",
        "entry:",
        "  br label %panel",
        "panel:",
        "  %q = phi i64 [0, %entry], [%q1, %whole]",
        *(f"  %t{s} = phi {vector} [splat(float 1.0), %entry], [%y{s}, %whole]" for s in sums),
        "  %from = mul i64 %q, %apart",
        "  %w = getelementptr i8, ptr %data, i64 %from",
        "  %next_w = getelementptr i8, ptr %w, i64 %apart",
        "  br label %body",
        "body:",
        "  %i = phi i64 [0, %panel], [%next, %body]",
        *(f"  %s{s} = phi {vector} [%t{s}, %panel], [%y{s}, %body]" for s in sums),
        f"  %at = urem i64 %i, {panel}",
        "  %p = getelementptr i8, ptr %w, i64 %at",
        f"  %share = udiv i64 %i, {passes}",
        "  %f = getelementptr i8, ptr %next_w, i64 %share",
    ]
    for k in range(0, step, target.line_bytes * passes):
        lines += [f"  %f{k} = getelementptr i8, ptr %f, i64 {k // passes}", f"  call void @llvm.prefetch.p0(ptr %f{k}, i32 0, i32 3, i32 1)"]
    for c in range(2):
        lines += [f"  %p{c} = getelementptr i8, ptr %p, i64 {c * target.vector_bytes}", f"  %v{c} = load {vector}, ptr %p{c}, align {target.vector_bytes}"]
    function = f"@llvm.fmuladd.v{lanes}f32"
    lines += [f"  %y{s} = call {vector} {function}({vector} %v{s[-1]}, {vector} splat(float 2.0), {vector} %s{s})" for s in sums]
    lines += [
        f"  %next = add i64 %i, {step}",
        f"  %more = icmp slt i64 %next, {panel * passes}",
        "  br i1 %more, label %body, label %whole",
        "whole:",
        "  %q1 = add i64 %q, 1",
        "  %panels = icmp slt i64 %q1, %n",
        "  br i1 %panels, label %panel, label %done",
        "done:",
        f"  %z0 = fadd {vector} %y{sums[0]}, %y{sums[1]}",
        *(f"  %z{k} = fadd {vector} %z{k - 1}, %y{s}" for k, s in enumerate(sums[2:], 1)),
        f"  %first = extractelement {vector} %z{len(sums) - 2}, i64 0",
        "  %wide = fpext float %first to double",
        "  ret double %wide",
        "}",
        f"declare {vector} {function}({vector}, {vector}, {vector})",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    return "\n".join(lines)


def _chain_text() -> str:
    """x = (x + step) ^ i, in which no addition begins before the last one ended, nor can they be put together."""
    lines = [
        "define double @loop(i64 %first, i64 %n, i64 %step) {",
        "entry:",
        "  br label %body",
        "body:",
        "  %i = phi i64 [0, %entry], [%next, %body]",
        "  %x0 = phi i64 [%first, %entry], [%x8, %body]",
    ]
    for c in range(0, _UNROLL, 2):
        lines += [f"  %x{c + 1} = add i64 %x{c}, %step", f"  %x{c + 2} = xor i64 %x{c + 1}, %i"]
    return "\n".join([*lines, "  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %body, label %done", "done:",
                      "  %wide = sitofp i64 %x8 to double", "  ret double %wide", "}"])


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


@functools.lru_cache(32)
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


def _seconds() -> float:
    """CPU time of this thread, which waiting for a core does not lengthen; elapsed time where the system counts the former in ticks."""
    return time.thread_time() if _THREAD_TIME else time.perf_counter()


_THREAD_TIME = hasattr(time, "thread_time") and time.get_clock_info("thread_time").resolution < 1e-6


def best_rate(work: Work, seconds: float) -> float:
    """The highest rate in G/s seen in short rounds: of so many ``seconds``, or of fewer once the two best rounds agree. It is that of what a core has for
    itself, which others can only disturb."""
    times = _rounds(work, seconds, lambda whole: len(whole) > 1 and whole[1] <= AGREED * whole[0])
    return work[0] / times[1] * 1e-9  # the best may be a clock that was read at a bad moment


def typical_rate(work: Work, seconds: float) -> float:
    """The rate in G/s of the middle one of short rounds: of so many ``seconds``, or of fewer once the middle half of them agrees or there are many. It is that
    of caches and of memory that others use too: what they take of it is part of the machine that a program will find."""

    def is_enough(whole: list[float]) -> bool:
        n = len(whole)
        return n >= MANY_ROUNDS or (n >= LEAST_ROUNDS and whole[n * 3 // 4] <= ALIKE * whole[n // 4])

    return work[0] / median(_rounds(work, seconds, is_enough)) * 1e-9


def _rounds(work: Work, seconds: float, is_enough: Callable[[list[float]], bool]) -> list[float]:
    """Seconds of rounds, two at least, the shortest first. Rounds that nothing interrupted count, whose CPU time is the elapsed time; the CPU time of others
    too where there are no two: a virtual machine takes off of it what it believes to have been another's."""
    begun, done = time.perf_counter(), 0
    whole: list[float] = []
    cut: list[float] = []
    while True:
        start, clock = _seconds(), time.perf_counter()
        work[1]()
        spent, passed = _seconds() - start, time.perf_counter() - clock
        insort(whole if passed <= WHOLE * spent else cut, spent)
        done, elapsed = done + 1, time.perf_counter() - begun
        if (done > 1 and elapsed >= seconds) or (done >= LEAST_ROUNDS and elapsed >= LEAST_SECONDS and is_enough(whole)):
            return whole if len(whole) > 1 else sorted([*whole, *cut])


def chain_work(target: Target) -> Work:
    """Additions each of which needs the one before: one in a cycle."""
    loop, linked = _compile(_chain_text(), target)
    count = 50_000
    return float(count * _UNROLL), lambda _linked=linked: loop(1, count, 3)


def fma_work(target: Target, dtype: str = "float32") -> Work:
    """Multiply-adds of ``float32`` or ``float64``, counted as two operations for each element."""
    if dtype not in _TYPES:
        raise OptionError(f"the peak of {dtype} is not measured", hint=f"one of {', '.join(_TYPES)}")
    text = _fma_text(target, dtype)
    loop, linked = _compile(text, target)
    chains, count = text.count(" = phi <"), 50_000
    flops = 2.0 * chains * (target.vector_bytes // _TYPES[dtype][1]) * count
    return flops, lambda _linked=linked: loop(0, count, 1)


class Memory:
    """Bytes that loops read: written once, so that they are no pages of zeros."""

    def __init__(self, nbytes: int) -> None:
        import numpy as np

        self.nbytes = nbytes
        self.array = np.ones(nbytes + 64, np.uint8)
        self.address = self.array.ctypes.data + -self.array.ctypes.data % 64


def read_work(target: Target, memory: Memory, nbytes: int, start: int = 0) -> Work:
    """Reading ``nbytes`` of a memory from ``start`` on, again and again where they are few."""
    return _sweep(_read_text(target), target, memory, nbytes, start)


def write_work(target: Target, memory: Memory, nbytes: int) -> Work:
    """Writing the first ``nbytes`` of a memory in whole lines, again and again where they are few."""
    return _sweep(_write_text(target), target, memory, nbytes)


def panels_work(target: Target, memory: Memory, passes: int, far: bool) -> Work:
    """Products with panels of weights of half the first-level cache, so many passes over each, in which the next one is fetched from memory (``far``) or
    is the same."""
    panel = 1 << max(target.l1_bytes // 2, 2 * target.vector_bytes).bit_length() - 1
    loop, linked = _compile(_panels_text(target, panel, passes), target)
    count = memory.nbytes // panel - 1 if far else max(_ROUND_BYTES // (4 * panel), 1)
    return float(count * panel), lambda _kept=(linked, memory): loop(memory.address, count, panel if far else 0)


def _sweep(text: str, target: Target, memory: Memory, nbytes: int, start: int = 0) -> Work:
    loop, linked = _compile(text, target)
    step = target.vector_bytes * _UNROLL
    start = start // 64 * 64
    nbytes = max(min(nbytes, memory.nbytes - start) // step, 1) * step
    repeats = max(1, _ROUND_BYTES // nbytes)
    return float(nbytes * repeats), lambda _kept=(linked, memory): loop(memory.address + start, nbytes, repeats)


def fma_gflops(dtype: str = "float32", seconds: float = 0.2) -> float:
    """GFLOP/s of one core of this machine in multiply-adds of ``float32`` or ``float64``."""
    return best_rate(fma_work(Target.host(), dtype), seconds)


def read_gbs(nbytes: int, seconds: float = 0.1) -> float:
    """GB/s at which one core of this machine reads a working set of ``nbytes`` again and again."""
    return best_rate(read_work(Target.host(), Memory(nbytes), nbytes), seconds)


def copy_gbs(nbytes: int, seconds: float = 0.3) -> float:
    """GB/s at which one core copies ``nbytes`` of memory with the C library, what is read and what is written counted both."""
    source, target = (ctypes.create_string_buffer(nbytes) for _ in range(2))
    ctypes.memset(source, 1, nbytes)
    return best_rate((2.0 * nbytes, lambda: ctypes.memmove(target, source, nbytes)), seconds)


def on_all_cores(make: Callable[[], Work], cores: int, seconds: float = 0.3, choose: Callable[[list[float]], float] = min) -> float:
    """G/s of so many threads that begin together, each with work of its own: of rounds within about ``seconds`` the one whose time ``choose`` takes (the
    shortest, or a `statistics.median`), in which all that they do counts, over the time until the last is done."""
    works = [make() for _ in range(cores)]
    with ThreadPoolExecutor(cores) as threads:
        gate = threading.Barrier(cores)

        def timed(run: Callable[[], object]) -> tuple[float, float]:
            gate.wait()
            start = time.perf_counter()
            run()
            return start, time.perf_counter()

        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            starts, ends = zip(*threads.map(timed, [run for _, run in works]), strict=True)
            times.append(max(ends) - min(starts))
    return sum(amount for amount, _ in works) / choose(times) * 1e-9
