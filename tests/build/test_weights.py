# SPDX-License-Identifier: Apache-2.0
"""Weights are written in order, whole, and with the digest of what was written, however many blocks they fill."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from roundel.build.weights import BLOCKS, Pieces, write_side_file
from roundel.runtime.integrity import BLOCK, DIGEST


@pytest.mark.parametrize("nbytes", [0, 5, BLOCK, (BLOCKS + 1) * BLOCK + 3])
def test_a_side_file_has_every_piece_at_its_place(tmp_path, nbytes):
    content = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    middle = nbytes // 3
    expected = content.copy()
    expected[middle : middle + 2] = 0  # between pieces
    pieces = [(0, lambda: memoryview(content)[:middle]), (middle + 2, lambda: memoryview(content)[middle + 2 :])] if nbytes > 5 else []
    if not pieces:
        expected[:] = 0
    digest = write_side_file(Pieces(nbytes, pieces), tmp_path / "weights")
    written = (tmp_path / "weights").read_bytes()
    blocks = [hashlib.sha256(expected[k : k + BLOCK].tobytes()).digest() for k in range(0, nbytes, BLOCK)]
    assert written[:-DIGEST] == expected.tobytes() and written[-DIGEST:].decode() == digest == hashlib.sha256(b"".join(blocks)).hexdigest()


def test_a_disk_that_refuses_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def write(self, block):
            raise OSError("no space left on device")

    path = tmp_path / "weights"
    monkeypatch.setattr(type(path), "open", lambda self, mode: Full())
    with pytest.raises(OSError, match="no space"):
        write_side_file(bytes(2 * BLOCKS * BLOCK), path)
    assert not path.exists()
