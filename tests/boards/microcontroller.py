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
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TIMEOUT = 120
COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
TYPES = {"float32": "float", "int8": "int8_t", "uint8": "uint8_t", "int32": "int32_t", "int64": "int64_t"}


@dataclass(frozen=True)
class Microcontroller:
    """``board``: QEMU's name; ``code`` and ``memory``: where flash and RAM begin; ``options``: what the program around the model is compiled with;
    ``tick``: nanoseconds from one tick of the timer to the next."""

    board: str
    code: int
    memory: int
    options: tuple[str, ...]
    tick: float = 40.0

    def missing(self) -> str:
        """What has to be installed to run it; empty where all is there."""
        return ", ".join(name for name in (COMPILER, EMULATOR) if shutil.which(name) is None)


_HARD = ("-mthumb", "-mfloat-abi=hard")
BOARDS = {
    "cortex-m3": Microcontroller("mps2-an385", 0, 0x20000000, ("-mcpu=cortex-m3", "-mthumb")),
    "cortex-m4": Microcontroller("mps2-an386", 0, 0x20000000, ("-mcpu=cortex-m4", *_HARD)),
    "cortex-m7": Microcontroller("mps2-an500", 0, 0x60000000, ("-mcpu=cortex-m7", *_HARD)),
    "cortex-m33": Microcontroller("mps2-an505", 0x10000000, 0x38000000, ("-mcpu=cortex-m33", *_HARD), 50.0),
    "cortex-m55": Microcontroller("mps3-an547", 0, 0x21000000, ("-mcpu=cortex-m55", *_HARD), 31.25),
}

_LINKER = """\
MEMORY {{ CODE (rx) : ORIGIN = {code:#x}, LENGTH = 2M  DATA (rw) : ORIGIN = {memory:#x}, LENGTH = 2M }}
ENTRY(reset)
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) }} > CODE
  .ARM.exidx : {{ *(.ARM.exidx*) }} > CODE
  .data : {{ *(.data*) }} > CODE
  .bss (NOLOAD) : {{ *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; . += 65536; stack_top = .; }} > DATA
}}
"""

_PROGRAM = """\
#include <stdint.h>
#include <string.h>
#include "{name}.h"
extern char stack_top[], bss_end[];
int main(void);
static int semihosting(int what, const void *data) {{
  register int r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = data;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}}
static void say(const char *text) {{ semihosting(4, text); }}
static void say_number(uint32_t value) {{
  static char digits[12];
  int k = 11;
  do digits[--k] = (char)('0' + value % 10); while (value /= 10);
  say(digits + k);
}}
void reset(void) {{
#if defined(__ARM_FP)
  *(volatile uint32_t *)0xE000ED88 |= 0xF << 20; /* the floating-point unit, and vectors where it has them */
  __asm__ volatile("dsb; isb");
#endif
  *(volatile uint32_t *)0xE000E014 = 0xFFFFFF; /* the timer, from its top, at the processor's clock */
  *(volatile uint32_t *)0xE000E018 = 0;
  *(volatile uint32_t *)0xE000E010 = 5;
  main();
  for (;;) semihosting(0x18, (void *)0x20026);
}}
static void fault(void) {{ say("fault\\n"); semihosting(0x18, (void *)0x20023); for (;;) {{ }} }}
__attribute__((section(".vectors"), used)) static void *const vectors[16] = {{
  stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault}};
{tensors}
int main(void) {{
{shapes}
  DLTensor inputs[] = {{{inputs}}}, outputs[] = {{{outputs}}};
  volatile uint32_t *const unused = (volatile uint32_t *)bss_end;
  uint32_t words = 0, begin, end;
  for (uint32_t k = 0; k < (uint32_t)((char *)__builtin_frame_address(0) - bss_end) / 4 - 16; k++) unused[k] = 0xA5A5A5A5;
  begin = *(volatile uint32_t *)0xE000E018;
  if ({name}_run(inputs, outputs)) {{ say({name}_last_error()); say("\\n"); return 1; }}
  end = *(volatile uint32_t *)0xE000E018;
  while (unused[words] == 0xA5A5A5A5) words++;
  say("ticks "); say_number((begin - end) & 0xFFFFFF);
  say("\\nstack "); say_number((uint32_t)((char *)__builtin_frame_address(0) - bss_end) - 4 * words); say("\\n");
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
    board, name, folder = BOARDS[cpu], made.stem, made.parent
    tensors, shapes, writes = [], [], []
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for k, a in enumerate(arrays):
            const, words = ("const ", _words(a)) if kind == "input" else ("", "")
            tensors.append(f"static {const}uint32_t {kind}{k}[{-(-a.nbytes // 4)}]{' = {' + words + '}' if words else ''};")
            shapes.append(f"  int64_t {kind}{k}_shape[] = {{{', '.join(map(str, a.shape))}}};")
            if kind == "output":
                writes.append(f"  for (unsigned k = 0; k < {-(-a.nbytes // 4)}; k++) {{ say(\"w \"); say_number(output{k}[k]); say(\"\\n\"); }}")
    listed = {kind: ", ".join(f"{name}_run_{kind}{k}((void *){kind}{k}, {kind}{k}_shape)" for k in range(len(arrays)))
              for kind, arrays in (("input", inputs), ("output", outputs))}
    (folder / "program.c").write_text(_PROGRAM.format(name=name, tensors="\n".join(tensors), shapes="\n".join(shapes), inputs=listed["input"],
                                                      outputs=listed["output"], writes="\n".join(writes)))
    (folder / "board.ld").write_text(_LINKER.format(code=board.code, memory=board.memory))
    subprocess.run([COMPILER, "-std=gnu99", "-O2", *board.options, *options, "-nostartfiles", "-Wl,--gc-sections", "-T", "board.ld", "program.c", made.name,
                    "-lm", "-o", "program.elf"], cwd=folder, check=True, timeout=TIMEOUT)
    command = [EMULATOR, "-M", board.board, "-nographic", "-icount", "shift=0", "-semihosting-config", "enable=on,target=native", "-kernel", "program.elf"]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    said = done.stdout + done.stderr
    assert "done" in said, said[-2000:]
    words = np.array([int(w) for w in re.findall(r"^w (\d+)$", said, re.M)], np.uint32)
    results, at = [], 0
    for a in outputs:
        count = -(-a.nbytes // 4)
        results.append(words[at : at + count].view(np.uint8)[: a.nbytes].view(a.dtype).reshape(a.shape))
        at += count
    number = lambda what: int(re.search(rf"{what} (\d+)", said)[1])
    return Run(results, round(board.tick * number("ticks")), number("stack"))


def _words(array: np.ndarray) -> str:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    padded = np.zeros(-(-raw.size // 4) * 4, np.uint8)
    padded[: raw.size] = raw
    return ", ".join(f"{w}u" for w in padded.view(np.uint32))
