# SPDX-License-Identifier: Apache-2.0
"""Training as TVM's documentation and tests write it."""

import numpy as np
import pytest
from roundel.compat.tvm.relax.training.loss import MSELoss
from roundel.compat.tvm.relax.training.optimizer import SGD

import roundel.compat.tvm as tvm
from roundel.compat.tvm import TVMError, relax
from roundel.compat.tvm.relax.training import SetupTrainer, Trainer
from roundel.compat.tvm.relax.training.utils import AppendLoss
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import relax as R


@I.ir_module
class MLP:
    I.module_attrs({"param_num": 2, "state_num": 0})

    @R.function
    def backbone(x: R.Tensor((1, 10), "float32"), w0: R.Tensor((10, 5), "float32"), b0: R.Tensor((5,), "float32")):
        with R.dataflow():
            lv0 = R.matmul(x, w0)
            lv1 = R.add(lv0, b0)
            out = R.nn.relu(lv1)
            R.output(out)
        return out


@pytest.mark.parametrize("legalize", [True, False])
def test_a_trainer_learns_one_example(legalize):
    info = relax.TensorStructInfo((1, 5), "float32")
    train_mod = SetupTrainer(MSELoss(reduction="sum"), SGD(0.02), [info, info], legalize=legalize)(MLP)
    assert set(train_mod.functions) >= {"backbone", "backbone_loss", "backbone_loss_adjoint", "optimizer"} and train_mod.attrs["input_num"] == 1
    vm = relax.VirtualMachine(tvm.compile(train_mod, "llvm"), tvm.cpu(), profile=True)
    trainer = Trainer(train_mod, vm, tvm.cpu(), False)
    x, y = np.ones((1, 10), "float32"), np.array([[0, 0, 1, 0, 0]], np.float32)
    with pytest.raises(TVMError, match="no values"):
        trainer.predict(x)
    trainer.load_params({"w0": np.full((10, 5), 0.05, "float32"), "b0": np.zeros(5, "float32")})
    losses = [float(trainer.update(x, y).numpy()) for _ in range(60)]
    assert losses[0] == pytest.approx(1.25) and losses[-1] < 1e-8
    tvm.testing.assert_allclose(trainer.predict(x).numpy(), y, rtol=1e-3, atol=1e-3)
    trainer.profile_adjoint([x], [y])
    other = Trainer(train_mod, vm, tvm.cpu(), False)
    other.load_params(trainer.export_params())
    tvm.testing.assert_allclose(other.predict(x).numpy(), trainer.predict(x).numpy())
    other.xaiver_uniform_init_params()


def test_the_loss_behind_a_model():
    info = relax.TensorStructInfo((1, 5), "float32")
    mod = AppendLoss("backbone", MSELoss(reduction="sum")(info, info))(MLP)
    assert [p.name_hint for p in mod["backbone_loss"].params] == ["x", "w0", "b0", "targets"]
    assert len(mod["backbone_loss"].body.blocks) == 1 and len(mod["backbone_loss"].body.bindings) == 6


def test_parameters_are_lifted_and_bundled_and_layouts_converted():
    @I.ir_module
    class Conv:
        @R.function
        def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((3, 4, 3, 3), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.nn.relu(R.nn.conv2d(x, R.permute_dims(w, axes=[1, 0, 2, 3])))
                R.output(y)
            return y

    mod = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(Conv)
    mod = relax.transform.BundleModelParams()(relax.transform.LiftTransformParams()(mod))
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype("float32") for s in ((1, 3, 8, 8), (3, 4, 3, 3)))
    plain = relax.VirtualMachine(tvm.compile(Conv, "llvm"), tvm.cpu())["main"](x, w)
    params = vm["main_transform_params"]((w,))
    assert params[0].shape == (4, 3, 3, 3)
    tvm.testing.assert_allclose(vm["main"](x, params).numpy(), plain.numpy(), rtol=1e-4, atol=1e-4)
