# SPDX-License-Identifier: Apache-2.0
"""Models on boards without a system, in QEMU: what they compute, and the stack that was announced."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.boards.microcontroller import BOARDS, run_on_board, undefined
from tests.boards.tiny_models import MODELS
from tests.boards.tiny_models import quantised as quantised_net
from tests.codegen.c_models import quantised

import roundel as rd

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(BOARDS["cortex-m4"].missing()), reason="needs " + BOARDS["cortex-m4"].missing())]


@pytest.mark.parametrize("cpu", BOARDS)
def test_a_quantised_model_computes_there_what_it_computes_here(cpu, tmp_path):
    content, (x,) = quantised()
    want = np.asarray(rd.compile(content)(x))
    model = rd.compile(content, target=cpu)
    made = model.save(tmp_path / "net.o", header=True)
    run = run_on_board(cpu, made, [x], [want])
    np.testing.assert_allclose(run.outputs[0], want, atol=1e-6)
    announced = model.metadata["board"]["stack"]
    assert run.stack <= announced <= 1.05 * run.stack + 64  # where the program would say whether to go on, which has no function for that here
    assert set(undefined(made, cpu)) <= {"memcpy", "memset", "memmove"}


@pytest.mark.parametrize("floats", [True, False], ids=["float32", "int8"])
@pytest.mark.parametrize("cpu", ["rv64gcv-bare", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55"])
def test_keyword_spotting_as_zig_compiles_it(cpu, floats, tmp_path, monkeypatch):
    """It is computed by the processor's instructions for floats, to the bit where it is quantised, and the stack that it takes is told: on 64-bit RISC-V
    with vectors that find no register."""
    pytest.importorskip("ziglang")
    if floats and not BOARDS[cpu].has_floats:
        pytest.skip("it has no floats")
    net = MODELS["keywords"]()
    content = net.model().SerializeToString() if floats else quantised_net(net, tmp_path)
    x = np.random.default_rng(7).standard_normal(net.shape).astype(np.float32)
    want, model = np.asarray(rd.compile(content)(x)), rd.compile(content, target=cpu)
    with monkeypatch.context() as patched:
        patched.setattr("shutil.which", lambda name: None)
        made = model.save(tmp_path / "net.o", header=True)
    run = run_on_board(cpu, made, [x], [want])
    np.testing.assert_allclose(run.outputs[0], want, rtol=0, atol=1e-6 if floats else 0)
    assert run.stack <= model.metadata["board"]["stack"] <= 1.05 * run.stack + 64
    assert run.instructions < (12e6 if BOARDS[cpu].has_floats else 15e6)


@pytest.mark.parametrize("cpu", BOARDS)
def test_the_runtime_takes_less_than_8_kilobytes(cpu, tmp_path):
    """All of an object whose model does next to nothing."""
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [tensor("x")], [tensor("y")])
    model = rd.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString(), target=cpu)
    model.save(tmp_path / "net.o")
    assert model.metadata["board"]["flash"] <= 8192
