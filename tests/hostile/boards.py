# SPDX-License-Identifier: Apache-2.0
"""Models as C source, called wrongly by programs of boards without a system, and by one here under the sanitizers: an error with a message, no fault.

A program calls a model with tensors of which one to three things are spoilt, without tensors at all, before it has its weights, with weights that are
damaged, short or out of place, and with less memory than the model needs. After each such call it calls the model rightly, which must give what this machine
gives; so must a spoilt call that is not refused. QEMU imitates the boards that are installed.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from tests.boards.microcontroller import BOARDS, TYPES, run_program
from tests.codegen.c_models import STRICT, sanitized

from .attempts import attempts

HERE = "this machine"
_SECONDS, _TOGETHER = 120, 60  # for one program, and how many spoilt calls it makes
_MEMORY = 1 << 13  # bytes that are enough for each model
_FIELDS = {
    "ndim": (-1, 0, 1, 3, 100, 2**31 - 1), "dtype.code": (0, 1, 2, 99), "dtype.bits": (0, 1, 16, 64, 255), "dtype.lanes": (0, 2, 65535),
    "shape[0]": (-1, -(2**62), 2**62, 2**33, 2**31, 0, 1, 5), "shape[1]": (-1, 0, 6, 8, 2**62, -(2**62)), "data": (0,), "shape": (0,),
    "byte_offset": (1, 2), "strides": ("apart", "compact"),
}

_COMMON = """
static void tell(const char *call, int status) {
  say("call "); say(call); say(status ? " refused " : " done ");
  say(status ? model_last_error() : "");
  say("\\n");
}
static int right(void) {
  const char *a = (const char *)y, *b = (const char *)wanted;
  for (size_t k = 0; k < sizeof wanted; k++)
    if (a[k] != b[k]) return 0;
  return 1;
}
static int64_t x_shape[4], y_shape[4], apart[4] = {1, 100, 1, 1}, compact[4];
static DLTensor t[2];
static void plain(void) {
  x_shape[0] = y_shape[0] = ROWS; x_shape[1] = DEPTH; y_shape[1] = COLUMNS;
  memset(y, 0, sizeof y);
  t[0] = model_run_input0((void *)(uintptr_t)x, x_shape);
  t[1] = model_run_output0(y, y_shape);
}
static void check(const char *call, int status) {
  tell(call, status);
  const int as_told = t[0].data == (void *)(uintptr_t)x && t[1].data == (void *)y && !t[0].byte_offset && !t[1].byte_offset;
  if (!status && x_shape[0] == ROWS && as_told && !right()) say("wrong result\\n");
  plain();
  if (model_run(t, &t[1])) { say("again "); say(model_last_error()); say("\\n"); }
  else if (!right()) say("again otherwise\\n");
  plain();
}
"""


@dataclass(frozen=True)
class Subject:
    """A model of rows of numbers with its input and what it gives on this machine; ``beside``: its weights are given by the program."""

    name: str
    content: bytes
    x: np.ndarray
    beside: bool = False


@cache
def subjects() -> tuple[Subject, ...]:
    """Floats of a number of rows that the call tells, with and without weights of their own, and bytes, of which several are loaded at a time."""
    rng = np.random.default_rng(5)
    tensor = lambda name, kind, size: helper.make_tensor_value_info(name, kind, ["n", size])
    made = lambda nodes, x, y, weights: helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(v, k) for k, v in weights.items()]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w"], ["y"])]
    small = lambda *shape: rng.integers(-4, 5, shape).astype("f") / 4  # whose products are exact on every machine
    floats = made(nodes, tensor("x", TensorProto.FLOAT, 7), tensor("y", TensorProto.FLOAT, 5), {"v": small(7, 16), "w": small(16, 5)})
    bytes_ = made([helper.make_node("MatMulInteger", ["x", "w"], ["y"])], tensor("x", TensorProto.INT8, 16), tensor("y", TensorProto.INT32, 8),
                  {"w": rng.integers(-128, 128, (16, 8)).astype("int8")})
    x = small(3, 7)
    return (Subject("floats", floats, x), Subject("floats with weights beside them", floats, x, beside=True),
            Subject("bytes", bytes_, rng.integers(-128, 128, (3, 16)).astype("int8")))


def installed() -> list[str]:
    """This machine, and the boards that can be imitated."""
    return [HERE, *(name for name, board in BOARDS.items() if not board.missing())]


def spoilt(count: int, rng: random.Random) -> list[str]:
    """Statements of C that spoil one to three things of tensors."""
    single = [f"t[{k}].{field} = {f'{value}LL' if field.startswith('shape[') else value};" for k in range(2) for field, values in _FIELDS.items()
              for value in values]
    single += ["t[0].data = (char *)x + 1;", "t[1].data = (char *)y + 1;", "t[1].data = t[0].data;", "t[1].data = (char *)x + 8;",
               "t[0].shape[0] = t[1].shape[0] = 0;", "t[0].shape[0] = t[1].shape[0] = 1 << 30;", "t[0].shape[0] = t[1].shape[0] = INT64_MAX / 28 + 1;",
               "t[0].shape[0] = t[1].shape[0] = 613566757;"]  # of 28 bytes: few modulo 2**32
    calls = list(single)
    while len(calls) < count:  # what follows a shape that is taken away would fault in the program itself
        calls.append(" ".join(sorted(rng.sample(single, rng.randint(2, 3)), key=lambda s: ".shape = 0" in s)))
    return rng.sample(calls, count)


def attack(count: int, seed: int, machines: Sequence[str] | None = None, least: bool = True) -> Iterator[str]:
    """``count`` spoilt calls of each model on each machine, and all ways to give it wrong weights and too little memory; ``least``: the least that is enough
    is looked for, by compiling with a dozen sizes."""
    rng, tried = random.Random(seed), installed() if machines is None else machines
    every = [(machine, subject) for machine in tried for subject in subjects()]
    for machine, subject in attempts(every):
        with tempfile.TemporaryDirectory() as folder:
            program = _Program(machine, subject, Path(folder))
            calls = spoilt(count, rng)
            found = [p for k in range(0, len(calls), _TOGETHER) for p in program.problems(_calls(calls[k : k + _TOGETHER]))]
            found += [*program.problems(_NO_TENSORS), *(program.short_of_memory() if least else ())]
            found += [*(program.problems(_WEIGHTS, ready=False) if subject.beside else ())]
            yield from (f"{subject.name} on {machine}: {problem}" for problem in found)


def _calls(spoiling: Sequence[str]) -> str:
    quoted = lambda text: text.replace("\\", "").replace('"', "")
    return "\n".join(f'{{ {s} check("{quoted(s)}", model_run(t, &t[1])); }}' for s in spoiling)


_NO_TENSORS = """
{ int status = model_run(0, &t[1]); check("no inputs", status); if (!status) say("wrong result\\n"); }
{ int status = model_run(t, 0); check("no outputs", status); if (!status) say("wrong result\\n"); }
{ int status = model_run(0, 0); check("no tensors", status); if (!status) say("wrong result\\n"); }
"""
_WEIGHTS = """
{ static uint64_t copy[sizeof weights / 8 + 2]; int status;
#define REFUSED(what, call) status = call; tell(what, status); if (!status) say("wrong result\\n");
  memcpy(copy, weights, sizeof weights);
  REFUSED("a run before there are weights", model_run(t, &t[1]))
  REFUSED("no weights", model_set_weights(0, NBYTES))
  REFUSED("a run after weights that were refused", model_run(t, &t[1]))
  REFUSED("a byte too few", model_set_weights(copy, NBYTES - 1))
  REFUSED("a byte too many", model_set_weights(copy, NBYTES + 1))
  REFUSED("none of the bytes", model_set_weights(copy, 0))
  memcpy((char *)copy + 1, weights, sizeof weights);
  REFUSED("a byte out of place", model_set_weights((char *)copy + 1, NBYTES))
  memset(copy, 0, sizeof copy);
  REFUSED("zeros", model_set_weights(copy, NBYTES))
  memcpy(copy, weights, sizeof weights);
  for (unsigned k = 0; k < NBYTES; k += 37) {
    ((char *)copy)[k] ^= 4;
    if (!model_set_weights(copy, NBYTES)) say("wrong result\\n");
    ((char *)copy)[k] ^= 4;
  }
  status = model_set_weights(weights, NBYTES);
  check("the weights", status ? status : model_run(t, &t[1]));
  REFUSED("zeros again", model_set_weights(0, NBYTES))
  check("the weights are still there", model_run(t, &t[1]));
}
"""


class _Program:
    """C programs around a model as source on one machine."""

    def __init__(self, machine: str, subject: Subject, folder: Path) -> None:
        self.machine, self.subject, self.folder = machine, subject, folder
        self.wanted = np.asarray(rd.compile(subject.content)(subject.x))
        target = "c -cores=1" if machine == HERE else machine
        rd.compile(subject.content, target=target).save(folder / "model.c", header=True, side_file=subject.beside)
        beyond = np.zeros(8, subject.x.dtype)  # what spoilt calls may read where the offset or address of bytes is another
        parts = [_array("x", np.concatenate([subject.x.ravel(), beyond])), _array("wanted", self.wanted),
                 f"static {TYPES[str(self.wanted.dtype)]} y[{self.wanted.size + 2}];"]
        sizes = {"ROWS": subject.x.shape[0], "DEPTH": subject.x.shape[1], "COLUMNS": self.wanted.shape[1]}
        if subject.beside:
            content = (folder / "model.weights").read_bytes()
            sizes["NBYTES"] = len(content)
            parts.append(_array("weights", np.frombuffer(content + bytes(-len(content) % 8), np.uint8), " __attribute__((aligned(64)))"))
        self.definitions = "\n".join([*(f"#define {k} {v}" for k, v in sizes.items()), *parts, _COMMON])

    def said(self, run: str, memory: int, ready: bool = True) -> str:
        """What a program says that runs statements. Raises AssertionError where it does not come to its end."""
        start = "plain();\n" + ("model_set_weights(weights, NBYTES);\n" if self.subject.beside and ready else "")
        options = (f"-DMODEL_MEMORY_BYTES={memory}",)
        if self.machine != HERE:
            return run_program(self.machine, self.folder, ["model.c"], '#include "model.h"', self.definitions, start + run, options=(*options, "-w"))[0]
        text = (f'#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n#include "model.h"\nstatic void say(const char *s) {{ fputs(s, stdout); }}\n'
                f'{self.definitions}\nint main(void) {{\n{start}{run}\n  say("done\\n");\n  return 0;\n}}\n')
        (self.folder / "program.c").write_text(text)
        strict = [*STRICT, "-O0", *sanitized("gcc"), *options]
        subprocess.run(["gcc", *strict, "-c", "model.c", "-o", "model.o"], cwd=self.folder, check=True, timeout=_SECONDS)
        subprocess.run(["gcc", "-std=gnu99", "-w", *sanitized("gcc"), "program.c", "model.o", "-lm", "-o", "program"], cwd=self.folder, check=True,
                       timeout=_SECONDS)
        done = subprocess.run([self.folder / "program"], capture_output=True, text=True, timeout=_SECONDS, check=False)
        assert done.returncode == 0 and "done" in done.stdout, (done.stdout + done.stderr)[-2000:]
        return done.stdout

    def problems(self, run: str, memory: int = _MEMORY, ready: bool = True) -> Iterator[str]:
        """What a program does otherwise than to refuse what is wrong and to compute what is right."""
        call = "the start"
        try:
            said = self.said(run, memory, ready)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            yield f"the program ends early: {str(error)[-600:]}"
            return
        for line in said.splitlines():
            if line.startswith("call "):
                call = line[5:]
                if " refused" in line and not line.partition(" refused ")[2].strip():
                    yield f"{call}: without a message"
            elif line.startswith(("again", "wrong")):
                yield f"{call}: {line}"

    def short_of_memory(self) -> Iterator[str]:
        """The least memory with which the model runs, found by halves; with less it says so, down to nothing."""
        run = 'check("the right call", model_run(t, &t[1]));'
        low, high = 8, _MEMORY
        while high - low > 1:
            middle = (low + high) // 2
            said = self.said(run, middle)
            if "call the right call done" in said:
                high = middle
            elif "memory" in said:
                low = middle
            else:
                yield f"with {middle} bytes of memory it says {said[-300:]}"
                return
            if "wrong" in said or "otherwise" in said:
                yield f"with {middle} bytes of memory: {re.findall('wrong result|again otherwise', said)}"


def _array(name: str, values: np.ndarray, extra: str = "") -> str:
    kind = {"uint8": "uint8_t"}.get(str(values.dtype)) or TYPES[str(values.dtype)]
    return f"static const {kind} {name}[{values.size}]{extra} = {{{', '.join(map(repr, values.reshape(-1).tolist()))}}};"
