# SPDX-License-Identifier: Apache-2.0
"""Models for processors without a system: objects need three functions, figures are those of the object, and what does not fit is refused."""

import shutil
import subprocess

import pytest
from c_models import dense, quantised

import roundel as rd
from roundel.build import bare_metal
from roundel.ir.errors import BuildError, MachineError, OptionError

pytest.importorskip("ziglang")


@pytest.fixture(scope="module")
def model():
    return rd.compile(quantised()[0], target="cortex-m4")


@pytest.mark.parametrize("cpu", ["cortex-m4", "rv32imac"])
def test_objects_ask_for_nothing_of_a_system(cpu, model, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)  # the compiler of the ziglang package
    model = model if cpu == "cortex-m4" else rd.compile(quantised()[0], target=cpu)
    made = model.save(tmp_path / "net.o", header=True)
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.h", "net.o"]
    missing = {line.split()[-1] for line in subprocess.run(["nm", "-u", made], capture_output=True, text=True, check=True).stdout.splitlines()}
    assert not {m for m in missing if not m.startswith(("__aeabi_", "__"))} - {"memcpy", "memset", "memmove"}
    board = model.metadata["board"]
    assert 4 * 1024 < board["flash"] < 64 * 1024 and 2 * 8 * 16 * 16 < board["ram"] < 12 * 1024


def test_a_board_with_too_little_memory_is_refused(model, tmp_path):
    with pytest.raises(BuildError, match=r"the model needs [\d,]+ bytes of RAM on cortex-m4, and 2,048 were allowed"):
        model.save(tmp_path / "net.c", ram="2K")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OptionError, match="how much memory a model takes is known for machines without a system"):
        rd.compile(dense()[0], target="c").save(tmp_path / "other.c", ram="64K")


@pytest.mark.parametrize(("text", "nbytes"), [("65536", 65536), ("256K", 256 << 10), ("1M", 1 << 20), ("3 KiB", 3072)])
def test_sizes_of_memories(text, nbytes):
    assert bare_metal.read_bytes(text) == nbytes


def test_what_is_no_size_is_refused():
    with pytest.raises(OptionError, match="'much' is no size of a memory"):
        bare_metal.read_bytes("much")


def test_the_deepest_chain_of_calls():
    calls = "\n".join([*(f'node: {{ title: "{name}" label: "{name}\\nm.c:1:1\\n{size} bytes (static)" }}' for name, size in
                         (("entry", 16), ("run", 100), ("kernel", 40), ("task", 200), ("other", 8))),
                       'edge: { sourcename: "entry" targetname: "__indirect_call" label: "" }', 'edge: { sourcename: "run" targetname: "kernel" label: "" }',
                       'edge: { sourcename: "kernel" targetname: "__indirect_call" label: "" }', 'edge: { sourcename: "task" targetname: "memcpy" label: "" }'])
    assert bare_metal.deepest_stack(calls) >= 16 + 100 + 40 + 200 + 64


def test_other_machines_are_not_offered_objects_of_boards(tmp_path):
    compiled = rd.compile(dense()[0], target="c -mcpu=cortex-a72")  # its C source can be written anywhere
    compiled.save(tmp_path / "net.c", header=True)
    with pytest.raises(MachineError, match="does not run here"):
        compiled.save(tmp_path / "net.so")
