# SPDX-License-Identifier: Apache-2.0
"""Any model tells where its time goes, how its kernels are computed, and shows their machine code: from ONNX, PyTorch, a module, or a saved file."""

import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import roundel as rd
from roundel.ir.errors import BuildError, CallError, ModelError, OptionError
from roundel.runtime import disassembly

KERNEL = "fused_matmul_relu"
needs_objdump = pytest.mark.skipif(not any(map(shutil.which, disassembly.TOOLS)), reason="there is no objdump")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A product and a rectifier, of rows of any number; another product behind them."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in (("v", (32, 48)), ("w", (48, 3)))]
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="rectify"),
             helper.make_node("MatMul", ["b", "w"], ["y"], name="second")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ("rows", k)) for n, k in (("x", 32), ("y", 3))]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, tmp_path_factory.mktemp("model") / "m.onnx")
    return next(tmp_path_factory.getbasetemp().glob("model*/m.onnx"))


def of_torch(path):
    torch = pytest.importorskip("torch")
    return rd.compile(torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU(), torch.nn.Linear(48, 3)), (torch.ones(2, 32),))


KINDS = {
    "onnx file": rd.compile, "bytes": lambda path: rd.compile(path.read_bytes()), "module": lambda path: rd.compile(rd.import_model(path)),
    "saved": lambda path: rd.load(rd.compile(path).save(path.with_name("saved.so"))), "torch": of_torch,
    "without weights inside": lambda path: rd.load(rd.compile(path).save(path.with_name("side.so"), side_file=True)),
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, path):
    return KINDS[request.param](path)


def test_times_of_kernels(model):
    found = model.profile(seconds=0.02)
    assert len(found) == 2 and all(k.calls == 1 and k.milliseconds > 0 and k.rule for k in found)
    assert sum(k.share for k in found) == pytest.approx(1) and sum(k.milliseconds for k in found) <= found.fastest
    assert all(len(line) <= 80 for line in str(found).splitlines())


def test_what_is_known_of_kernels(model):
    told = model.explain()
    assert len(told.kernels) >= 2 and all(k["rule"] and k["nodes"] for k in told.kernels)
    assert all(len(line) <= 80 for line in str(told).splitlines())
    assert {k["kernel"]: k["rule"] for k in told.kernels}.items() >= {name: known["rule"] for name, known in model.kernels.items()}.items()


@needs_objdump
def test_machine_code(model):
    """As objdump shows it, the kernel's own and no other's; offsets begin at its first instruction."""
    for name, known in model.kernels.items():
        text = model.asm(name)
        assert text.startswith(known["symbol"]) and text.splitlines()[1].split()[0] == "0"
    with pytest.raises(OptionError, match="there is no kernel 'absent'"):
        model.asm("absent")


def test_results_are_the_same_while_times_are_taken(path):
    model, x = rd.compile(path), np.random.default_rng(1).standard_normal((5, 32)).astype(np.float32)
    before = model(x)
    found = model.profile([x], seconds=0)
    assert "x float32[5, 32]" in found.called_with
    np.testing.assert_array_equal(model(x), before)
    assert [k["nodes"] for k in model.kernels.values()] == [["first", "rectify"], ["second"]]


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"sizes": {"row": 3}}, OptionError, "no symbolic dimension 'row'"), ({"inputs": {"z": np.ones(3)}}, CallError, "no input 'z'"),
    ({"inputs": [np.ones((1, 32), np.float32)] * 2}, CallError, "does not take 2 inputs")])
def test_inputs_that_do_not_fit(path, arguments, error, message):
    with pytest.raises(error, match=message):
        rd.compile(path).profile(seconds=0, **arguments)


def test_a_file_that_was_replaced(path, tmp_path):
    saved = rd.compile(path).save(tmp_path / "m.so")
    model = rd.load(saved)
    rd.compile(path, dynamic={"rows": 4}).save(saved)
    for ask in (model.profile, lambda: model.asm(KERNEL)):
        with pytest.raises(ModelError, match="was replaced by another model"):
            ask()


def test_source_that_is_gone_or_another(path, tmp_path):
    """What else was possible is told as long as the model's file is the one that was compiled."""
    mine = tmp_path / "mine.onnx"
    shutil.copy(path, mine)
    model = rd.compile(mine)
    assert model.explain(sizes={"rows": 3}).kernels[0]["candidates"] > 0 and model.explain().module is not None
    mine.write_bytes(mine.read_bytes() + b" ")
    told = model.explain()
    assert told.module is None and "candidates" not in told.kernels[0] and "does not tell what else was possible" in str(told)
    with pytest.raises(OptionError, match="programs are not in a compiled file"):
        told.text(KERNEL)


def test_options_of_the_compilation_are_those_of_the_explanation(path):
    strict = rd.compile(path, accuracy="strict", choices={"first": "plain"}).explain()
    assert next(c for c in strict.choices if c["site"] == "first" and c["kind"] == "algorithm")["reason"] == "pinned"


def test_for_another_machine(path):
    model = rd.compile(path, target="cortex-a72")
    for ask in (model.profile, model.asm):
        with pytest.raises(CallError, match="compiled for another machine"):
            ask()
    assert model.explain().kernels[0]["candidates"] > 0


def test_without_a_disassembler(path, monkeypatch):
    monkeypatch.setattr(disassembly.shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="needs objdump, which was not found"):
        rd.compile(path).asm(KERNEL)


@needs_objdump
def test_stripped_code(path, tmp_path):
    saved = rd.compile(path).save(tmp_path / "m.so")
    stripped = tmp_path / "s.o"
    subprocess.run(["objcopy", "--strip-all", str(saved), str(stripped)], check=True)
    with pytest.raises(BuildError, match="its symbols were removed"):
        disassembly.disassembly(stripped, "rk_0")
