# SPDX-License-Identifier: Apache-2.0
"""Models in C programs that call them wrongly, run out of memory or lose their weights, on this and on emulated machines: an error, no signal.

A program calls a model with tensors of which one to three fields are spoilt, and with an allocation that fails; after each it calls the model
rightly, which must give what it gave before. Others start beside weights that are missing, short, or another model's. The model is an object or
a shared library here and on each machine that an emulator imitates, C source, and a DLL where Wine is installed.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.build.link import foreign_triple
from roundel.ir.processors import family_of
from roundel.runtime import toolchain
from tests.boards.machines import MACHINES

from .attempts import attempts

WINDOWS = "Windows"
_SECONDS, _TOGETHER = 120, 40  # for one program, and how many spoilt calls it makes
_TOO_MANY = {64: (2**64 // 28 + 1, 2**61 + 1), 32: (2**32 // 28 + 1, 2**31)}  # rows that no memory has; the bytes of the first are few modulo 2**64, 2**32
_FIELDS: dict[str, tuple[int, ...]] = {
    "ndim": (-1, 0, 1, 3, 100, 2**31 - 1), "code": (0, 1, 3, 99), "bits": (0, 1, 16, 64, 255), "lanes": (0, 2, 65535), "device": (2, -1),
    "rows": (-1, -(2**63), 2**63 - 1, 2**62, 2**33, 0), "columns": (-1, 0, 6, 8, 2**62, -(2**63)),
    "data": (0,), "shape": (0,),
}

_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
static float numbers[3 * 7], memory[64], first[15];
static int64_t shapes[2][4];
static DLTensor t[2];
static long countdown = -1;
#ifdef FAILING
static int fails(void) { return countdown >= 0 && countdown-- == 0; }
void *__real_malloc(size_t); void *__real_calloc(size_t, size_t); int __real_posix_memalign(void **, size_t, size_t);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t k, size_t n) { return fails() ? NULL : __real_calloc(k, n); }
int __wrap_posix_memalign(void **p, size_t a, size_t n) { return fails() ? 12 : __real_posix_memalign(p, a, n); }
#endif
static void plain(void) {
  shapes[0][0] = shapes[1][0] = 3;
  shapes[0][1] = 7;
  shapes[1][1] = 5;
  memset(memory, 0, sizeof memory);
  t[0] = model_run_input0(numbers, shapes[0]);
  t[1] = model_run_output0(memory, shapes[1]);
}
static void spoil(const char *what, long long value) {
  DLTensor *it = &t[what[0] == 'y'];
  what += 2;
  if (!strcmp(what, "ndim")) it->ndim = (int32_t)value;
  if (!strcmp(what, "code")) it->dtype.code = (uint8_t)value;
  if (!strcmp(what, "bits")) it->dtype.bits = (uint8_t)value;
  if (!strcmp(what, "lanes")) it->dtype.lanes = (uint16_t)value;
  if (!strcmp(what, "device")) it->device.device_type = (int)value;
  if (!strcmp(what, "rows")) it->shape[0] = value;
  if (!strcmp(what, "columns")) it->shape[1] = value;
  if (!strcmp(what, "data")) it->data = NULL;
  if (!strcmp(what, "shape")) it->shape = NULL;
}
int main(int argc, char **argv) {
  for (int i = 0; i < 21; i++) numbers[i] = (float)(i % 5) - 2;
  plain();
  int status = model_run(t, &t[1]);
  if (status) return printf("cannot run %d: %s\n", status, model_last_error()), 0;
  memcpy(first, memory, sizeof first);
  for (int i = 0; i < 15; i++) printf("%.6f ", first[i]);
  printf("\n");
  fflush(stdout);
  for (int k = 1; k < argc; k++) {
    char given[200], *part;
    strncpy(given, argv[k], sizeof given - 1);
    given[199] = 0;
    plain();
    for (part = strtok(given, ","); part; part = strtok(NULL, ",")) {
      char *value = strchr(part, '=');
      *value++ = 0;
      if (!strcmp(part, "fail")) countdown = strtol(value, NULL, 10);
      else spoil(part, strtoll(value, NULL, 10));
    }
#ifdef FAILING
    model_close();
#endif
    void *before = t[1].data;
    status = model_run(t, &t[1]);
    countdown = -1;
    printf("%d: %s\n", status, status ? model_last_error() : "");
#ifndef SOURCE
    if (!status && !before) model_release(&t[1]);
#endif
    plain();
    status = model_run(t, &t[1]);
    printf(status || memcmp(first, memory, sizeof first) ? "again otherwise\n" : "again the same\n");
    fflush(stdout);
  }
  return 0;
}
"""


@dataclass(frozen=True)
class Made:
    """A program, how it is called, whether allocations can fail in it, and its side file of weights (None: they are in it)."""

    name: str
    command: tuple[str, ...]
    failing: bool = False
    weights: Path | None = None
    bits: int = 64


@cache
def network(seed: int = 0) -> Any:
    """Rows of seven numbers through two products with weights."""
    rng = np.random.default_rng(seed)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype("f"), n) for n, s in (("v", (7, 64)), ("w", (64, 5)))]
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w"], ["y"])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 7), ("y", 5))]
    return helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights), opset_imports=[helper.make_opsetid("", 17)])


def programs(folder: Path, machines: Sequence[str]) -> Iterator[Made]:
    """All kinds of files on this machine, and objects and libraries on the emulated ones, or DLLs."""
    compiled = rd.compile(network())
    yield _linked(folder / "object", compiled, "object", (), (), failing=True)
    yield _linked(folder / "library", compiled, "library", (), (), side_file=True)
    yield _linked(folder / "object-beside", compiled, "object", (), (), side_file=True)
    yield _linked(folder / "source", rd.compile(network(), target="c -cores=1"), "C source", (), ("-DSOURCE", "-DMODEL_MEMORY_BYTES=65536"))
    if WINDOWS in machines:
        dll = rd.compile(network(), target="x86_64-windows")
        for side_file in (False, True):
            yield _linked(folder / f"dll{side_file}", dll, "DLL", ("wine",), (), side_file=side_file)
    for name in (m for m in machines if m != WINDOWS):
        machine = MACHINES[name]
        there = rd.compile(network(), target=machine.target)
        yield _linked(folder / f"{name} object", there, f"object on {name}", tuple(machine.command.split()), (), failing=True)
        if machine.library_threads is None:
            yield _linked(folder / f"{name} library", there, f"library on {name}", tuple(machine.with_libraries.split()), (), side_file=True)


def _linked(folder: Path, model: Any, name: str, command: tuple[str, ...], options: Sequence[str], *, failing: bool = False, side_file: bool = False) -> Made:
    folder.mkdir()
    kind = name.split()[0]
    ending = {"object": "o", "library": "so", "C": "c", "DLL": "dll"}[kind]
    made = model.save(folder / f"model.{ending}", header=True, side_file=side_file)
    (folder / "program.c").write_text(_PROGRAM)
    triple = None if kind == "C" else foreign_triple(model.metadata.get("triple"))
    compiler = toolchain.compiler(triple) if kind == "DLL" else toolchain.program_compiler(triple, static=kind == "object")
    wrapped = ("-DFAILING", "-Wl,--wrap=malloc,--wrap=calloc,--wrap=posix_memalign") if failing else ()
    beside = ("-lm",) if kind in ("DLL", "C") else ("-Wl,-rpath,$ORIGIN", "-lm", "-lpthread")
    program = folder / ("program.exe" if kind == "DLL" else "program")
    toolchain.run([*compiler, "-std=gnu11", "-O1", "-w", *options, *wrapped, folder / "program.c", made, "-o", program, *beside])
    weights = next((p for p in folder.iterdir() if p.name.endswith(".weights")), None)
    bits = 32 if family_of(model.metadata.get("triple") or "") in ("i686", "arm") else 64
    return Made(f"{name}{' with weights beside it' if weights else ''}", (*command, str(program)), failing, weights, bits)


def spoilt(count: int, rng: random.Random, bits: int) -> list[str]:
    """Calls in which one to three fields of the input and the output are other than they should be, on a machine with addresses of so many bits."""
    single = [f"{tensor}.{field}={value}" for tensor in "xy" for field, values in _FIELDS.items() for value in values]
    both = [f"x.rows={value},y.rows={value}" + empty for value in (*_TOO_MANY[64], *_TOO_MANY[bits], -1, 0) for empty in ("", ",y.data=0")]
    calls = single + both
    while len(calls) < count:
        chosen = rng.sample(single, rng.randint(2, 3))
        calls.append(",".join(sorted(chosen, key=lambda c: c.split("=")[0].endswith("shape"))))
    return rng.sample(calls, count)


def installed() -> list[str]:
    """The machines that can be tried here beside this one."""
    has_wine = shutil.which("wine") and shutil.which("x86_64-w64-mingw32-gcc")
    return [name for name, machine in MACHINES.items() if not machine.missing()] + ([WINDOWS] if has_wine else [])


def attack(count: int, seed: int, machines: Sequence[str] | None = None) -> Iterator[str]:
    """``count`` spoilt calls of each program, every allocation of a run that fails, and every kind of wrong weights."""
    rng, tried = random.Random(seed), installed() if machines is None else machines
    right = " ".join(f"{v:.6f}" for v in rd.compile(network())(_numbers()).ravel())
    with tempfile.TemporaryDirectory() as folder:
        for made in attempts(programs(Path(folder), tried)):
            calls = spoilt(count, rng, made.bits) + [f"fail={k}" for k in range(24 if made.failing else 0)]
            for k in range(0, len(calls), _TOGETHER):
                yield from (f"{made.name}: {problem}" for problem in _problems(made, calls[k : k + _TOGETHER], right))
            if made.weights is not None:
                yield from (f"{made.name}: {problem}" for problem in _without_weights(made, made.weights))


def _numbers() -> np.ndarray:
    return ((np.arange(21) % 5) - 2).astype("f").reshape(3, 7)


def _run(made: Made, calls: Sequence[str]) -> tuple[int, list[str]]:
    quiet = {**os.environ, "WINEDEBUG": "-all"}
    done = subprocess.run([*made.command, *calls], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False, env=quiet)
    return done.returncode, done.stdout.splitlines()


def _problems(made: Made, calls: Sequence[str], right: str) -> Iterator[str]:
    """What a program does otherwise than to refuse what is wrong and to compute what is right."""
    try:
        status, lines = _run(made, calls)
    except subprocess.TimeoutExpired:
        yield f"one of {calls} does not end"
        return
    if not lines or not np.allclose([float(v) for v in lines[0].split() if _is_number(v)] or [np.nan], [float(v) for v in right.split()], atol=1e-4):
        yield f"the right call gives {lines[:1]}"
        return
    said = list(zip(calls, lines[1::2], lines[2::2]))
    if status or len(said) < len(calls):
        yield f"{calls[len(said)] if len(said) < len(calls) else 'the end'} ends the program with status {status}"
    for call, answer, again in said:
        number, _, message = answer.partition(": ")
        if number != "0" and not message.strip():
            yield f"{call} is refused with status {number} and no message"
        if again != "again the same":
            yield f"{call} ({answer}) changes what later calls give"


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def _without_weights(made: Made, weights: Path) -> Iterator[str]:
    """The program beside weights that are not those of its model."""
    content = weights.read_bytes()
    damages = {"are missing": None, "are empty": b"", "end a byte early": content[:-1], "are half there": content[: len(content) // 2],
               "have a byte behind them": content + b"\0", "are another model's": content[:-64] + b"0" * 64, "are their digest alone": content[-64:]}
    for what, damaged in damages.items():
        weights.unlink()
        if damaged is not None:
            weights.write_bytes(damaged)
        status, lines = _run(made, ())
        if status or not lines or not lines[0].startswith("cannot run") or not lines[0].partition(": ")[2].strip():
            yield f"with weights that {what} it ends with status {status} and says {lines[:1]}"
        weights.write_bytes(content)
    weights.unlink()
    weights.mkdir()
    status, lines = _run(made, ())
    if status or not lines or not lines[0].startswith("cannot run"):
        yield f"with a folder for its weights it ends with status {status} and says {lines[:1]}"
    weights.rmdir()
    weights.write_bytes(content)
