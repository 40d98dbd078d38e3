# SPDX-License-Identifier: Apache-2.0
"""Words of other programs written for TVM: instruments of passes, packed parameters, shapes, functions kept by machines."""

import numpy as np
import pytest

import roundel.compat.tvm as tvm
from roundel.compat.tvm import relax, tir
from roundel.compat.tvm.ir.instrument import PassPrintingInstrument, PassTimingInstrument, pass_instrument
from roundel.compat.tvm.relax.frontend import nn
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import relax as R
from roundel.compat.tvm.script import tir as T
from roundel.ir.errors import BuilderError


@I.ir_module
class Twice:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        return R.add(x, x)


def test_instruments_see_passes_and_may_leave_them_out(capsys):
    @pass_instrument
    class Watch:
        def __init__(self):
            self.seen = []

        def enter_pass_ctx(self):
            self.seen.append("enter")

        def exit_pass_ctx(self):
            self.seen.append("exit")

        def should_run(self, mod, info):
            return info.name != "skipped"

        def run_before_pass(self, mod, info):
            self.seen.append(info.name)

    @tvm.transform.module_pass(opt_level=0, name="skipped")
    def skipped(mod, ctx):
        raise AssertionError("this pass does not run")

    @tvm.transform.module_pass(opt_level=1, name="kept")
    def kept(mod, ctx):
        return mod

    watch, times = Watch(), PassTimingInstrument()
    both = tvm.transform.Sequential([skipped, kept], name="both")
    with tvm.transform.PassContext(instruments=[watch, times, PassPrintingInstrument(["kept"], [])]) as context:
        assert both(Twice) is Twice
        shown = times.render().splitlines()
        context.override_instruments([])
        kept(Twice)
    assert watch.seen == ["enter", "both", "kept", "exit"] and (kept.info.name, kept.info.opt_level) == ("kept", 1)
    assert [line.split(":")[0] for line in shown] == ["both", "  kept"] and both.passes == [skipped, kept]
    assert "Print IR before: kept" in capsys.readouterr().out
    with tvm.transform.PassContext(disabled_pass=["both"]):
        both(Twice)


def test_parameters_are_one_tuple_or_none_at_all():
    class Net(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x)

        def shapes(self, n):
            return nn.op.wrap_nested(relax.op.full(relax.ShapeExpr([n]), relax.const(1.0)), "ones")

    options = {"param_mode": "packed", "effect_mode": "none"}
    mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 4), "float32"), "$": options}, "shapes": {"n": int, "$": {"param_mode": "none"}}})
    assert [p.name_hint for p in mod["forward"].params] == ["x", "packed_params"] and len(mod["shapes"].params) == 1
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    weights = [np.ones([int(d) for d in p.shape], "float32") for _, p in params]
    np.testing.assert_allclose(vm["forward"](np.ones((3, 4), "float32"), weights), np.full((3, 2), 5.0))
    with pytest.raises(BuilderError, match="no param_mode 'folded'"):
        Net().export_tvm({"forward": {"$": {"param_mode": "folded"}}})


def test_a_machine_keeps_calls():
    vm = relax.VirtualMachine(tvm.compile(Twice, "llvm"), tvm.cpu())
    vm.save_function("main", "later", np.ones(3, "float32"))
    assert vm["later"]().tolist() == [2, 2, 2] and tvm.runtime.ShapeTuple([2, 3])[1] == 3


def test_small_words_of_programs_and_schedules():
    @T.prim_func
    def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    first, second = tir.Schedule(copy), tir.Schedule(copy)
    first.vectorize(first.get_loops(first.get_block("B"))[0])
    tir.schedule.Trace.apply_json_to_schedule(first.trace.as_json(), second)
    tvm.ir.assert_structural_equal(first.mod, second.mod)
    assert copy.with_body(copy.body) == copy and issubclass(tir.schedule.ScheduleError, tvm.TVMError)
    i = tir.Var("i", "int32")
    assert str(tir.if_then_else(i < 3, 1, 2)) == str(tir.if_then_else(i < 3, tir.const(1), tir.const(2)))
    assert tvm.target.Target("llvm").kind.name == "llvm"


def test_functions_are_profiled_kernel_by_kernel():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32")):
            return R.nn.softmax(R.matmul(x, w))

    vm = relax.VirtualMachine(tvm.compile(Module), tvm.cpu(), profile=True)
    report = vm.profile("main", np.ones((5, 16), np.float32), np.ones((16, 8), np.float32))
    assert len(report) >= 1 and "share" in str(report)
