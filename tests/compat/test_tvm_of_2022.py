"""Programs of the course of 2022, in the words that TVM had then."""

from __future__ import annotations

import numpy as np

import roundel.compat.tvm as tvm
from roundel.compat.tvm import relax, topi
from roundel.compat.tvm.relax.testing import nn
from roundel.compat.tvm.script import relax as R


def _model():
    bb = relax.BlockBuilder()
    x = relax.Var("x", (2, 8), relax.DynTensorType(2, "float32"))
    w = relax.const(np.arange(32, dtype="float32").reshape(4, 8), relax.DynTensorType(2, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.dense(x, w))
            gv = bb.emit_output(relax.op.relu(lv))
        bb.emit_func_output(gv)
    return bb.get()


def test_a_model_of_dense_layers_is_built_and_run():
    vm = relax.VirtualMachine(relax.vm.build(_model(), target="llvm"), tvm.cpu())
    x = np.linspace(-1, 1, 16, dtype="float32").reshape(2, 8)
    want = np.maximum(x @ np.arange(32, dtype="float32").reshape(4, 8).T, 0)
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), want, rtol=1e-5, atol=1e-5)


def test_operators_are_found_by_their_old_names():
    call = _model()["main"].body.blocks[0].bindings[0].value
    assert call.op == tvm.ir.Op.get("relax.nn.dense")
    assert relax.Var("y", call.shape_, call._checked_type_).struct_info == call.struct_info


def test_relax_stands_for_r_in_a_script():
    @tvm.script.ir_module
    class Module:
        @R.function
        def main(x: Tensor((3, 4), "float32"), y: Tensor((3, 4), "float32")):  # the spelling of 2022
            with relax.dataflow():
                lv0 = relax.multiply(x, y)
                gv0 = relax.add(lv0, y)
                relax.output(gv0)
            return gv0

    x = np.ones((3, 4), "float32")
    np.testing.assert_array_equal(relax.VirtualMachine(relax.vm_build.build(Module), tvm.cpu())["main"](x, x), 2 * x)


def test_layers_emit_into_the_function_that_is_being_built():
    bb = relax.BlockBuilder()
    with bb.function("main"):
        model, x = nn.Sequential(nn.Linear(8, 4), nn.ReLU()), nn.Placeholder((2, 8), name="data")
        with bb.dataflow():
            out = bb.emit_output(model(x))
        bb.emit_func_output(out, [x, *model.parameters()])
    mod = bb.get()
    assert [p.name for p in mod["main"].params] == ["data", "linear_weight", "linear_bias"]
    assert [p.shape for p in nn.init_params(mod)] == [(8, 4), (4,)]


def test_functions_are_found_in_the_modules_that_tvm_keeps_them_in():
    from roundel.compat.tvm.topi.nn.pooling import pool2d
    from roundel.compat.tvm.topi.nn.utils import get_pad_tuple

    assert pool2d is topi.nn.pool2d
    assert get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2)
