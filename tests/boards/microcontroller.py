# SPDX-License-Identifier: Apache-2.0
"""Programs for boards without a system, run by QEMU: a model's object, a start-up that a board's program would have, and results by semihosting.

QEMU counts instructions (``-icount``): a nanosecond for each, which the timer of the processor tells.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

TIMEOUT = 120
TYPES = {"float32": "float", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "int64": "int64_t"}


@dataclass(frozen=True)
class Family:
    """``start``: C that the processor begins with, and how a program says what it has computed and counts instructions; ``linker``: where things lie."""

    compiler: str
    emulator: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    start: str
    linker: str


@dataclass(frozen=True)
class Microcontroller:
    """``board``: QEMU's name; ``code`` and ``memory``: where flash and RAM begin; ``options``: what the program around the model is compiled with;
    ``tick``: instructions (nanoseconds of QEMU's clock) from one count to the next; ``vectors``: where the table lies that the processor begins with."""

    board: str
    code: int
    memory: int
    options: tuple[str, ...]
    tick: float = 40.0
    vectors: int = 0
    family: Family = field(repr=False, kw_only=True)

    @property
    def has_floats(self) -> bool:
        """Whether the processor has instructions for floats."""
        return any(option.endswith(("abi=hard", "f", "d")) for option in self.options if "abi" in option)

    def missing(self) -> str:
        """What has to be installed to run it; empty where all is there."""
        return ", ".join(name for name in (self.family.compiler, self.family.emulator) if shutil.which(name) is None)


ARM = Family("arm-none-eabi-gcc", "qemu-system-arm", ("-semihosting-config", "enable=on,target=native"), ("-mthumb",), """\
static int semihosting(int what, const void *data) {
  register int r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = data;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static void say(const char *text) { semihosting(4, text); }
#define STACK_POINTER "mov %0, sp"
static uint32_t count(void) { return 0xFFFFFF - *(volatile uint32_t *)0xE000E018; } /* of 24 bits */
void reset(void) {
#if defined(__ARM_FP)
  *(volatile uint32_t *)0xE000ED88 |= 0xF << 20; /* the floating-point unit, and vectors where it has them */
  __asm__ volatile("dsb; isb");
#endif
  *(volatile uint32_t *)0xE000E014 = 0xFFFFFF; /* the timer, from its top, at the processor's clock */
  *(volatile uint32_t *)0xE000E018 = 0;
  *(volatile uint32_t *)0xE000E010 = 5;
  main();
  for (;;) semihosting(0x18, (void *)0x20026);
}
static void fault(void) { say("fault\\n"); semihosting(0x18, (void *)0x20023); for (;;) { } }
__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
  stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};
""", """\
MEMORY {{ FIRST (r) : ORIGIN = {vectors:#x}, LENGTH = 1K  CODE (rx) : ORIGIN = {code:#x}, LENGTH = 2M  DATA (rw) : ORIGIN = {memory:#x}, LENGTH = 2M }}
ENTRY(reset)
SECTIONS {{
  .vectors : {{ KEEP(*(.vectors)) }} > FIRST
  .text : {{ *(.text*) *(.rodata*) }} > CODE
  .ARM.exidx : {{ *(.ARM.exidx*) }} > CODE
  .data : {{ *(.data*) }} > CODE
  .bss (NOLOAD) : {{ *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; . += 65536; stack_top = .; }} > DATA
}}
""")

RISCV = Family("riscv64-unknown-elf-gcc", "qemu-system-riscv32", ("-bios", "none"), ("-mcmodel=medany", "--specs=picolibc.specs"), """\
static void say(const char *text) { while (*text) *(volatile unsigned char *)0x10000000 = *text++; }
#define STACK_POINTER "mv %0, sp"
static uint32_t count(void) { uint32_t n; __asm__ volatile(".option arch, +zicsr\\n csrr %0, minstret" : "=r"(n)); return n; }
void begin_here(void) { main(); *(volatile uint32_t *)0x100000 = 0x5555; for (;;) { } }
__attribute__((section(".start"), naked, used)) void reset(void) {
  __asm__(".option arch, +zicsr\\n la sp, stack_top\\n li t0, 0x2200\\n csrs mstatus, t0\\n j begin_here"); /* with floats and vectors, where it has them */
}
""", """\
ENTRY(reset)
SECTIONS {{
  . = {code:#x};
  .text : {{ KEEP(*(.start)) *(.text*) *(.rodata*) *(.srodata*) }}
  .data : {{ *(.data*) *(.sdata*) }}
  .bss : {{ *(.sbss*) *(.bss*) *(COMMON) . = ALIGN(16); bss_end = .; . += 65536; stack_top = .; }}
}}
""")

RISCV_64 = replace(RISCV, emulator="qemu-system-riscv64", arguments=("-bios", "none", "-cpu", "rv64,v=true,vlen=128"))
_HARD = "-mfloat-abi=hard"
_arm = lambda board, code, memory, *options, tick=40.0, vectors=0: Microcontroller(board, code, memory, options, tick, vectors, family=ARM)
_riscv = lambda *options, family=RISCV: Microcontroller("virt", 0x80000000, 0x80000000, options, 1.0, family=family)
BOARDS = {
    "cortex-m3": _arm("mps2-an385", 0x400, 0x20000000, "-mcpu=cortex-m3"),
    "cortex-m4": _arm("mps2-an386", 0x400, 0x20000000, "-mcpu=cortex-m4", _HARD),
    "cortex-m7": _arm("mps2-an500", 0x400, 0x60000000, "-mcpu=cortex-m7", _HARD),
    "cortex-m33": _arm("mps2-an505", 0x10000400, 0x38000000, "-mcpu=cortex-m33", _HARD, tick=50.0, vectors=0x10000000),
    "cortex-m55": _arm("mps3-an547", 0x01000000, 0x21000000, "-mcpu=cortex-m55", _HARD, tick=31.25),  # 512 KB at 0 are too few for floats
    "rv32imac": _riscv("-march=rv32imac", "-mabi=ilp32"),
    "rv32imafc": _riscv("-march=rv32imafc", "-mabi=ilp32f"),
    "rv64gcv-bare": _riscv("-march=rv64gcv", "-mabi=lp64d", family=RISCV_64),
}

_PROGRAM = """\
#include <stdint.h>
#include <string.h>
{includes}
extern char stack_top[], bss_end[];
int main(void);
{start}
static void say_number(uint32_t value) {{
  static char digits[12];
  int k = 11;
  do digits[--k] = (char)('0' + value % 10); while (value /= 10);
  say(digits + k);
}}
{definitions}
int main(void) {{
  volatile uint32_t *const unused = (volatile uint32_t *)(((uintptr_t)bss_end + 3) & ~(uintptr_t)3);
  uint32_t words = 0, begin, end;
  char *top;
  __asm__ volatile(STACK_POINTER : "=r"(top));
  for (uint32_t k = 0; k < (uint32_t)(top - (char *)unused) / 4; k++) unused[k] = 0xA5A5A5A5;
  begin = count();
  {{
{run}
  }}
  end = count();
  while (unused[words] == 0xA5A5A5A5) words++;
  say("ticks "); say_number({ticks});
  say("\\nstack "); say_number((uint32_t)(top - (char *)unused) - 4 * words); say("\\n");
{writes}
  say("done\\n");
  return 0;
}}
"""


@dataclass(frozen=True)
class Run:
    """What a program computed, the instructions of the model's run (to a tick), and the bytes of stack below the program's own."""

    outputs: list[np.ndarray]
    instructions: int
    stack: int


def run_on_board(cpu: str, made: Path, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], options: Sequence[str] = ()) -> Run:
    """Link the object or C source ``made``, whose header lies beside it, into a program and run it on the board of a processor; ``outputs``
    are arrays of the right shapes."""
    name, definitions, run, writes = made.stem, [], [], []
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for k, a in enumerate(arrays):
            const, words = ("const ", _words(a)) if kind == "input" else ("", "")
            definitions.append(f"static {const}uint32_t {kind}{k}[{-(-a.nbytes // 4)}]{' = {' + words + '}' if words else ''};")
            definitions.append(f"static int64_t {kind}{k}_shape[] = {{{', '.join(map(str, a.shape)) or '0'}}};")
            if kind == "output":
                writes.append(f"  for (unsigned k = 0; k < {-(-a.nbytes // 4)}; k++) {{ say(\"w \"); say_number(output{k}[k]); say(\"\\n\"); }}")
        listed = ", ".join(f"{name}_run_{kind}{k}((void *){kind}{k}, {kind}{k}_shape)" for k in range(len(arrays)))
        run.append(f"    DLTensor {kind}s[] = {{{listed}}};")
    run.append(f"    if ({name}_run(inputs, outputs)) {{ say({name}_last_error()); say(\"\\n\"); return 1; }}")
    said, ticks, stack = run_program(cpu, made.parent, [made.name], f'#include "{name}.h"', "\n".join(definitions), "\n".join(run), "\n".join(writes), options)
    words = np.array([int(w) for w in re.findall(r"^w (\d+)$", said, re.M)], np.uint32)
    results, at = [], 0
    for a in outputs:
        count = -(-a.nbytes // 4)
        results.append(words[at : at + count].view(np.uint8)[: a.nbytes].view(a.dtype).reshape(a.shape))
        at += count
    return Run(results, ticks, stack)


def run_program(cpu: str, folder: Path, linked: Sequence[str], includes: str, definitions: str, run: str, writes: str = "",
                options: Sequence[str] = ()) -> tuple[str, int, int]:
    """Run the statements ``run`` of C in a program of a board, with the files ``linked`` of the folder: what the program said, the instructions (to a
    tick) and the bytes of stack that they took. Raises AssertionError where the program did not come to its end."""
    board, family = BOARDS[cpu], BOARDS[cpu].family
    ticks = "(end - begin) & 0xFFFFFF" if family is ARM else "end - begin"
    (folder / "program.c").write_text(_PROGRAM.format(includes=includes, start=family.start, definitions=definitions, run=run, ticks=ticks, writes=writes))
    (folder / "board.ld").write_text(family.linker.format(code=board.code, memory=board.memory, vectors=board.vectors))
    subprocess.run([family.compiler, "-std=gnu99", "-O2", *family.options, *board.options, *options, "-nostartfiles", "-Wl,--gc-sections", "-T", "board.ld",
                    "program.c", *linked, "-lm", "-o", "program.elf"], cwd=folder, check=True, timeout=TIMEOUT)
    command = [family.emulator, "-M", board.board, "-nographic", "-icount", "shift=0", *family.arguments, "-kernel", "program.elf"]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    said = done.stdout + done.stderr
    assert "done" in said, said[-2000:]
    number = lambda what: int(re.search(rf"{what} (\d+)", said)[1])
    return said, round(board.tick * number("ticks")), number("stack")


def undefined(made: Path, cpu: str) -> list[str]:
    """What an object asks its program for, but for the compiler's own functions."""
    said = subprocess.run([BOARDS[cpu].family.compiler.replace("-gcc", "-nm"), "-u", made], capture_output=True, text=True, check=True).stdout
    return [n for n in re.findall(r"U (\S+)", said) if not n.startswith("__")]


def _words(array: np.ndarray) -> str:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    padded = np.zeros(-(-raw.size // 4) * 4, np.uint8)
    padded[: raw.size] = raw
    return ", ".join(f"{w}u" for w in padded.view(np.uint32))
