# SPDX-License-Identifier: Apache-2.0
"""A C program gives a saved model an index that is not a position: status and message, and the model goes on working."""

import subprocess

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.runtime import toolchain

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "rows.h"

int main(void) {
  static float x[10], y[5000];
  static int64_t i[5000];
  int64_t n[] = {10}, k[] = {5000};
  for (int j = 0; j < 10; j++) x[j] = j;
  for (int j = 0; j < 5000; j++) i[j] = j % 10;
  DLTensor inputs[] = {rows_run_input0(x, n), rows_run_input1(i, k)}, out = rows_run_output0(y, k);
  for (int round = 0; round < 3; round++) {
    i[4321] = INT64_C(1) << 40;
    printf("%d %s\n", rows_run(inputs, &out) == RD_RUNTIME_ERROR, rows_last_error());
    i[4321] = -1;
    if (rows_run(inputs, &out) || y[4321] != 9 || y[4322] != 2) return 1;
  }
  return 0;
}
"""


def test_status_and_message(tmp_path):
    n, k = tir.Var("n", INT64, True), tir.Var("k", INT64, True)
    params = [graph.Var("x", graph.TensorInfo((n,), "float32")), graph.Var("i", graph.TensorInfo((k,), "int64"))]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(make("take", *params, axis=0)))
    rd.compile(bb.get()).save(tmp_path / "rows.so", header=True)
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = tmp_path / "main.c", tmp_path / "rows.so"
    toolchain.run([*toolchain.compiler(), "-std=c11", "-Wall", "-Werror", *sources, "-Wl,-rpath,$ORIGIN", "-o", tmp_path / "main"])
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "1 R.take: index 1099511627776 at position 4321 is not in [-10, 10)\n" * 3
