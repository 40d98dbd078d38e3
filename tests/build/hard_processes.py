# SPDX-License-Identifier: Apache-2.0
"""Processes in which linking in memory is hard. Each function is a case; it fails by an error, or by the end of its process."""

from __future__ import annotations

import gc
import mmap
import resource
import threading

import numpy as np
import pytest
from flat_programs import c, func, loop

from roundel.build import compile_module
from roundel.ir import IRModule, Var, decl_buffer, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import BuildError

COUNT = 1000


def built():
    """y = x + 1 + 2 + ... + 1000, one addition after the other: some pages of code, and constants and descriptors of less than a page."""
    A, B, i = decl_buffer((8,), "float32", "A"), decl_buffer((8,), "float32", "B"), Var("i", INT64)
    steps = [tir.BufferStore(B, (B if k else A)[i] + float(k + 1), (i,)) for k in range(COUNT)]
    return compile_module(IRModule({"main": func([A, B], loop(i, c(8), tir.seq(*steps)))}), pipeline=())


def check(linked):
    x, y = np.arange(8, dtype="f"), np.zeros(8, "f")
    linked["main"](x, y)
    assert (y == x + COUNT * (COUNT + 1) // 2).all()


def taken(nbytes):
    """Addresses that nothing else gets, without memory behind them."""
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)


def holes_far_from_the_rest():
    """Holes of one and two pages, and everything else below 8 GB that are taken: as after libraries of gigabytes were loaded."""
    code = built()
    pages = [taken(mmap.PAGESIZE) for _ in range(3200)]
    between = taken(8 << 30)
    for start in range(0, len(pages), 8):
        for page in pages[start : start + 1 + start // 8 % 2]:
            page.close()
    for linked in [code.load() for _ in range(200)]:
        check(linked)
    between.close()


def no_memory():
    """The memory for code ends; what was dropped is there again."""
    code = built()
    small = [bytearray(100_000) for _ in range(300)]  # the heap's, which LLVM's own small blocks need
    last = bytearray(100_000)
    with open("/proc/self/statm") as used:
        limit = int(used.read().split()[0]) * mmap.PAGESIZE + (2 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    small.clear()
    kept = []
    with pytest.raises((BuildError, MemoryError)):
        while len(kept) < 10_000:
            kept.append(code.load())
    del kept[1:], last
    check(kept[0])
    check(code.load())


def threads_that_collect_garbage():
    """Code is unloaded by the collector, at any moment in any thread, while others link, run and load saved files."""
    code, failed = built(), []

    def work(number):
        try:
            for _ in range(25):
                held = [code.load()]
                held.append(held)  # only the collector drops it
                check(held[0])
        except BaseException as error:
            failed.append(error)

    gc.set_threshold(10)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
