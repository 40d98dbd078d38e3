# SPDX-License-Identifier: Apache-2.0
"""Where long loops ask whether to go on: as far inside as costs nothing, never where registers would be spilled, not at all in small programs."""

from __future__ import annotations

import re

import pytest

import roundel as rd
from roundel.lower import PIPELINE, checkpoints, lower
from roundel.script import parse

HEAD = "@T.prim_func\ndef f({params}):\n    T.func_attr({{'global_symbol': 'f'}})\n"


def program(params: str, *lines: str):
    return rd.IRModule({"f": parse("from roundel.script import tir as T\n" + HEAD.format(params=params) + "\n".join("    " + line for line in lines) + "\n")})


def text(mod) -> str:
    return lower(mod)["f"].script()


def nest(text: str) -> str:
    """Loops and checkpoints only, by their indentation."""
    return "\n".join(re.sub(r"(for \w+) in range\(.*", r"\1", line).rstrip(":") for line in text.splitlines() if re.match(r"\s*(for|T\.checkpoint)", line))


MATRIX = "a: T.handle, b: T.handle"
SIZES = ("n = T.int64()", "m = T.int64()", "A = T.match_buffer(a, (n, m), 'float32')", "B = T.match_buffer(b, (n,), 'float32')")


def test_a_loop_over_rows_asks_after_each_row():
    made = text(program(MATRIX, *SIZES, "for i in range(n):", "    for j in range(m):", "        B[i] = B[i] + A[i, j]"))
    assert re.fullmatch(r"    for i\n        for j\n        T\.checkpoint\(.*\bm\b.*\)", nest(made)), made


def test_an_innermost_loop_that_stands_alone_runs_in_blocks():
    made = text(program("b: T.handle", "n = T.int64()", "B = T.match_buffer(b, (n,), 'float32')", "for i in range(n):", "    B[i] = B[i] * B[i]"))
    assert nest(made) == "    for i_block\n        for i\n        T.checkpoint(65536)"


@pytest.mark.parametrize("size", [100, 1 << 40])
def test_known_sizes_ask_only_where_they_are_large(size):
    made = text(program(f"A: T.Buffer(({size},), 'float32'), B: T.Buffer((1,), 'float32')", f"for i in range({size}):", "    B[0] = B[0] + A[i]"))
    assert ("checkpoint" in made) == (size > 100)


def test_no_loop_asks_around_which_a_value_is_kept_in_a_register():
    made = text(program(MATRIX, *SIZES, "for i in range(n):", "    s = T.alloc_buffer((1,), scope='local')", "    s[0] = T.float32(0)",
                        "    for j in range(m):", "        for k in range(2000):", "            s[0] = s[0] + A[i, j]", "    B[i] = s[0]"))
    assert re.fullmatch(r"    for i\n            for j, k.*\n        T\.checkpoint\(.*\bm\b.*\)", nest(made)), made


def test_the_pass_leaves_small_programs_as_they_are():
    mod = program("B: T.Buffer((64,), 'float32')", "for i in range(64):", "    B[i] = B[i] * B[i]")
    for step in PIPELINE[: PIPELINE.index(checkpoints)]:
        mod = step(mod)
    assert checkpoints(mod) is mod
