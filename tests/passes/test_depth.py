# SPDX-License-Identifier: Apache-2.0
"""Work on long models has room for deep recursion, and several threads that do such work do not take it from each other."""

import sys
import threading

import pytest

from roundel.builder import BlockBuilder
from roundel.ir import graph, tir
from roundel.ops import make
from roundel.passes.depth import with_room


def long_module(bindings):
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((tir.index_const(2),), "float32"))
    with bb.function("main", [x]):
        value = x
        for _ in range(bindings):
            value = bb.emit(make("exp", value))
        bb.emit_func_output(value)
    return bb.get()


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def test_results_and_errors_come_back_and_the_limit_stays():
    mod, limit = long_module(4000), sys.getrecursionlimit()
    assert with_room(mod, sys.getrecursionlimit) > 80_000  # from the first call of the work on
    assert with_room(mod, lambda: depth(80_000)) == 80_000
    with pytest.raises(ZeroDivisionError):
        with_room(mod, lambda: 1 / 0)
    assert sys.getrecursionlimit() == limit


def test_work_that_ends_in_one_thread_takes_no_room_from_another():
    mod, limit, found = long_module(4000), sys.getrecursionlimit(), []
    inside, ended = threading.Event(), threading.Event()

    def second():
        inside.set()
        ended.wait(10)
        return depth(80_000)

    other = threading.Thread(target=lambda: found.append(with_room(mod, second)))

    def first():
        other.start()
        inside.wait(0.3)  # it may have to wait for this to end

    with_room(mod, first)
    ended.set()
    other.join()
    assert found == [80_000]
    assert sys.getrecursionlimit() == limit
