# SPDX-License-Identifier: Apache-2.0
"""What a C program can do with a model besides running it: threads, versions, closing, error codes."""

from __future__ import annotations

import os
import subprocess

import pytest

import roundel
from roundel.build.header import write_header
from roundel.build.link import link
from roundel.runtime import toolchain
from runtime.native_module import WEIGHT, compile_module, graph_info

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "small.h"
#define CHECK(x) do { if (!(x)) return printf("failed: %s (%s)\n", #x, small_last_error()), 1; } while (0)

int main(int argc, char **argv) {
  float x[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}}, y[2][4];
  int64_t shape[] = {2, 4}, wrong[] = {2, 3};
  DLTensor in = small_scale_input0(x, shape), out = small_scale_output0(y, shape);
  if (argc > 1) { /* the environment is wrong */
    int status = small_scale(&in, &out);
    printf("%d %s", status, small_last_error());
    small_set_num_threads(1);
    return 0;
  }
  CHECK(small_abi() == SMALL_ABI && strcmp(small_version(), "VERSION") == 0);
  CHECK(small_set_num_threads(3) == RD_OK && small_num_threads() == 3); /* before the first run */
  CHECK(small_scale(&in, &out) == RD_OK && y[1][3] == 18 && small_num_threads() == 3);
  CHECK(small_set_num_threads(2) == RD_OK && small_num_threads() == 2 && small_scale(&in, &out) == RD_OK);
  CHECK(small_set_num_threads(-1) == RD_VALUE_ERROR && strstr(small_last_error(), "-1") && small_num_threads() == 2);
  CHECK(small_set_num_threads(100000) == RD_OK && small_num_threads() > 3 && small_scale(&in, &out) == RD_OK);
  CHECK(small_set_num_threads(0) == RD_OK && small_num_threads() == 5); /* the environment's */
  in.shape = wrong;
  CHECK(small_scale(&in, &out) == RD_VALUE_ERROR);
  in.shape = shape, in.dtype.bits = 64;
  CHECK(small_scale(&in, &out) == RD_TYPE_ERROR);
  in = small_scale_input0(x, shape);
  for (int i = 0; i < 3; i++) {
    small_close();
    CHECK(small_scale(&in, &out) == RD_OK && y[1][3] == 18);
  }
  small_close();
  small_close();
  puts("ok");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    link([compile_module(folder).read_bytes()], WEIGHT.tobytes(), folder / "small.so", functions=["scale"])
    write_header(folder / "small.h", [f for f in graph_info() if f.name == "scale"])
    (folder / "main.c").write_text(PROGRAM.replace("VERSION", roundel.__version__))
    toolchain.run([*toolchain.compiler(), "-std=c11", "-Wall", "-Werror", folder / "main.c", folder / "small.so", "-Wl,-rpath,$ORIGIN", "-o", folder / "main"])
    return folder / "main"


def test_threads_versions_closing_and_error_codes(program):
    done = subprocess.run([program], capture_output=True, text=True, check=False, env={**os.environ, "ROUNDEL_NUM_THREADS": "5"})
    assert done.stdout == "ok\n" and done.returncode == 0


@pytest.mark.parametrize("value", ["abc", "-1", "3 threads", "1e3", "99999999999999999999"])
def test_a_number_of_threads_that_is_none_is_an_error(program, value):
    done = subprocess.run([program, "wrong"], capture_output=True, text=True, check=True, env={**os.environ, "ROUNDEL_NUM_THREADS": value})
    assert done.stdout == f"2 ROUNDEL_NUM_THREADS is '{value}', a whole number is wanted"


def test_both_headers_in_one_file(program):
    source = program.parent / "both.c"
    source.write_text('#include "small.h"\n#include "roundel.h"\n#include "small.h"\n'
                      'int main(void) { return roundel_abi() == RD_ABI ? RD_OK : RD_TYPE_ERROR; }\n')
    from roundel.runtime import library

    for language in ("c", "c++"):
        toolchain.run([*toolchain.compiler(), "-x", language, "-Wall", "-Wno-unused-function", "-Werror", "-fsyntax-only",
                       f"-I{library.source_dir()}", f"-I{program.parent}", source])
