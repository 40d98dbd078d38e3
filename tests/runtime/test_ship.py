# SPDX-License-Identifier: Apache-2.0
"""A shipped file: loaded into Python, called by tvm-ffi, linked into a C program, alone and two at a time."""

from __future__ import annotations

import platform
import shutil
import subprocess

import numpy as np
import pytest

from roundel.build.header import write_header
from roundel.build.link import link
from roundel.build.weights import _blocks
from roundel.ir.errors import BuildError, CallError, ModelError
from roundel.runtime import load, load_executable, loader, toolchain
from runtime.native_module import WEIGHT, compile_module, graph_info

F = np.float32
X = np.arange(8, dtype=F).reshape(2, 4)


def test_load_and_save(shipped, tmp_path):
    model = load(shipped, threads=2)
    assert model.metadata == {"origin": "test"}
    assert [str(t) for t in model.inputs] == ["x: float32[n, 4]"]
    np.testing.assert_array_equal(model(X), 2 * X + WEIGHT)
    again = load(model.save(tmp_path / "sub" / "copy.so"))
    np.testing.assert_array_equal(again(x=X), 2 * X + WEIGHT)
    executable = load_executable(shipped)
    assert executable["concat"]((X[0], X[1]))[1] == (28.0,)
    with pytest.raises(CallError, match="dimension 1 of input 0"):
        model(np.zeros((1, 3), F))


def test_depends_on_the_c_library_alone(shipped):
    listed = subprocess.run(["ldd", shipped], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].split("/")[-1].split(".so")[0] for line in listed.splitlines()}
    assert names <= {"linux-vdso", "libc", "libm", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}, names
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", shipped], capture_output=True, text=True, check=True
    ).stdout
    assert "TVM" not in symbols and "rd_" not in symbols


def test_weights_are_written_in_whole_blocks():
    for sizes in ([0], [8], [3, 0, 5], [1, 30, 2, 8]):
        pieces = [bytes(range(k, k + n)) for k, n in enumerate(sizes)]
        blocks = [bytes(b) for b in _blocks(iter(pieces), 8)]
        assert b"".join(blocks) == b"".join(pieces) and all(len(b) == 8 for b in blocks[:-1]) and len(blocks[-1]) < 8


def test_side_file(tmp_path):
    code = compile_module(tmp_path).read_bytes()
    file = link([code], WEIGHT.tobytes(), tmp_path / "m.so", functions=["scale"], side_file=True)
    y = np.zeros_like(X)
    load_executable(file)["scale"](X, y)
    np.testing.assert_array_equal(y, 2 * X + WEIGHT)
    moved = load(file).save(tmp_path / "elsewhere" / "m.so")
    load_executable(moved)["scale"](X, y)
    (tmp_path / "m.weights").write_bytes(bytes(80))
    with pytest.raises(ModelError, match="belongs to another model"):
        load_executable(file)
    (tmp_path / "m.weights").unlink()
    with pytest.raises(ModelError, match="there is no file"):
        load_executable(file)


def test_weights_from_a_large_file(tmp_path):
    blob = tmp_path / "blob.bin"
    blob.write_bytes(WEIGHT.tobytes() + bytes(32 << 20))
    file = link([compile_module(tmp_path).read_bytes()], blob, tmp_path / "large.so", functions=["scale"])
    content = file.read_bytes()
    assert content.count(WEIGHT.tobytes() + bytes(32 << 20)) == 1 and len(content) < 33 << 20
    y = np.zeros_like(X)
    load_executable(file)["scale"](X, y)
    np.testing.assert_array_equal(y, 2 * X + WEIGHT)


def test_called_by_tvm_ffi(shipped):
    import tvm_ffi

    module = tvm_ffi.load_module(str(shipped))
    y = np.zeros_like(X)
    module.scale(X, y)
    np.testing.assert_array_equal(y, 2 * X + WEIGHT)
    with pytest.raises(ValueError, match="dimension 1 of input 0"):
        module.scale(np.zeros((2, 3), F), y)
    with pytest.raises(TypeError, match="takes 2 tensors"):
        module.scale(X)
    out = np.zeros(3, np.int64)
    module.fill(3, out)
    assert out.tolist() == [3, 3, 3]

    def broken(*args):
        raise KeyError("crossed")

    tvm_ffi.register_global_func("test.callback", broken)
    try:
        with pytest.raises(KeyError, match="crossed"):
            module.callback(X[0], X[1].copy())
    finally:
        tvm_ffi.registry.remove_global_func("test.callback")


PROGRAM = r"""
#include <stdio.h>
#include "tiny_model.h"

int main(void) {
  float x[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}}, bad[3] = {0};
  int64_t shape[] = {2, 4}, wrong[] = {1, 3};
  DLTensor input = tiny_model_scale_input0(x, shape);
  DLTensor output = tiny_model_scale_output0(NULL, NULL);
  if (tiny_model_scale(&input, &output)) return printf("%s\n", tiny_model_last_error()), 1;
  printf("%d x %d:", (int)output.shape[0], (int)output.shape[1]);
  for (int i = 0; i < 8; i++) printf(" %g", ((float *)output.data)[i]);
  tiny_model_release(&output);
  input = tiny_model_scale_input0(bad, wrong);
  if (tiny_model_scale(&input, &output)) printf("\n%s\n", tiny_model_last_error());
  return 0;
}
"""


TWO = r"""
#include <stdio.h>
#include "one.h"
int other_scale(const DLTensor *, DLTensor *);

int main(void) {
  float x[1][4] = {{0, 1, 2, 3}}, y[1][4], z[1][4];
  int64_t shape[] = {1, 4};
  DLTensor in = one_scale_input0(x, shape), first = one_scale_output0(y, shape), second = one_scale_output0(z, shape);
  if (one_scale(&in, &first) || other_scale(&first, &second)) return 1;
  for (int i = 0; i < 4; i++) printf("%g ", z[0][i]);
  return 0;
}
"""


def test_objects_of_two_models_in_one_program(tmp_path):
    code = [compile_module(tmp_path).read_bytes()]
    objects = [link(code, WEIGHT.tobytes(), tmp_path / f"{name}.o", functions=["scale"]) for name in ("one", "other")]
    write_header(tmp_path / "one.h", [f for f in graph_info() if f.name == "scale"])
    (tmp_path / "main.c").write_text(TWO)
    program = tmp_path / "main"
    toolchain.run([*toolchain.compiler(), "-std=c11", "-Wall", "-Werror", tmp_path / "main.c", *objects, "-lm", "-lpthread", "-ldl", "-o", program])
    shown = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    np.testing.assert_array_equal(np.array(shown.split(), F), 2 * (2 * np.arange(4, dtype=F) + WEIGHT) + WEIGHT)


def test_c_program(shipped, tmp_path):
    write_header(tmp_path / "tiny_model.h", [f for f in graph_info() if f.name == "scale"])
    (tmp_path / "main.c").write_text(PROGRAM)
    program = tmp_path / "main"
    toolchain.run(
        [
            *toolchain.compiler(),
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            tmp_path / "main.c",
            shipped,
            "-o",
            program,
            f"-Wl,-rpath,{shipped.parent}",
        ]
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 x 4: 1 4 7 10 9 12 15 18", "dimension 1 of input 0 ('x') is 3, expected 4"]


CALLBACK_PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "roundel.h"
int first_open(const RdOptions *, RdModel **), second_open(const RdOptions *, RdModel **);
int second_register(const char *, RdPacked, void *);

static int32_t callback(void *user, RdContext *ctx, int32_t n, const RdArg *a) {
  if (n != 4 || a[1].value.i != 3) return rd_fail(ctx, "not what was expected");
  memcpy(a[3].value.tensor->data, a[0].value.tensor->data, 8);
  return (void)user, 0;
}
static int32_t value(void *user, RdContext *ctx, int32_t n, const RdArg *a) {
  *(float *)a[n - 1].value.tensor->data = 10;
  return (void)ctx, (void)user, 0;
}

int main(void) {
  RdModel *one = NULL, *two = NULL;
  float x[2] = {1, 2}, y[2];
  int64_t shape[] = {2};
  DLTensor in = {x, {kDLCPU, 0}, 1, {2, 32, 1}, shape, 0, 0}, out = {y, {kDLCPU, 0}, 1, {2, 32, 1}, shape, 0, 0};
  if (first_open(NULL, &one) || second_open(&(RdOptions){.num_threads = 2}, &two)) return puts(roundel_last_error()), 1;
  if (!roundel_run(one, "callback", &in, &out)) return 2;
  puts(roundel_last_error());
  roundel_register("test.callback", callback, NULL);
  roundel_register("test.value", value, NULL);
  if (roundel_run(one, "callback", &in, &out)) return puts(roundel_last_error()), 3;
  printf("%g %g\n", y[0], y[1]);
  if (second_register("test.callback", callback, NULL) || second_register("test.value", value, NULL)) return 6;
  if (roundel_run(two, "callback", &in, &out))
    return puts(roundel_last_error()), 5;
  if (!roundel_run(one, "absent", &in, &out)) return 4;
  puts(roundel_last_error());
  roundel_close(one);
  roundel_close(two);
  return 0;
}
"""


def test_two_models_in_one_c_program(tmp_path):
    from roundel.runtime import library

    code = compile_module(tmp_path).read_bytes()
    files = [
        link([code], WEIGHT.tobytes(), tmp_path / f"{n}.so", functions=["scale", "callback"])
        for n in ("first", "second")
    ]
    (tmp_path / "main.c").write_text(CALLBACK_PROGRAM)
    program = tmp_path / "main"
    toolchain.run(
        [
            *toolchain.compiler(),
            "-std=c11",
            f"-I{library.source_dir()}",
            tmp_path / "main.c",
            *files,
            "-o",
            program,
            f"-Wl,-rpath,{tmp_path}",
        ]
    )
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "'test.callback', which is not registered" in lines[0] and lines[1:] == [
        "11 12",
        "the model has no function 'absent'",
    ]


def test_bad_files(tmp_path):
    with pytest.raises(ModelError, match="there is no file"):
        load(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(tmp_path / "text.so")
    for begin, said in ((b"MZ", "a library for Windows.*call it from C"), (b"\xcf\xfa\xed\xfe", "a library for macOS.*call it from C"),
                        (b"\0asm", "a module for WebAssembly.*a page or node runs it")):
        (tmp_path / "foreign.so").write_bytes(begin + bytes(100))
        with pytest.raises(ModelError, match=f"(?s)it is {said}"):
            load(tmp_path / "foreign.so")
    (tmp_path / "other.c").write_text("int x;")
    toolchain.run([*toolchain.compiler(), "-shared", tmp_path / "other.c", "-o", tmp_path / "other.so"])
    with pytest.raises(ModelError, match="not one of Roundel's"):
        load(tmp_path / "other.so")
    (tmp_path / "model.onnx").write_bytes(bytes(100))
    with pytest.raises(ModelError, match=r"not a compiled model\n.*\nhint: `roundel compile`"):
        load(tmp_path / "model.onnx")


def test_where_no_file_can_be_made(shipped, monkeypatch):
    """Neither in memory, without /proc, nor in a folder."""
    def nowhere(**_):
        raise FileNotFoundError(2, "no usable folder for temporary files")

    monkeypatch.setattr(loader, "_OPEN_FILES", None)
    monkeypatch.setattr(loader.tempfile, "mkstemp", nowhere)
    with pytest.raises(ModelError, match=r"since /proc is not there, and no usable folder.*\nhint: mount /proc, or .*TMPDIR"):
        load(shipped)


def test_failed_link_leaves_nothing(tmp_path):
    with pytest.raises(BuildError, match="failed with status"):
        link([b"no object"], b"", tmp_path / "out" / "m.so")
    with pytest.raises(BuildError, match="failed with status"):
        link([b"no object"], b"weights", tmp_path / "out" / "m.so", side_file=True)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("cc") is None, reason="cross compiles from x86-64")
def test_another_machine(tmp_path):
    pytest.importorskip("ziglang")
    from types import SimpleNamespace

    from roundel.runtime import library

    compiler = toolchain.compiler("aarch64-linux-gnu")
    toolchain.run(
        [
            *compiler,
            "-std=c11",
            "-O1",
            "-fPIC",
            f"-I{library.source_dir()}",
            "-c",
            "tests/runtime/module.c",
            "-o",
            tmp_path / "m.o",
        ]
    )
    file = link(
        [(tmp_path / "m.o").read_bytes()],
        WEIGHT.tobytes(),
        tmp_path / "m.so",
        SimpleNamespace(triple="aarch64-unknown-linux-gnu"),
        functions=["scale"],
    )
    assert file.read_bytes()[18:20] == b"\xb7\x00"
