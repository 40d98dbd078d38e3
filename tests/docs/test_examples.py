# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("rapidocr") is None, reason="its models come with the package rapidocr")
def test_read_text():
    done = subprocess.run([sys.executable, str(EXAMPLES / "read_text.py"), "--repeat", "1"], capture_output=True, text=True, timeout=280, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Orange juice 4.20" in done.stdout and "upside down (335x108): Roundel" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="its model is one of the package transformers")
def test_sentence_embeddings(tmp_path):
    program = str(EXAMPLES / "sentence_embeddings.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=280, env=dict(os.environ), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 sentences of up to 14 tokens" in done.stdout and (tmp_path / "embedding.so").exists()


def test_regions_of_read_text():
    pytest.importorskip("PIL")
    spec = importlib.util.spec_from_file_location("read_text", EXAMPLES / "read_text.py")
    example = importlib.util.module_from_spec(spec)
    sys.modules["read_text"] = example  # where dataclasses look for their module
    spec.loader.exec_module(example)
    mask = np.array([
        [1, 0, 1, 0, 0, 0],
        [1, 0, 1, 0, 1, 1],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
    ], bool)
    assert sorted(example.regions(mask)) == [(0, 3, 0, 3), (1, 2, 4, 6), (3, 4, 4, 5)]
