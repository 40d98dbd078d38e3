# SPDX-License-Identifier: Apache-2.0
"""WebAssembly on servers: programs for WASI, which read and write NumPy's files, and plain modules by wasmtime's interface, compute what the library computes
here, and refuse what does not fit."""

import json
from hashlib import sha256

import numpy as np
import pytest
from benchmarks.models import Case, data, onnx_file
from onnx import helper
from tests.codegen.c_models import MODELS, convolutions, dense, listed, onnx_model, same

import roundel as rd
from roundel.build.wasm import _Module
from roundel.ir.errors import OptionError
from roundel.runtime.integrity import BlocksDigest

pytest.importorskip("ziglang")
pytest.importorskip("wasmtime")

from tests.wasmtime_models import Failed, Instance, Program


@pytest.mark.parametrize("kind, target, beside", [("dense", "wasm32-wasi", False), ("quantised", "wasm32-wasi-relaxed", True), ("integers", "wasm32", True)])
def test_models_compute_on_servers_what_they_compute_here(kind, target, beside, tmp_path):
    model, inputs = MODELS[kind]()
    want = listed(rd.compile(model)(*inputs))
    file = rd.compile(model, target=target).save(tmp_path / "m.wasm", side_file=beside)
    server = Instance(file) if target == "wasm32" else Program(file)
    same(server.run(inputs, len(want)), want)


def test_one_program_serves_every_size_and_tells_what_it_is(tmp_path):
    model, here = dense()[0], rd.compile(dense()[0])
    program = Program(rd.compile(model, target="wasm32-wasi").save(tmp_path / "m.wasm"))
    assert json.loads(program.call())["functions"][0]["inputs"][0]["name"] == "x"
    for n in (1, 3, 700, 0):
        x = np.random.default_rng(n).standard_normal((n, 16)).astype("f")
        same(program.run([x], 1, "--function", "main"), listed(here(x)))


@pytest.mark.parametrize("shape", [(), (3, 0), (2, 3, 5)])
def test_files_of_every_type_come_and_go(shape, tmp_path):
    types = ["float16", "float64", "int8", "int64", "uint8", "uint16", "bool"]
    nodes = [helper.make_node("Identity", [f"x{k}"], [f"y{k}"]) for k in range(len(types))]
    model = onnx_model(nodes, *({f"{name}{k}": (dtype, list(shape)) for k, dtype in enumerate(types)} for name in "xy"))
    inputs = [(np.random.default_rng(0).random(shape) * 100).astype(dtype) for dtype in types]
    same(Program(rd.compile(model, target="wasm32-wasi").save(tmp_path / "m.wasm")).run(inputs, len(types)), inputs)


def test_what_does_not_fit_is_an_error_in_words(tmp_path):
    model, (x,) = convolutions()
    program = Program(rd.compile(model, target="wasm32-wasi").save(tmp_path / "m.wasm", side_file=True))
    np.save(tmp_path / "x.npy", x)
    whole = (tmp_path / "x.npy").read_bytes()
    for name, content in (("cut", whole[:-1]), ("long", whole + b"0"), ("header", whole[:40]), ("text", b"1, 2, 3" * 9), ("none", b"")):
        (tmp_path / f"{name}.npy").write_bytes(content)
    np.save(tmp_path / "wide.npy", x.astype("d"))
    np.save(tmp_path / "turned.npy", np.asfortranarray(x))
    np.save(tmp_path / "small.npy", x[:, :, 1:])
    np.save(tmp_path / "names.npy", np.array(["a"]))
    wrong = {("x.npy", "x.npy"): "1 inputs are wanted, 2 were given", ("nothing.npy",): "nothing.npy cannot be read", ("cut.npy",): "cut off",
             ("long.npy",): "too long", ("header.npy",): "no file of NumPy", **{(f"{name}.npy",): "no file of NumPy" for name in ("text", "none", "names")},
             ("turned.npy",): "no file of NumPy", ("wide.npy",): "float64", ("small.npy",): "'x'", ("x.npy", "-o"): "behind -o a name is wanted",
             ("x.npy", "-o", "a", "-o", "b"): "names for 2", ("x.npy", "--function", "f"): "no function 'f'", ("x.npy", "-o", "/a"): "cannot be written",
             ("../x.npy",): "cannot be read"}
    for args, message in wrong.items():
        with pytest.raises(Failed, match=message) as error:
            program.call(*args)
        assert error.value.status in (1, 2, 3)
    weights = tmp_path / "m.wasm.weights"
    for content, message in ((weights.read_bytes()[:-64] + b"0" * 64, "another model"), (b"", "weights"), (None, "weights")):
        weights.unlink() if content is None else weights.write_bytes(content)
        with pytest.raises(Failed, match=message):
            program.call("x.npy")


def test_a_program_imports_the_system_and_brings_its_memory(tmp_path):
    made = rd.compile(dense()[0], target="wasm32-wasi")
    content = made.save(tmp_path / "m.wasm").read_bytes()
    module = _Module.read(content)
    assert BlocksDigest([sha256(content[:-66]).digest()]).digest().hex() == content[-66:-2].decode(), "it ends in its digest, which hosts may compare"
    assert b"env" not in module.section(2) and b"\6memory\2" in module.section(7) and b"\6_start\0" in module.section(7)
    with pytest.raises(OptionError, match="is a program"):
        made.save(tmp_path / "m.wasm", header=True)


@pytest.mark.slow
@pytest.mark.parametrize("target, run", [("wasm32", Instance), ("wasm32-wasi", Program)])
@pytest.mark.parametrize("name", ["mobilenetv2", "resnet18", "bert128"])
def test_real_models_on_servers(name, target, run, tmp_path):
    case = Case(name)
    inputs, want = data(case)
    file = rd.compile(onnx_file(case), target=target).save(tmp_path / "m.wasm", side_file=True)
    assert file.stat().st_size <= 400 << 10
    (got,) = run(file).run(list(inputs.values()), 1)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
