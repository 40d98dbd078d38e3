# SPDX-License-Identifier: Apache-2.0
"""What TVM's tutorials do with default schedules, instruments and passes, as they write it."""

import numpy as np
import pytest

import roundel.compat.tvm as tvm
from roundel.compat.tvm import dlight as dl
from roundel.compat.tvm import relax, tir
from roundel.compat.tvm.s_tir.dlight.analysis import normalize_prim_func
from roundel.compat.tvm.s_tir.dlight.base.schedule_rule import ScheduleRule
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import relax as R


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 5), "float32")):
        with R.dataflow():
            y = R.nn.softmax(R.nn.relu(R.matmul(x, w)))
            R.output(y)
        return y


RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((4, 8)).astype("float32"), RNG.standard_normal((8, 5)).astype("float32")
WANTED = np.exp(np.maximum(X @ W, 0)) / np.exp(np.maximum(X @ W, 0)).sum(1, keepdims=True)


def test_default_schedules_bind_threads_on_gpus_only():
    import roundel as rd

    mod = relax.get_pipeline("zero")(Net)
    rules = (dl.gpu.Matmul(), dl.gpu.GeneralReduction(), dl.gpu.Fallback())
    with tvm.target.Target("nvidia/geforce-rtx-3090-ti"):
        bound = dl.ApplyDefaultSchedule(*rules)(mod)
        assert tvm.ir.structural_equal(dl.ApplyDefaultSchedule(*rules)(bound), bound)
    programs = [f for _, f in bound.functions_items() if isinstance(f, tir.PrimFunc)]
    assert programs and all(f.attrs["tir.is_scheduled"] == 1 and "threadIdx.x" in f.script() for f in programs)
    np.testing.assert_allclose(rd.interpret(bound)["main"](X, W), WANTED, rtol=1e-5)
    with tvm.target.Target("llvm"):
        assert tvm.ir.structural_equal(dl.ApplyDefaultSchedule(*rules)(mod), mod)
        own = dl.ApplyDefaultSchedule(dl.cpu.GEMV(), dl.cpu.Reduction())(mod)
    np.testing.assert_allclose(tvm.compile(own, "llvm")["main"](X, W), WANTED, rtol=1e-5)
    with pytest.raises(ValueError, match="with target"):
        dl.ApplyDefaultSchedule(*rules)(mod)


def test_a_rule_of_ones_own_is_a_function():
    @ScheduleRule.from_callable("Mine")
    def mine(func, target, tunable):
        sch = tir.Schedule(func)
        infos = normalize_prim_func(sch)
        if len(infos) != 1 or not infos[0].is_injective():
            return None
        sch.bind(sch.fuse(*sch.get_loops(infos[0].block_rv)), "threadIdx.x")
        return sch

    with tvm.target.Target("cuda"):
        bound = dl.ApplyDefaultSchedule(mine)(relax.transform.LegalizeOps()(Net))
    assert ["threadIdx.x" in bound[name].script() for name in ("relu", "matmul")] == [True, False]


def test_instruments_see_each_kernel_and_may_leave_it_out():
    vm = relax.VirtualMachine(tvm.compile(Net, "llvm"), tvm.cpu())
    seen = []

    def instrument(func, name, before_run, ret_value, *args):
        seen.append((name, before_run, args[-1].numpy().shape))
        assert callable(func) and ret_value is None
        return relax.VMInstrumentReturnKind.SKIP_RUN if name == "softmax" else relax.VMInstrumentReturnKind.NO_OP

    vm.set_instrument(instrument)
    assert not np.allclose(vm["main"](X, W), WANTED)
    assert seen == [("matmul", True, (4, 5)), ("matmul", False, (4, 5)), ("relu", True, (4, 5)), ("relu", False, (4, 5)), ("softmax", True, (4, 5))]
    vm.set_instrument(None)
    np.testing.assert_allclose(vm["main"](X, W), WANTED, rtol=1e-5)


def test_passes_by_tvms_names():
    mixed = relax.transform.ToMixedPrecision("float16", ["w"])(Net)
    assert str(mixed["main"].params[1].struct_info.dtype) == "float16"
    loss = tvm.ir.IRModule({"main": Net["main"]})
    assert relax.transform.LambdaLift()(loss) is loss
