# SPDX-License-Identifier: Apache-2.0
"""Models for processors without a system: objects need three functions, figures are those of the object, and what does not fit is refused."""

import shutil
import subprocess

import pytest
from c_models import dense, onnx_model, quantised
from onnx import helper

import roundel as rd
from roundel.build import bare_metal, source
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
    assert 4 * 1024 < board["flash"] < 64 * 1024 and 8 * 16 * 16 < board["ram"] < 12 * 1024


@pytest.mark.parametrize(("cpu", "has"), [("cortex-m4", "DSP"), ("cortex-m7", "DSP"), ("cortex-m33", "DSP"), ("cortex-m55", "MVE"), ("rv32imafc", ""),
                                          ("rv64gcv-bare", "")])
def test_zig_takes_the_instructions_that_a_board_has(cpu, has, tmp_path, monkeypatch):
    """Those for floats at least: its names of processors stand for ones without."""
    test = f"#ifndef __ARM_FEATURE_{has}\n#error\n#endif\n" if has else ""
    rounds = "rintf(a) + " * (cpu in ("cortex-m33", "cortex-m55"))
    (tmp_path / "net.c").write_text(f"{test}#include <math.h>\nfloat f(float a, float b, float c) {{ return {rounds}sqrtf(a) / b + fmaf(a, b, c); }}\n")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    bare_metal.compile_source(tmp_path / "net.c", tmp_path / "net.o", cpu)
    monkeypatch.undo()
    assert not subprocess.run(["nm", "-u", tmp_path / "net.o"], capture_output=True, text=True, check=True).stdout


def test_a_board_with_too_little_memory_is_refused(model, tmp_path):
    with pytest.raises(BuildError, match=r"the model needs [\d,]+ bytes of RAM on cortex-m4, its stack included, and 2,048 were allowed"):
        model.save(tmp_path / "net.c", ram="2K")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OptionError, match="how much memory a model takes is known for machines without a system"):
        rd.compile(dense()[0], target="c").save(tmp_path / "other.c", ram="64K")


@pytest.mark.parametrize(("text", "nbytes"), [("65536", 65536), ("256K", 256 << 10), ("1M", 1 << 20), ("3 KiB", 3072)])
def test_sizes_of_memories(text, nbytes):
    assert bare_metal.read_bytes(text) == nbytes


def test_what_is_no_size_is_refused():
    with pytest.raises(OptionError, match="'much' is no number of bytes"):
        bare_metal.read_bytes("much")


def test_other_machines_are_not_offered_objects_of_boards(tmp_path):
    compiled = rd.compile(dense()[0], target="c -mcpu=cortex-a72")  # its C source can be written anywhere
    compiled.save(tmp_path / "net.c", header=True)
    with pytest.raises(MachineError, match="does not run here"):
        compiled.save(tmp_path / "net.so")


def test_memory_that_only_a_call_tells(tmp_path):
    """Whoever compiles the source says how much; for an object, or to be compared with a limit, it has to be known."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "x"], ["y"])]
    model = rd.compile(onnx_model(nodes, {"x": ("float32", ["rows", 4])}, {"y": ("float32", ["rows", 4])}), target="cortex-m4")
    for name, ram in (("net.o", None), ("net.c", "64K")):
        with pytest.raises(BuildError, match=r"(?s)how much memory .* depends on its inputs.*tells: rows.*--fix rows=1"):
            model.save(tmp_path / name, ram=ram, header=True)
    assert not list(tmp_path.iterdir())
    model.save(tmp_path / "net [1].c", header=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net [1].c", "net [1].h"] and "board" not in model.metadata


def test_what_a_board_cannot_run_is_not_sent_to_a_shared_library(tmp_path):
    counted = onnx_model([helper.make_node("NonZero", ["x"], ["y"])], {"x": ("float32", [3, 3])}, {"y": ("int64", [2, "n"])})
    for target, wanted in (("cortex-m4", "a machine with a system"), ("llvm -mcpu=cortex-m4", "c -mcpu=cortex-m4")):
        with pytest.raises(BuildError, match="the model cannot be one C file") as error:
            rd.compile(counted, target=target).save(tmp_path / "net.o")
        assert wanted in str(error.value) and ".so" not in str(error.value)
    with pytest.raises(OptionError, match=r"ends in \.o"):
        rd.compile(counted, target="cortex-m4").save(tmp_path / "net.so")


@pytest.mark.parametrize(("inside", "nbytes"), [("", 328), ("  rk_aa(ctx, x);\n", 556), ("  y = rd_heap_alloc(ctx, n);\n", None)])
def test_kernels_take_memory_one_after_another_unless_one_calls_another(inside, nbytes):
    kernels = "".join(f"static void rk_{name}_body(RdContext *ctx) {{\n  x = rd_heap_alloc(ctx, {size});\n{more}}}\n" for name, size, more in
                      (("aa", 100, ""), ("bb", 200, inside)))
    assert source.heap_bytes(f"{kernels}static int32_t rd_host_0_body(RdContext *ctx) {{\n  rk_aa(ctx);\n  rk_bb(ctx);\n}}") == nbytes
