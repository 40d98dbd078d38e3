# SPDX-License-Identifier: Apache-2.0
"""The public functions: what importing costs, values that options refuse, models for other machines."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import roundel as rd
from roundel.ir import options
from roundel.ir.errors import CallError, MachineError

from .docs import small_model

X = np.ones((2, 3, 32, 32), np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return small_model.write(tmp_path_factory.mktemp("api") / "small.onnx")


def test_importing_brings_nothing_heavy():
    code = "import roundel as rd, sys; rd.compile; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"onnx", "torch", "llvmlite", "tvm_ffi", "rich", "typer"} & set(done.stdout.split())


def test_every_public_name_is_there_and_documented():
    for name in rd.__all__:
        assert name == "__version__" or getattr(rd, name).__doc__, name
        assert name in dir(rd)


@pytest.mark.parametrize("given, message", [
    ({"threads": 0}, "threads cannot be 0"),
    ({"threads": "two"}, "whole number, at least 1"),
    ({"verify": "maybe"}, "verify cannot be 'maybe'"),
    ({"target": "i386dx"}, "there is no target 'i386dx'"),
    ({"pipeline": ["fusee"]}, "did you mean fuse"),
    ({"pipeline": [5]}, "5 is not a pass"),
    ({"dynamic": {"batsh": 1}}, "no symbolic dimension 'batsh'"),
    ({"dynamic": {"batch": "four"}}, "'batch' cannot have the size 'four'"),
    ({"dynamic": {"batch": -1}}, "size -1"),
    ({"dynamic": {"batch": 4}, "hot": {"batch": 8}}, "'batch' is fixed to 4"),
    ({"dynamic": [1]}, "give sizes to symbolic dimensions"),
    ({"hot": ["batch"]}, "sizes cannot be 'batch'"),
    ({"hot": {"batch": 1.5}}, "size 1.5"),
    ({"accuracy": "high"}, "one of strict, default, fast"),
    ({"choices": {"nowhere": "direct"}}, "'nowhere'(.|\n)*classify, conv"),
    ({"choices": {"conv": "fft"}}, "node 'conv'(.|\n)*no algorithm 'fft'(.|\n)*direct, winograd2, winograd4"),
    ({"choices": {"conv": "winograd4"}}, "node 'conv'(.|\n)*winograd4 cannot be had(.|\n)*channels(.|\n)*may be direct"),
    ({"choices": {"conv": 3}}, "choice for 'conv' cannot be 3"),
    ({"choices": 3}, "choices cannot be 3"),
    ({"weights": "int3"}, "one of float16, bfloat16"),
])
def test_values_that_cannot_be(path, given, message):
    with pytest.raises(rd.RoundelError, match=message):
        rd.compile(path, **given)


def test_memory_of_a_run_is_told_before_it(path):
    static, symbolic = (rd.compile(path, dynamic=d, threads=1) for d in ({"batch": 2}, None))
    assert 0 < static.arena_nbytes() <= symbolic.arena_nbytes(batch=2)
    assert symbolic.arena_nbytes(batch=20) > symbolic.arena_nbytes(batch=2)
    with pytest.raises(rd.RoundelError, match="depends on batch"):
        symbolic.arena_nbytes()


def test_what_is_no_model(path, tmp_path):
    for call, message in [(lambda: rd.compile(5), "not a model: int"), (lambda: rd.build(5), "not a module: int"),
                          (lambda: rd.interpret("x"), "not a module: str"), (lambda: rd.compile("x.so"), "rd.load, "),
                          (lambda: rd.load(path), "or rd.compile makes one of it"), (lambda: rd.load(tmp_path / "no.so"), "there is no file")]:
        with pytest.raises(rd.RoundelError, match=message):
            call()


def test_the_environment_is_named(path, monkeypatch):
    monkeypatch.setenv("ROUNDEL_NUM_THREADS", "many")
    with pytest.raises(rd.RoundelError, match="ROUNDEL_NUM_THREADS cannot be 'many'"):
        rd.compile(path)
    monkeypatch.setenv("ROUNDEL_NUM_THREADS", "1")
    assert rd.compile(path).executable.num_threads == 1
    monkeypatch.setenv("ROUNDEL_VERIFY", "")
    assert options.get("verify") is False


def test_a_model_for_another_machine_can_be_saved_and_not_called(path, tmp_path):
    model = rd.compile(path, target="neoverse-n1")
    assert [i.name for i in model.inputs] == ["x"] and "neoverse-n1" in model.metadata["target"]
    with pytest.raises(rd.RoundelError, match=r"another machine\n.*aarch64"):
        model(X)
    with pytest.raises(rd.RoundelError, match="aarch64"):
        rd.build(rd.import_model(path), target="neoverse-n1")


def test_metadata_tells_options_and_source(path, tmp_path):
    model = rd.compile(path, accuracy="strict")
    for m in (model, rd.compile(path, accuracy="strict"), rd.load(model.save(tmp_path / "m.so"))):
        assert m.metadata["options"]["accuracy"] == "strict" and m.metadata["version"] == rd.__version__
        assert m.metadata["source"] == {"kind": "file", "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        assert m.metadata["target"].startswith("llvm") and isinstance(m.metadata["features"], list)
    assert rd.compile(path.read_bytes()).metadata["source"]["sha256"] == m.metadata["source"]["sha256"]


def test_choices_are_kept_apart(path):
    """A model that is in the cache is taken only where the same was asked for."""
    for choices in (None, {"conv": "direct"}, {"conv": "direct"}, {"c*": "direct"}, {"*": {"grain": 1}}, None):
        assert rd.compile(path, choices=choices).metadata.get("choices") == choices


def test_a_header_is_saved_with_the_library(path, tmp_path):
    for source in (path, path.read_bytes()):  # the one from the cache, the other linked where it was compiled
        rd.compile(path)
        rd.compile(source).save(tmp_path / "m.so", header=True, name="net")
        assert "int net_run(const DLTensor *inputs, DLTensor *outputs);" in (tmp_path / "m.h").read_text()
        (tmp_path / "m.h").unlink()
    with pytest.raises(rd.RoundelError, match="header would change it"):
        rd.load(tmp_path / "m.so").save(tmp_path / "n.so", header=True)
    with pytest.raises(rd.RoundelError, match=r"not compiled to WebAssembly"):
        rd.compile(path).save(tmp_path / "m.wasm")


def test_where_nothing_can_be_written(path, tmp_path):
    model = rd.compile(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(rd.RoundelError, match="it is a folder"):
        model.save(tmp_path)
    with pytest.raises(rd.RoundelError, match="cannot be written"):
        model.save(tmp_path / "file" / "model.so")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["one.so", "beside.so", "part.o"])
def test_a_model_from_the_cache_is_saved_without_compiling(path, tmp_path, monkeypatch, name):
    expected = rd.compile(path)(X)
    again = rd.compile(path)
    monkeypatch.setattr("roundel.driver.compile_module", None)
    again.save(tmp_path / name, **({"side_file": True} if name == "beside.so" else {}))
    assert (tmp_path / "beside.weights").exists() == (name == "beside.so")
    if name.endswith(".so"):
        np.testing.assert_array_equal(rd.load(tmp_path / name)(X), expected)


@pytest.mark.parametrize("what", ["\0", "x" * 5000, "pipe.onnx", "/dev/zero", "."])
def test_names_at_which_there_is_no_regular_file(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.onnx")
    with pytest.raises(rd.RoundelError):
        rd.compile(what)


def test_what_is_no_path(path, tmp_path):
    model = rd.compile(path)
    for wrong in (None, 5, b"x", []):
        with pytest.raises(rd.RoundelError, match="not the path of a file"):
            rd.load(wrong)
        with pytest.raises(rd.RoundelError, match="not the path of a file"):
            model.save(wrong)
    for name in ("y" * 300 + ".so", "y\0.so"):
        with pytest.raises(rd.RoundelError):
            model.save(tmp_path / name)


def test_arguments_whose_own_methods_fail(path):
    class Broken:
        def __init__(self, made, shape=(1, 4)):
            self.made, self.shape = made, shape

        def __dlpack__(self, **_):
            return self.made()

        def __dlpack_device__(self):
            return 1, 0

    model = rd.compile(path)
    for wrong in (np.ndarray, int, *(Broken(made, shape) for made in (lambda: {}["no"], lambda: None, object) for shape in ((1, 4), None, ("a",)))):
        with pytest.raises(rd.RoundelError):
            model(wrong)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a feature of x86-64 that no processor has had since 2015")
def test_a_model_for_another_cpu_is_saved_and_not_run(path, tmp_path):
    model = rd.compile(path, target="x86-64 -mattr=+xop")
    with pytest.raises(CallError, match="compiled for another machine(.|\n)*CPUs with xop"):
        model(X)
    with pytest.raises(MachineError, match="CPUs with xop"):
        rd.load(model.save(tmp_path / "model.so"))


def test_what_else_keeps_a_model_from_being_loaded_is_told(path, monkeypatch):
    """It is no model for another machine then."""
    from roundel.build import Built

    for error in (CallError("the module cannot be opened", why="the library was built for version 1"), MemoryError("no memory to open the model")):
        def load(*_, error=error, **__):
            raise error

        monkeypatch.setattr(Built, "load", load)
        with options.override(cache=False), pytest.raises(type(error), match="cannot be opened|no memory"):
            rd.compile(path)


def test_a_built_module_knows_its_functions_by_their_names_in_the_module_too():
    from roundel.script import ir as I
    from roundel.script import tir as T

    @I.ir_module
    class Module:
        @T.prim_func
        def inside(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            T.func_attr({"global_symbol": "outside"})
            for i in range(4):
                B[i] = A[i] + T.float32(1)

        @T.prim_func(private=True)
        def hidden(A: T.Buffer((4,), "float32")):
            for i in range(4):
                A[i] = T.float32(1)

    for run in (rd.interpret, rd.build):
        made = run(Module)
        for name in ("inside", "outside"):
            out = np.zeros(4, np.float32)
            made[name](np.ones(4, np.float32), out)
            assert out.tolist() == [2.0] * 4
        with pytest.raises(KeyError, match="has no function 'other'"):
            made["other"]
    with pytest.raises(KeyError, match="hidden is private"):
        made["hidden"]
