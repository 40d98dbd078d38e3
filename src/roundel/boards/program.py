# SPDX-License-Identifier: Apache-2.0
"""A program around one model: it reads inputs from a file, runs the model, writes outputs and the time of each run to files.

Of each tensor a file holds its dimensions (int64, little endian) and then its elements, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..build.header import entry_name
from ..ir.dtype import DType
from ..ir.errors import CallError
from ..runtime import toolchain
from ..runtime.metadata import FunctionInfo, TensorInfo

NAME = "model"
INPUTS, OUTPUTS, TIMES = "inputs", "outputs.out", "times.out"

_PROGRAM = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "model.h"

static int failed(const char *what) {
  fprintf(stderr, "%s\\n", what);
  return 1;
}

static int64_t bytes_of(const DLTensor *t) {
  int64_t count = 1;
  for (int i = 0; i < t->ndim; i++) count *= t->shape[i];
  return (count * t->dtype.bits * t->dtype.lanes + 7) / 8;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static DLTensor input(int i, void *data, int64_t *shape) {
  switch (i) {
@INPUTS@  default: abort();
  }
}

static DLTensor output(int i) {
  switch (i) {
@OUTPUTS@  default: abort();
  }
}

int main(int argc, char **argv) {
  int runs = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 0;
  DLTensor inputs[@MOST_INPUTS@], outputs[@MOST_OUTPUTS@];
  FILE *from = fopen("inputs", "rb"), *to = fopen("outputs.out", "wb"), *times = fopen("times.out", "wb");
  if (!from || !to || !times) return failed("the files of the run cannot be opened");
  if (threads && model_set_num_threads(threads)) return failed(model_last_error());
  for (int i = 0; i < @N_INPUTS@; i++) {
    int64_t *shape = calloc(16, sizeof *shape);
    if (!shape) return failed("not enough memory for the inputs");
    inputs[i] = input(i, 0, shape);
    if (fread(shape, sizeof *shape, (size_t)inputs[i].ndim, from) != (size_t)inputs[i].ndim) return failed("the inputs end too early");
    size_t n = (size_t)bytes_of(&inputs[i]);
    if (!(inputs[i].data = aligned_alloc(64, (n + 64) / 64 * 64))) return failed("not enough memory for the inputs");
    if (fread(inputs[i].data, 1, n, from) != n) return failed("the inputs end too early");
  }
  for (int run = 0; run < runs; run++) {
    for (int i = 0; i < @N_OUTPUTS@; i++) outputs[i] = output(i);
    double start = now();
    if (@ENTRY@(inputs, outputs)) return failed(model_last_error());
    double took = now() - start;
    fwrite(&took, sizeof took, 1, times);
    for (int i = 0; i < @N_OUTPUTS@; i++) {
      if (run == 0) {
        fwrite(outputs[i].shape, sizeof *outputs[i].shape, (size_t)outputs[i].ndim, to);
        fwrite(outputs[i].data, 1, (size_t)bytes_of(&outputs[i]), to);
      }
      model_release(&outputs[i]);
    }
  }
  model_close();
  return fclose(to) || fclose(times) ? failed("the outputs cannot be written") : 0;
}
"""


def make_program(model: Any, folder: Path, triple: str | None, *, library: bool = False) -> str:
    """Link a model's program in ``folder``, and return its name there; ``triple`` names another machine for the compiler. With ``library`` the model lies
    beside the program as a shared library. The program's arguments are how many times to run and how many threads (0: all cores). Raises BuildError."""
    info: FunctionInfo = model.function.info
    entry = entry_name(NAME, info.name)
    cases = {role: "".join(f"  case {k}: return {entry}_{role}{k}({given});\n" for k in range(len(tensors)))
             for role, tensors, given in (("input", info.inputs, "data, shape"), ("output", info.outputs, "0, 0"))}
    fields = {"ENTRY": entry, "INPUTS": cases["input"], "OUTPUTS": cases["output"], "N_INPUTS": len(info.inputs),
              "N_OUTPUTS": len(info.outputs), "MOST_INPUTS": max(len(info.inputs), 1), "MOST_OUTPUTS": max(len(info.outputs), 1)}
    text = _PROGRAM
    for name, value in fields.items():
        text = text.replace(f"@{name}@", str(value))
    made = model.save(folder / f"{NAME}{'.so' if library else '.o'}", header=True)
    (folder / "program.c").write_text(text)
    command = toolchain.program_compiler(triple, static=not library)
    beside = ("-Wl,-rpath,$ORIGIN",) if library else ()
    toolchain.run([*command, "-std=gnu11", "-O1", "-w", folder / "program.c", made, "-o", folder / "program", *beside, "-lm", "-lpthread"])
    for path in (folder / "program.c", folder / f"{NAME}.h", *(() if library else (made,))):
        path.unlink()
    return "program"


def write_tensors(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Arrays as the program reads them."""
    with path.open("wb") as sink:
        for array in arrays:
            sink.write(np.array(array.shape, "<i8").tobytes())
            sink.write(np.ascontiguousarray(array).tobytes())


def read_tensors(path: Path, infos: Sequence[TensorInfo]) -> list[np.ndarray]:
    """Arrays as the program wrote them; raises CallError for a file of another length."""
    content, at, out = path.read_bytes(), 0, []
    for info in infos:
        dtype = DType(info.dtype).numpy
        shape = tuple(int(n) for n in np.frombuffer(content, "<i8", len(info.shape), at)) if len(content) >= at + 8 * len(info.shape) else (-1,)
        at += 8 * len(info.shape)
        nbytes = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or len(content) < at + nbytes:
            raise CallError("the board sent back less than the model's outputs", why=f"{info.name}: {len(content)} bytes in all")
        out.append(np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape).copy())
        at += nbytes
    return out
