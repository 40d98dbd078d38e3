# SPDX-License-Identifier: Apache-2.0
"""Where blocks of memory lie: those that fill a huge page begin at one."""

from __future__ import annotations

import ctypes
import platform

import pytest

from roundel.runtime import library, toolchain

HUGE_PAGE = 2 << 20


@pytest.mark.skipif(platform.system() != "Linux", reason="huge pages are asked for on Linux")
def test_blocks_that_fill_three_quarters_of_a_huge_page_begin_at_one(tmp_path):
    out = tmp_path / "os.so"
    toolchain.run([*toolchain.compiler(), "-std=gnu11", "-shared", "-fPIC", f"-I{library.source_dir()}", library.source_dir() / "os_posix.c", "-o", out])
    os = ctypes.CDLL(str(out))
    os.os_alloc.restype, os.os_alloc.argtypes, os.os_free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t]
    for nbytes, alignment in ((0, 64), (100, 64), (3 * HUGE_PAGE // 4, HUGE_PAGE), (HUGE_PAGE + 1, HUGE_PAGE), (2 * HUGE_PAGE - 1, HUGE_PAGE)):
        memory = os.os_alloc(nbytes)
        assert memory % alignment == 0
        ctypes.memset(memory, 1, nbytes)
        os.os_free(memory, nbytes)
    assert os.os_alloc(ctypes.c_size_t(-1).value) is None
