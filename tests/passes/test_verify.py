# SPDX-License-Identifier: Apache-2.0
"""Verification: the first wrong pass is named, right ones are left alone."""

from __future__ import annotations

import pytest

from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.errors import VerifyError
from roundel.ir.module import IRModule
from roundel.ir.op import get_op
from roundel.ir.visit import Rewriter, map_functions, on
from roundel.passes import pass_, run
from roundel.passes.inputs import make_case, size_vars
from roundel.passes.verify import Verify
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def matmul(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 6), "float32")
        B = T.match_buffer(b, (6, 5), "float32")
        C = T.match_buffer(c, (n, 5), "float32")
        for i, j, k in T.grid(n, 5, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((6, 5), "float32")) -> R.Tensor(("n", 5), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 5), "float32"))
            z = R.add(y, y)
            out = R.nn.relu(z)
            R.output(out)
        return out


class _Swap(Rewriter):
    @on(tir.Add)
    def _add(self, e):
        return tir.Add(e.b, e.a)


@pass_("test.commute")
def commute(mod):
    return map_functions(mod, tir.PrimFunc, _Swap().rewrite)


class _Break(Rewriter):
    @on(tir.Mul)
    def _mul(self, e):
        return tir.Add(e.a, e.b)


@pass_("test.break_program")
def break_program(mod):
    return map_functions(mod, tir.PrimFunc, _Break().rewrite)


class _BreakGraph(Rewriter):
    @on(graph.Call)
    def _call(self, e):
        return e.replace(op=get_op("subtract")) if getattr(e.op, "name", "") == "add" else e


@pass_("test.break_graph")
def break_graph(mod):
    return map_functions(mod, graph.Function, lambda f: f.replace(body=_BreakGraph().rewrite(f.body)))


def test_right_passes_pass():
    run(Module, [commute, lambda mod: mod, commute], verify=True)


def test_wrong_tensor_program_is_named():
    with pytest.raises(VerifyError, match=r"after pass test\.break_program: main") as error:
        run(Module, [commute, break_program, commute], verify=True)
    assert "with n = 3" in str(error.value)


def test_wrong_graph_is_named():
    with pytest.raises(VerifyError, match=r"after pass test\.break_graph: main output\[\d, \d\] is"):
        run(Module, [commute, break_graph], verify=True)


def test_changed_signature_is_judged_by_callers():
    """Transposing the weight in both places is right; in one place only is not."""
    program = Module["matmul"]
    b_old = program.buffer_params[1]
    b_new = b_old.replace(shape=(b_old.shape[1], b_old.shape[0]))

    class _Transpose(Rewriter):
        def buffer(self, buffer):
            return b_new if buffer is b_old else buffer

        @on(tir.BufferLoad)
        def _load(self, e):
            return tir.BufferLoad(b_new, e.indices[::-1]) if e.buffer is b_old else self.generic(e)

        @on(tir.BufferRegion)
        def _region(self, r):
            return tir.BufferRegion(b_new, r.region[::-1]) if r.buffer is b_old else self.generic(r)

    def callee(mod):
        return mod.with_functions({"matmul": _Transpose().rewrite(program)})

    def both(mod):
        func = mod["main"]
        _, w = func.params
        info = graph.TensorInfo((5, 6), "float32")
        turned = graph.DataflowVar("wt", info)

        class _Caller(Rewriter):
            @on(graph.DataflowBlock)
            def _block(self, b):
                first = graph.VarBinding(turned, graph.Call(get_op("permute_dims"), (w,), Attrs(axes=(1, 0)), (), info))
                return graph.DataflowBlock((first, *self.generic(b).bindings))

            @on(graph.Tuple)
            def _tuple(self, t):
                return graph.Tuple(tuple(turned if f is w else f for f in t.fields))

        return callee(mod).with_functions({"main": func.replace(body=_Caller().rewrite(func.body))})

    with pytest.raises(VerifyError, match="main"):
        run(Module, [callee], verify=True)
    run(Module, [both], verify=True)


def test_ill_formed_modules_are_refused():
    stray = tir.Var("stray", DType("int64"))

    def broken(mod):
        f = mod["matmul"]
        return mod.with_functions({"matmul": f.replace(body=tir.seq(f.body, tir.Evaluate(stray)))})

    with pytest.raises(
        VerifyError, match=r"ill-formed after pass broken\n.*variable stray is used before it is defined"
    ):
        run(Module, [broken], verify=True)


def test_cases_respect_symbolic_dimensions():
    case = make_case(Module["main"], (3, 5))
    assert case.dims == {"n": 3} and case.args[0].shape == (3, 6)
    assert [v.name for v in size_vars(Module["matmul"])] == ["n"]


def test_what_cannot_run_is_reported_as_skipped():
    def f(mod):
        return mod.with_functions({"main": mod["main"].with_attr("x", 1)})

    calls = graph.ExternFunc("test.not.there")
    info = graph.TensorInfo((3,), "float32")
    x, y = graph.Var("x", info), graph.Var("y", info)
    call = graph.Call(calls, (x,), Attrs(), (info,), info)
    mod = IRModule(
        {"main": graph.Function((x,), graph.SeqExpr((graph.BindingBlock((graph.VarBinding(y, call),)),), y), info)}
    )
    verify = Verify()
    run(mod, [f], observers=[verify])
    assert verify.skipped and "test.not.there" in verify.skipped[0][2]


def test_a_wrong_kernel_shows_in_the_host_function():
    from roundel.graph.programs.legalize import legalize
    from roundel.host.lower_host import lower_host
    from roundel.lower import PIPELINE

    host = run(
        IRModule({**Module.functions, "main": Module["main"].with_attr("global_symbol", "main")}),
        [legalize, lower_host],
    )
    assert host["main"].attrs["kind"] == "host"
    run(host, PIPELINE, verify=True)
    with pytest.raises(VerifyError, match=r"after pass test\.break_program: main"):
        run(host, [*PIPELINE[:3], break_program, *PIPELINE[3:]], verify=True)
