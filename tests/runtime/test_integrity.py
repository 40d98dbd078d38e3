# SPDX-License-Identifier: Apache-2.0
"""Saved files that were damaged, exchanged, renamed or replaced: refused before anything of them is loaded, or right."""

from __future__ import annotations

import gc
import os
import platform
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from roundel.build.link import link
from roundel.ir.errors import BuildError, MachineError, ModelError, OptionError
from roundel.runtime import load, load_executable, toolchain
from roundel.runtime.integrity import SMALL, SavedFile, check_file
from runtime.native_module import WEIGHT, compile_module

X = np.arange(8, dtype=np.float32).reshape(2, 4)
RIGHT = 2 * X + WEIGHT


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return {n: compile_module(tmp_path_factory.mktemp("code"), f"-DWEIGHTS={n}").read_bytes() for n in (0, 16, 16 + SMALL)}


def save(code, path, weights=WEIGHT.tobytes(), **how):
    return link([code[len(weights)]], weights, path, functions=["scale"], name="m", **how)


def large(bias=0):
    """Weights that are mapped, not read: the model's own four numbers, and megabytes that it does not use."""
    return (WEIGHT + np.float32(bias)).tobytes() + bytes(SMALL)


def scaled(executable, x=X):
    y = np.zeros_like(x)
    executable["scale"](x, y)
    return y


def flipped(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("side_file", [False, True])
@pytest.mark.parametrize("weights", [b"", WEIGHT.tobytes(), large()], ids=["none", "small", "large"])
def test_whole_files_are_found_whole(code, tmp_path, weights, side_file):
    path = save(code, tmp_path / "m.so", weights, side_file=side_file)
    check_file(path)
    check_file(path, contents=True)
    if weights:
        np.testing.assert_array_equal(scaled(load_executable(path, verify=True)), RIGHT)


@pytest.mark.parametrize("side_file", [False, True])
def test_every_part_of_the_code_is_covered(code, tmp_path, side_file):
    """One bit in each of 200 places all over the library, the trailer included."""
    path = save(code, tmp_path / "m.so", side_file=side_file)
    whole = path.read_bytes()
    for at in [*range(0, len(whole), len(whole) // 160), *range(len(whole) - 120, len(whole), 3)]:
        flipped(path, at)
        with pytest.raises(ModelError):
            load(path)
        path.write_bytes(whole)
    load(path)


def test_shortened_and_lengthened_files(code, tmp_path):
    path = save(code, tmp_path / "m.so", large(), side_file=True)
    for file in (path, path.with_suffix(".weights")):
        whole = file.read_bytes()
        for count in (0, 1, 63, 64, 4096, len(whole) // 2, len(whole) - 121, len(whole) - 1):
            file.write_bytes(whole[:count])
            with pytest.raises(ModelError):
                load(path)
        file.write_bytes(whole + b"\n")
        with pytest.raises(ModelError, match=r"not whole|bytes"):
            load(path)
        file.write_bytes(whole)
    np.testing.assert_array_equal(scaled(load_executable(path)), RIGHT)


@pytest.mark.parametrize("side_file", [False, True])
def test_weights_small_ones_always_large_ones_on_demand(code, tmp_path, side_file):
    for name, weights, always in (("small", WEIGHT.tobytes(), True), ("large", large(), False)):
        path = save(code, tmp_path / f"{name}.so", weights, side_file=side_file)
        with SavedFile(path) as saved:
            start = saved.trailer.start
        flipped(path.with_suffix(".weights") if side_file else path, start + 2)
        with pytest.raises(ModelError, match="weights in .* are damaged"):
            load(path, verify=True)
        if always:
            with pytest.raises(ModelError, match="are damaged"):
                load(path)
        else:
            check_file(path)


def test_no_regular_files(code, tmp_path):
    path = save(code, tmp_path / "m.so", large(), side_file=True)
    for file in (path, path.with_suffix(".weights")):
        kept = file.rename(tmp_path / "kept")
        for make, why in ((lambda f: None, "there is no file"), (os.mkfifo, "not a regular file"), (os.mkdir, "is a folder"),
                          (lambda f: os.symlink(f.name, f), "cannot be read"), (lambda f: os.symlink("/dev/zero", f), "not a regular file"),
                          (lambda f: os.symlink("nowhere", f), "there is no file")):
            make(file)
            with pytest.raises(ModelError, match=why):
                load(path)
            if os.path.lexists(file):
                file.rmdir() if file.is_dir() else file.unlink()
        kept.rename(file)
    for name in ("nul\0", "x" * 5000):
        with pytest.raises(ModelError, match="cannot be read"):
            load(tmp_path / name)


def test_a_c_program_refuses_a_pipe_and_a_file_of_another_size(code, tmp_path):
    """The runtime's own check, for programs that load the library themselves."""
    import ctypes

    path = save(code, tmp_path / "m.so", large(), side_file=True)
    shared = ctypes.CDLL(str(path))
    opened, weights = ctypes.c_void_p(), path.with_suffix(".weights")
    shared.roundel_last_error.restype = ctypes.c_char_p
    whole = weights.read_bytes()
    for make, why in ((lambda: os.mkfifo(weights), b"cannot be read"), (lambda: weights.write_bytes(whole[:-1]), b"belongs to another"),
                      (lambda: weights.write_bytes(whole + b"!"), b"belongs to another"), (lambda: weights.write_bytes(b"short"), b"has 5 bytes")):
        weights.unlink()
        make()
        assert shared.m_open(None, ctypes.byref(opened)) != 0 and why in shared.roundel_last_error()
    weights.write_bytes(whole)
    assert shared.m_open(None, ctypes.byref(opened)) == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.so").symlink_to(load(path).save(tmp_path / "real" / "m.so"))
    assert ctypes.CDLL(str(tmp_path / "elsewhere" / "link.so")).m_open(None, ctypes.byref(opened)) == 0


def test_another_machine_is_named(code, tmp_path, monkeypatch):
    path = save(code, tmp_path / "m.so")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(MachineError, match=r"is for \w+, this machine is riscv64"):
        load(path)
    check_file(path)


def test_exchanged_weights(code, tmp_path):
    first, second = (save(code, tmp_path / f"{n}.so", large(n), side_file=True) for n in (1, 2))
    shutil.copy(second.with_suffix(".weights"), first.with_suffix(".weights"))
    with pytest.raises(ModelError, match=r"1.weights belongs to another model than 1.so"):
        load(first)


def test_links_to_a_store(code, tmp_path):
    """Library and weights as links into a folder of files with other names, or the library alone."""
    path = save(code, tmp_path / "m.so", large(), side_file=True)
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    for k, file in enumerate((path, path.with_suffix(".weights"))):
        file.rename(tmp_path / "blobs" / f"{k}")
        (tmp_path / "snapshot" / file.name).symlink_to(f"../blobs/{k}")
    np.testing.assert_array_equal(scaled(load_executable(tmp_path / "snapshot" / "m.so")), RIGHT)
    path = save(code, tmp_path / "real" / "m.so", large(), side_file=True)
    (tmp_path / "link.so").symlink_to(path)
    np.testing.assert_array_equal(scaled(load_executable(tmp_path / "link.so")), RIGHT)


def test_models_in_one_folder_keep_their_weights(code, tmp_path):
    """Saved again, each under a name of its own: so are the weights. A library and an object of one name do not share them either."""
    first, second = (save(code, tmp_path / n / "model.so", large(k), side_file=True) for k, n in enumerate("ab"))
    both = tmp_path / "both"
    copies = [load(p).save(both / f"{n}.so") for p, n in ((first, "x"), (second, "y"))]
    assert sorted(f.name for f in both.iterdir()) == ["x.so", "x.weights", "y.so", "y.weights"]
    for k, path in enumerate(copies):
        np.testing.assert_array_equal(scaled(load_executable(path, verify=True)), RIGHT + k)
    save(code, both / "x.o", large(5), side_file=True)
    np.testing.assert_array_equal(scaled(load_executable(copies[0], verify=True)), RIGHT)
    load(copies[0]).save(copies[0])  # over itself
    np.testing.assert_array_equal(scaled(load_executable(copies[0], verify=True)), RIGHT)


@pytest.mark.parametrize("side_file", [False, True])
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_replaced_file_is_another_model(code, tmp_path, size, side_file):
    made = [save(code, tmp_path / f"{k}" / "m.so", large(k) if size == "large" else (WEIGHT + np.float32(k)).tobytes(), side_file=side_file) for k in range(3)]
    path, loaded = tmp_path / "m.so", []
    for source in made:
        for file in source.parent.iterdir():
            shutil.copy(file, tmp_path / "new")
            (tmp_path / "new").rename(tmp_path / file.name)
        loaded.append(load_executable(path))
    model = load(path)
    path.unlink()
    for k, executable in enumerate(loaded):
        np.testing.assert_array_equal(scaled(executable), RIGHT + k)
    shutil.copy(made[0], path)
    with pytest.raises(ModelError, match=r"was replaced|belongs to another"):
        model.save(tmp_path / "copy.so")


def test_code_may_be_overwritten_in_place(code, tmp_path):
    """Of small models everything that runs is a private copy."""
    path = save(code, tmp_path / "m.so")
    executable = load_executable(path)
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    with path.open("r+b") as file:
        file.truncate(0)
    np.testing.assert_array_equal(scaled(executable), RIGHT)


def mapped():
    return sum("memfd:roundel" in line or ".weights" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
def test_unloaded_when_the_last_user_is_gone(shipped, code, tmp_path):
    gc.collect()
    before = mapped()
    path = save(code, tmp_path / "m.so", large(), side_file=True)
    function = load_executable(path, threads=2)["scale"]  # the executable itself is gone
    function(X, np.zeros_like(X))
    x = np.zeros((4000, 4), np.float32)
    function(x, x.copy())  # with threads of the library's own
    assert mapped() > before
    del function
    assert mapped() == before
    result = load(shipped).executable["fill"](3)  # its memory is the runtime's
    assert result.tolist() == [3, 3, 3]
    view = np.from_dlpack(result)
    del result
    assert view.tolist() == [3, 3, 3]
    del view
    assert mapped() == before


LOADS = """
import gc, os, shutil, sys
import numpy as np
from roundel.runtime import load_executable
from pathlib import Path
files, x = sys.argv[1:3], np.zeros((64, 4), np.float32)
def rounds(count):
    for k in range(count):
        shutil.copy(files[k % 2], "new"); os.replace("new", "m.so")
        y = np.zeros_like(x); load_executable("m.so", threads=2)["scale"](x, y)
        assert (y == y[0]).all() and y[0, 0] == 1 + k % 2, (k, y[0])
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
rounds(200)
before, opened = resident(), len(os.listdir("/proc/self/fd"))
rounds(int(sys.argv[3]))
assert len(os.listdir("/proc/self/fd")) == opened
print((resident() - before) / 1e6)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for resident memory")
def test_loads_and_replacements_leave_memory_flat(code, tmp_path):
    files = [save(code, tmp_path / f"{k}.so", (WEIGHT + np.float32(k)).tobytes()) for k in range(2)]
    done = subprocess.run([sys.executable, "-c", LOADS, *map(str, files), "1000"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1, "megabytes more after 1,000 loads"


@pytest.mark.parametrize("name", ["m", "m.so.txt", "m.onnx"])
def test_names_of_other_files_are_refused(code, shipped, tmp_path, name):
    with pytest.raises(OptionError, match=r"ends in \.so"):
        save(code, tmp_path / name)
    with pytest.raises(OptionError, match=r"ends in \.so"):
        load(shipped).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_model_compiled_to_machine_code_is_not_c(code, shipped, tmp_path):
    for saved in (lambda path: save(code, path), lambda path: load(shipped).save(path)):
        with pytest.raises(OptionError, match=r'm\.c.*(target="c"|compiled to C)'):
            saved(tmp_path / "m.c")
    assert not list(tmp_path.iterdir())


@contextmanager
def no_more_than(nbytes):
    """The system refuses to let a file grow beyond that."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("room", [5000, 1 << 20])
def test_written_whole_or_not_at_all(code, tmp_path, room):
    """There is no room for the library, or none for the weights; and permissions of what was written follow the process's mask."""
    old = save(code, tmp_path / "m.so", large(), side_file=True).read_bytes()
    model = load(tmp_path / "m.so")
    with no_more_than(room):
        for how in ({}, {"side_file": True}):
            with pytest.raises(BuildError):
                save(code, tmp_path / "m.so", large(1), **how)
        with pytest.raises(BuildError, match="cannot be written"):
            model.save(tmp_path / "m.so")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["m.so", "m.weights"] and (tmp_path / "m.so").read_bytes() == old
    np.testing.assert_array_equal(scaled(load_executable(tmp_path / "m.so", verify=True)), RIGHT)
    before = os.umask(0o077)
    try:
        path = load(save(code, tmp_path / "n.so", large(), side_file=True)).save(tmp_path / "o.so")
    finally:
        os.umask(before)
    assert {f.stat().st_mode & 0o077 for n in "no" for f in (tmp_path / f"{n}.so", tmp_path / f"{n}.weights")} == {0}
    assert path.stat().st_mode & 0o700 == 0o700


def test_other_libraries(code, tmp_path):
    with pytest.raises(ModelError, match="an object to link"):
        load(save(code, tmp_path / "m.o"))
    (tmp_path / "other.c").write_text("int x;")
    other = tmp_path / "other.so"
    toolchain.run([*toolchain.compiler(), "-shared", tmp_path / "other.c", "-o", other])
    with pytest.raises(ModelError, match="not one of Roundel's"):
        check_file(other)
    other.write_bytes(other.read_bytes()[:-200])
    with pytest.raises(ModelError, match="not whole"):
        check_file(other)
