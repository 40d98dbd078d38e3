# SPDX-License-Identifier: Apache-2.0
"""Signals while a model runs: handlers of the program run, and where one raises, the run ends and the model can be called again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

import roundel as rd
from roundel.runtime import library, toolchain

value, node, F32, I64, BOOL = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Alarm(Exception):
    """What the handler of these tests raises."""


def graph(nodes, inputs, outputs, constants=()):
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, list(constants)), opset_imports=[helper.make_opsetid("", 17)])


def counting():
    """A loop that adds one to a number."""
    one, true = helper.make_tensor("one", F32, [], [1.0]), helper.make_tensor("true", BOOL, [], [True])
    body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Add", ["sum", "one"], ["next"])], "body",
                             [value("i", I64, []), value("go", BOOL, []), value("sum", F32, [])], [value("on", BOOL, []), value("next", F32, [])], [one])
    model = graph([node("Loop", ["n", "true", "x"], ["y"], body=body)], [value("n", I64, []), value("x", F32, [])], [value("y", F32, [])], [true])
    return model, (np.int64(2**62), np.float32(0)), (np.int64(3), np.float32(0)), 3


def totals(rank):
    """The sum of ones in a shape that is an input."""
    model = graph([node("Expand", ["x", "shape"], ["e"]), node("ReduceSum", ["e"], ["y"], keepdims=0)],
                  [value("x", F32, [1]), value("shape", I64, [rank])], [value("y", F32, [])])
    one = np.ones(1, np.float32)
    return model, (one, np.array([2**44 >> 20 * (rank - 1), 2**20][:rank])), (one, np.array([2, 3][:rank])), 2 * 3 ** (rank - 1)


def differences():
    """Something of every pair of two long rows of numbers."""
    model = graph([node("Sub", ["x", "y"], ["d"]), node("Abs", ["d"], ["a"]), node("ReduceSum", ["a"], ["z"], keepdims=0)],
                  [value("x", F32, ["n", 1]), value("y", F32, [1, "m"])], [value("z", F32, [])])
    return model, (np.zeros((2**20, 1), np.float32), np.zeros((1, 2**20), np.float32)), (np.ones((2, 1), np.float32), np.zeros((1, 3), np.float32)), 6


def outer_products():
    """A sum in four loops, which lies in a register."""
    model = graph([node("Einsum", ["x"] * 4, ["y"], equation="a,b,c,d->")], [value("x", F32, ["n"])], [value("y", F32, [])])
    return model, (np.zeros(10000, np.float32),), (np.ones(2, np.float32),), 16


def recurrence():
    """Many steps of a small recurrent layer."""
    model = graph([node("RNN", ["x", "w", "r"], ["", "h"], hidden_size=8), node("ReduceSum", ["h"], ["y"], keepdims=0)],
                  [value("x", F32, ["t", 1, 8]), value("w", F32, [1, 8, 8]), value("r", F32, [1, 8, 8])], [value("y", F32, [])])
    weights = (np.zeros((1, 8, 8), np.float32),) * 2
    return model, (np.broadcast_to(np.float32(0), (2**22, 1, 8)), *weights), (np.zeros((2, 1, 8), np.float32), *weights), 0


def product():
    """A product of sizes that are known when it is compiled."""
    model = graph([node("MatMul", ["x", "w"], ["a"]), node("ReduceMax", ["a"], ["y"], keepdims=0)],
                  [value("x", F32, [6144, 6144]), value("w", F32, [6144, 6144])], [value("y", F32, [])])
    return model, (np.zeros((6144, 6144), np.float32),) * 2, None, None


LONG = {"loop": counting, "one dimension": lambda: totals(1), "two dimensions": lambda: totals(2), "pairs": differences, "four loops": outer_products,
        "recurrence": recurrence, "product": product}


@pytest.fixture
def alarm():
    """SIGALRM raises Alarm so many seconds later."""
    def ring(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", LONG)
def test_a_handler_that_raises_ends_a_long_run(kind, threads, alarm):
    model, long, short, expected = LONG[kind]()
    compiled = rd.compile(model, threads=threads)
    for _ in range(2):
        alarm(0.25)
        begun = time.perf_counter()
        with pytest.raises(Alarm):
            compiled(*long)
        assert time.perf_counter() - begun < 10  # half a second where nothing else runs; some of these would take hours
        if short is not None:
            assert compiled(*short) == expected


def test_a_saved_model_ends_too(tmp_path, alarm):
    model, long, short, expected = LONG["loop"]()
    rd.compile(model).save(tmp_path / "m.so")
    loaded = rd.load(tmp_path / "m.so")
    alarm(0.25)
    with pytest.raises(Alarm):
        loaded(*long)
    assert loaded(*short) == expected


def test_control_c_ends_a_program_with_its_own_exception():
    script = ("import os, signal, threading, time\nfrom runtime.test_interrupt import counting\nimport roundel as rd\n"
              "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a process in the background does not have
              "model, long, short, expected = counting()\nmodel = rd.compile(model)\n"
              "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
              "try:\n    model(*long)\nexcept KeyboardInterrupt as error:\n    assert model(*short) == expected\n    print('interrupted', error)\n")
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, env=environment)
    assert done.stdout == "interrupted \n" and done.stderr == ""


def test_a_handler_that_returns_lets_the_run_go_on():
    model = rd.compile(counting()[0])
    rings = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rings.append(float(model(np.int64(3), np.float32(0)))))  # may call the model itself
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        while len(rings) < 3:
            assert model(np.int64(2**25), np.float32(0)) == 2**24  # where a float32 ends counting
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(rings) == {3}


@pytest.mark.slow
def test_handlers_run_while_arguments_are_copied():
    """Columns of 512 MB that lie as rows: the copy takes most of the call."""
    first = graph([node("Gather", ["x", "zero"], ["y"])], [value("x", F32, ["n", "m"])], [value("y", F32, ["m"])], [helper.make_tensor("zero", I64, [], [0])])
    model, columns, rings = rd.compile(first, threads=1), np.ones((2**13, 2**14), np.float32).T, []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rings.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        np.testing.assert_array_equal(model(columns), np.ones(2**13, np.float32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rings) > 2  # one would be the last, when the call is over


def test_runs_of_other_threads_are_not_ended(alarm):
    """Python runs handlers in its main thread, which alone asks."""
    model = rd.compile(counting()[0])
    out = []
    thread = threading.Thread(target=lambda: out.append(model(np.int64(2**26), np.float32(0))))
    thread.start()
    alarm(0.1)
    with pytest.raises(Alarm):
        model(np.int64(2**62), np.float32(0))
    thread.join()
    assert out == [2**24]


PROGRAM = r"""
#include <stdio.h>
#include "counting.h"
#define CHECK(x) do { if (!(x)) return printf("failed: %s (%s)\n", #x, counting_last_error()), 1; } while (0)

static int enough(void *user) { return ++*(int *)user >= 2; }

int main(void) {
  int64_t long_run = INT64_C(1) << 62, short_run = 3;
  int asked = 0;
  float x = 0, y = -1;
  DLTensor in[] = {counting_run_input0(&long_run, NULL), counting_run_input1(&x, NULL)}, out = counting_run_output0(&y, NULL);
  CHECK(counting_set_interrupt(enough, &asked) == RD_OK);
  CHECK(counting_run(in, &out) == RD_INTERRUPTED && asked == 2);
  in[0] = counting_run_input0(&short_run, NULL);
  CHECK(counting_run(in, &out) == RD_OK && y == 3 && asked == 2);
  CHECK(counting_set_interrupt(NULL, NULL) == RD_OK);
  puts(counting_last_error());
  return 0;
}
"""


def test_a_program_in_c_ends_a_run_by_a_function_that_is_asked(tmp_path):
    rd.compile(counting()[0]).save(tmp_path / "counting.so", header=True)
    (tmp_path / "main.c").write_text(PROGRAM)
    toolchain.run([*toolchain.compiler(), "-std=c11", "-Wall", "-Werror", f"-I{library.source_dir()}", tmp_path / "main.c", tmp_path / "counting.so",
                   "-Wl,-rpath,$ORIGIN", "-o", tmp_path / "main"])
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "the run was interrupted\n", done.stdout + done.stderr
