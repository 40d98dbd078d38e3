# SPDX-License-Identifier: Apache-2.0
"""Libraries for Windows and macOS: what they are, export and import, and (slow, by Wine) that a DLL gives what a library of this machine gives."""

import re
import shutil
import struct
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx import helper as h

import roundel as rd
from roundel.codegen.llvm.machine import to_object
from roundel.ir.errors import OptionError
from roundel.target.spec import MachineSpec, library_ending, system_of

from ..boards.test_remote import classifier

MINGW = shutil.which("x86_64-w64-mingw32-gcc")
SMALL = h.make_model(h.make_graph([h.make_node("Add", ["x", "w"], ["y"])], "g", [h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
                                  [h.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
                                  [numpy_helper.from_array(np.array([[1, 2, 3], [4, 5, 6]], "f")[:1], "w")]), opset_imports=[h.make_opsetid("", 17)])
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

int main(void) {
  int64_t shape[] = {3, 3, 17, 19};
  float *x = malloc(3 * 3 * 17 * 19 * sizeof *x), temperature = 0.5f;
  for (int i = 0; i < 3 * 3 * 17 * 19; i++) x[i] = (float)(i % 23) - 11;
  DLTensor in[] = {model_run_input0(x, shape), model_run_input1(&temperature, 0)};
  DLTensor out[] = {model_run_output0(0, 0), model_run_output1(0, 0), model_run_output2(0, 0)};
  if (model_set_num_threads(2) || model_run(in, out)) return fprintf(stderr, "%s\\n", model_last_error()), 1;
  for (int i = 0; i < 15; i++) printf("%.9g\\n", ((float *)out[0].data)[i]);
  for (int i = 0; i < 3; i++) model_release(&out[i]);
  shape[2] = 16;
  if (model_run(in, out) == 0) return 2;
  printf("%s\\n", model_last_error());
  model_close();
  return 0;
}
"""


def imports(dll):
    """The libraries that a PE file names, read from its table of imports."""
    data = dll.read_bytes()
    head = struct.unpack_from("<I", data, 60)[0]
    assert data[:2] == b"MZ" and data[head : head + 6] == b"PE\0\0\x64\x86"
    count, size = struct.unpack_from("<H", data, head + 6)[0], struct.unpack_from("<H", data, head + 20)[0]
    sections = [struct.unpack_from("<IIII", data, head + 24 + size + 40 * k + 8) for k in range(count)]

    def place(address):
        return next(address - start + raw for length, start, _, raw in sections if start <= address < start + length)

    at, names = place(struct.unpack_from("<I", data, head + 24 + 112 + 8)[0]), set()
    while name := struct.unpack_from("<I", data, at + 12)[0]:
        names.add(data[place(name) :].split(b"\0", 1)[0].decode().lower())
        at += 20
    return names


@pytest.mark.parametrize("triple, system, ending", [
    ("x86_64-pc-windows-gnu", "windows", ".dll"), ("arm64-apple-macosx13.0", "macos", ".dylib"), ("x86_64-unknown-linux-gnu", "linux", ".so"),
    ("", "linux", ".so"), ("thumbv7em-none-eabi", "", ".so"), ("wasm32-unknown-unknown", "", ".so"),
])
def test_systems_and_their_libraries(triple, system, ending):
    assert system_of(triple) == system and library_ending(triple) == ending


@pytest.mark.parametrize("target, name, right", [("x86_64-windows", "model.so", "model.dll"), ("aarch64-macos", "model.dll", "model.dylib"),
                                                 ("x86_64-windows", "model.o", "model.dll, which programs link with as well")])
def test_other_names_are_refused(target, name, right, tmp_path):
    with pytest.raises(OptionError, match=f"name it {right}"):
        rd.compile(SMALL, target=target).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_large_frames_are_probed_and_nothing_else_is_asked_of_the_system():
    text = ("declare void @use(ptr)\ndefine double @f(double %x) {\n  %a = alloca [65536 x i8]\n  call void @use(ptr %a)\n"
            "  %y = fadd double %x, 1.0\n  ret double %y\n}\n")
    made = to_object(text, MachineSpec("x86_64-pc-windows-gnu", "x86-64-v3", ""))
    assert b"___chkstk_ms" in made and b"_fltused" not in made


@pytest.fixture(scope="module")
def dll(tmp_path_factory):
    if MINGW is None:
        pytest.skip("needs x86_64-w64-mingw32-gcc (zig's compiler takes minutes when it links for Windows for the first time)")
    folder = tmp_path_factory.mktemp("windows")
    model = rd.compile(classifier(), target="x86_64-windows")
    (folder / "program.c").write_text(PROGRAM)
    return model, model.save(folder / "model.dll", header=True)


def test_a_dll_needs_the_system_alone_and_exports_what_its_header_declares(dll):
    model, path = dll
    assert imports(path) <= {"kernel32.dll", "msvcrt.dll"} | {name for name in imports(path) if name.startswith("api-ms-win-crt-")}
    exported = {name.decode() for name in re.findall(rb"\0(\w+)(?=\0)", path.read_bytes())}
    assert set(re.findall(r"\b(model_\w+)\(", re.sub(r"static inline[^{]*", "", path.with_suffix(".h").read_text()))) <= exported
    assert b"model.dll\0" in path.read_bytes()  # the name that programs ask for
    assert path.with_suffix(".lib").read_bytes().startswith(b"!<arch>\n") and b"model_run\0" in path.with_suffix(".lib").read_bytes()
    beside = model.save(path.with_name("apart.dll"), side_file=True)
    assert beside.with_name("apart.dll.weights").is_file() and beside.stat().st_size < path.stat().st_size + 4096


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("wine") is None, reason="needs wine")
def test_a_program_with_a_dll_under_wine(tmp_path, monkeypatch):
    if MINGW is None:
        pytest.skip("needs x86_64-w64-mingw32-gcc")
    source = classifier()
    (tmp_path / "program.c").write_text(PROGRAM)
    monkeypatch.setenv("WINEPREFIX", str(tmp_path / "wine"))
    monkeypatch.setenv("WINEDEBUG", "-all")
    monkeypatch.chdir(tmp_path)
    x = (np.arange(3 * 3 * 17 * 19) % 23 - 11).astype("f").reshape(3, 3, 17, 19)
    want = rd.compile(source, target="x86-64-v3")(x, np.float32(0.5))[0].ravel()
    for side_file in (False, True):
        rd.compile(source, target="x86_64-windows").save("model.dll", header=True, side_file=side_file)
        subprocess.run([MINGW, "-O1", "program.c", "model.lib", "-o", "program.exe"], check=True)
        done = subprocess.run(["wine", "program.exe"], capture_output=True, text=True, timeout=300, check=True)
        *numbers, error = done.stdout.split("\n", 15)
        np.testing.assert_array_equal(np.array(numbers, "f"), want)
        assert "dimension 2 of input 0 ('x') is 16, expected 17" in error
    (tmp_path / "model.dll.weights").unlink()
    done = subprocess.run(["wine", "program.exe"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and "model.dll.weights' cannot be read" in done.stderr


def test_a_dylib_exports_what_its_header_declares_and_needs_the_system_alone(tmp_path):
    pytest.importorskip("ziglang")
    path = rd.compile(SMALL, target="aarch64-macos").save(tmp_path / "model.dylib", header=True)
    data = path.read_bytes()
    magic, processor, _, kind = struct.unpack_from("<IIII", data)
    assert (magic, processor, kind) == (0xFEEDFACF, 0x0100000C, 6)  # 64 bits, ARM64, a dynamic library
    commands, at = {}, 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        commands.setdefault(command & 0x7FFFFFFF, []).append(data[at : at + size])
        at += size
    assert b"@rpath/model.dylib\0" in commands[0x0D][0]  # its own name
    assert [b"/usr/lib/libSystem.B.dylib\0" in c for c in commands[0x0C]] == [True]  # what it needs
    assert struct.unpack_from("<II", commands[0x32][0], 8) == (1, 13 << 16)  # macOS 13
    assert 0x1D in commands  # a signature, without which Apple's processors run nothing
    tool = shutil.which("llvm-objdump")
    if tool is None:
        return
    trie = subprocess.run([tool, "--macho", "--exports-trie", path], capture_output=True, text=True, check=True).stdout
    exported = set(re.findall(r" _(\w+)$", trie, re.M))
    assert {"model_run", "model_last_error", "model_release", "model_close"} <= exported
    assert not {name for name in exported if name.startswith(("rk_", "roundel_library", "rd_host", "roundel_weights"))}
