# SPDX-License-Identifier: Apache-2.0
"""A model gives the same file whenever, wherever and in whichever process it is compiled: files can be compared, and found again by their digest."""

import os
import subprocess
import sys
import time

import pytest
from onnx import helper
from tests.codegen.c_models import convolutions, dense, onnx_model

import roundel as rd
from roundel.build.link import linker_of
from roundel.target import Target

SMALL = onnx_model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [4])}, {"y": ("float32", [4])})
FILES = (("x86-64-v3", "m.so"), ("x86-64", "m.o"), ("cortex-a72", "m.so"), ("cortex-a72", "m.o"), ("cortex-a7", "m.so"), ("rv64gcv", "m.so"),
         ("x86_64-windows", "m.dll"), ("aarch64-macos", "m.dylib"), ("wasm32", "m.wasm"), ("c", "m.c"), ("cortex-m4", "m.c"))
_IN_A_PROCESS = """
import hashlib, sys
from pathlib import Path
import roundel as rd
for model in sys.argv[2:4]:
    for target, name in (pair.split("=") for pair in sys.argv[4:]):
        made = rd.compile(model, target=target).save(Path(sys.argv[1], name))
        print(Path(model).name, target, name, hashlib.sha256(made.read_bytes()).hexdigest())
"""


def linked_here(target):
    machine = Target(target)
    return machine.kind == "c" or linker_of(machine.triple) is not None


@pytest.mark.parametrize("target, name", FILES)
def test_a_file_tells_neither_when_nor_where_it_was_linked(target, name, tmp_path):
    if not linked_here(target):
        pytest.skip("needs a linker for that machine")
    model, made = rd.compile(SMALL, target=target), []
    for folder in (tmp_path / "one", tmp_path / "the-other"):
        folder.mkdir()
        made.append(model.save(folder / name).read_bytes())
        time.sleep(1.1 if name.endswith("dll") else 0)  # seconds are what its format has room for
    assert made[0] == made[1] and b"roundel-link" not in made[0] and b".debug_info" not in made[0]


@pytest.mark.slow
def test_processes_agree(tmp_path):
    """Whatever the order of their sets, and with nothing in the cache."""
    for name, model in (("convolutions.onnx", convolutions), ("dense.onnx", dense)):
        (tmp_path / name).write_bytes(model()[0])
    said = []
    for seed in ("1", "2"):
        files = [f"{target}={name}" for target, name in FILES if linked_here(target)]
        command = [sys.executable, "-c", _IN_A_PROCESS, tmp_path, tmp_path / "convolutions.onnx", tmp_path / "dense.onnx", *files]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "ROUNDEL_CACHE_DIR": str(tmp_path / f"cache{seed}")}
        said.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600).stdout.splitlines())
    assert said[0] == said[1] and len(said[0]) == 2 * len(files)
