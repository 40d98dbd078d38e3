# SPDX-License-Identifier: Apache-2.0
"""Programs written for TVM run with their imports changed; the page of names says what holds."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import roundel.compat.tvm as tvm
from roundel.compat.page import page
from roundel.compat.tvm import relax, te, topi
from roundel.compat.tvm.ir.module import IRModule
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import relax as R
from roundel.compat.tvm.script import tir as T

RNG = np.random.default_rng(0)


def _array(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def _through(fn, *arrays):
    """A function of tensors, built and run."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"x{k}") for k, a in enumerate(arrays)]
    out = fn(*inputs)
    mod = IRModule({"main": te.create_prim_func([*inputs, out]).with_attr("global_symbol", "main")})
    result = tvm.nd.empty([int(n) for n in out.shape], str(out.dtype))
    tvm.build(mod, target="llvm")["main"](*map(tvm.nd.array, arrays), result)
    return result.numpy()


def test_the_page_of_names_is_current():
    assert (Path(__file__).parents[2] / "docs" / "from-tvm.md").read_text() == page(), "python -m roundel.compat > docs/from-tvm.md"


def test_a_program_of_the_course():
    @tvm.script.ir_module
    class MyModule:
        @T.prim_func
        def mm_relu(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
            T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
            Y = T.alloc_buffer((64, 64), dtype="float32")
            for i, j, k in T.grid(64, 64, 64):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
            for i, j in T.grid(64, 64):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    sch = tvm.tir.Schedule(MyModule)
    block = sch.get_block("Y", func_name="mm_relu")
    _, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at(sch.get_block("C", "mm_relu"), j0)
    sch.decompose_reduction(block, k)
    a, b = (tvm.nd.array(_array(64, 64)) for _ in range(2))
    c = tvm.nd.empty((64, 64), dtype="float32")
    rt = tvm.build(sch.mod, target="llvm")
    rt["mm_relu"](a, b, c)
    tvm.testing.assert_allclose(c.numpy(), np.maximum(a.numpy() @ b.numpy(), 0), rtol=1e-4, atol=1e-4)
    times = rt.time_evaluator("mm_relu", tvm.cpu(), number=3, repeat=2)(a, b, c)
    assert len(times.results) == 2 and 0 < times.min <= times.mean <= times.max


def test_a_function_of_pytorch_and_parameters_in_a_graph():
    @tvm.register_func("compat.linear", override=True)
    def linear(x, w, b, out):
        torch.from_dlpack(out).copy_(F.linear(*map(torch.from_dlpack, (x, w, b))))

    @I.ir_module
    class Model:
        @R.function
        def main(x: R.Tensor((1, 8), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.call_dps_packed("compat.linear", (x, w, b), out_sinfo=R.Tensor((1, 4), dtype="float32"))
                R.output(lv)
            return lv

    params = {"w": tvm.nd.array(_array(4, 8)), "b": tvm.nd.array(_array(4))}
    vm = relax.VirtualMachine(relax.build(relax.transform.BindParams("main", params)(Model), target="llvm"), tvm.cpu())
    x = tvm.nd.array(_array(1, 8))
    np.testing.assert_allclose(vm["main"](x).numpy(), x @ params["w"].T + params["b"], rtol=1e-5)


def test_a_graph_of_topi_and_passes_by_name():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 8), "float32"))
    weight = _array(4, 8)
    with bb.function("main", [x]):
        with bb.dataflow():
            h = bb.emit_te(topi.nn.dense, x, relax.const(weight, "float32"))
            out = bb.emit_output(bb.emit_te(topi.nn.relu, h))
        bb.emit_func_output(out)
    passes = tvm.transform.Sequential([relax.transform.LegalizeOps(), relax.transform.FuseOps(), relax.transform.FuseTIR()])
    with tvm.transform.PassContext(opt_level=3):
        mod = passes(bb.get())
    data = _array(2, 8)
    np.testing.assert_allclose(tvm.build(mod)["main"](data), np.maximum(data @ weight.T, 0), rtol=1e-5, atol=1e-6)


def test_a_pass_of_a_class():
    @tvm.transform.module_pass(opt_level=2, name="Renamed")
    class Renamed:
        def __init__(self, name):
            self.name = name

        def transform_module(self, mod, ctx):
            return IRModule({self.name: next(f for _, f in mod.items())})

    mod = IRModule({"f": te.create_prim_func([a := te.placeholder((2,), name="a"), te.compute((2,), lambda i: a[i] + 1)])})
    assert list(Renamed("g")(mod)) == ["g"]


X, Y = _array(2, 3, 4), _array(2, 3, 4)
PICTURE, KERNEL = _array(1, 4, 7, 9), _array(5, 4, 3, 3)
TOPI = {
    "transpose": (lambda x: topi.transpose(x, (2, 0, 1)), (X,), lambda x: x.transpose(2, 0, 1)),
    "concatenate": (lambda x, y: topi.concatenate((x, y), axis=1), (X, Y), lambda x, y: np.concatenate((x, y), 1)),
    "cast": (lambda x: topi.cast(x, "int32"), (X,), lambda x: x.astype(np.int32)), "sum": (lambda x: topi.sum(x, axis=[1]), (X,), lambda x: x.sum(1)),
    "matmul": (lambda x, y: topi.matmul(x, y, transp_b=True), (X[0], Y[0]), lambda x, y: x @ y.T),
    "batch_matmul": (topi.nn.batch_matmul, (X, Y), lambda x, y: x @ y.transpose(0, 2, 1)),
    "strided_slice": (lambda x: topi.strided_slice(x, [0, 1], [2, 3], [1, 2]), (X,), lambda x: x[:, 1:3:2]),
    "reshape": (lambda x: topi.reshape(x, (6, 4)), (X,), lambda x: x.reshape(6, 4)),
    "expand_dims": (lambda x: topi.expand_dims(x, 1), (X,), lambda x: x[:, None]),
    "add": (topi.add, (X, Y), np.add), "add a number": (lambda x: topi.add(x, 1.5), (X,), lambda x: x + np.float32(1.5)), "exp": (topi.exp, (X,), np.exp),
    "softmax": (topi.nn.softmax, (X,), lambda x: torch.softmax(torch.from_numpy(x), -1).numpy()), "leaky_relu": (
        lambda x: topi.nn.leaky_relu(x, 0.1), (X,), lambda x: np.where(x > 0, x, x * np.float32(0.1))),
    "bias_add": (topi.nn.bias_add, (X, X[0, :, 0].copy()), lambda x, b: x + b[:, None]), "flatten": (topi.nn.flatten, (X,), lambda x: x.reshape(2, 12)),
    "pad": (lambda x: topi.nn.pad(x, (0, 1, 2), (0, 0, 1)), (X,), lambda x: np.pad(x, ((0, 0), (1, 0), (2, 1)))),
    "conv2d": (lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1), (PICTURE, KERNEL), lambda x, w: F.conv2d(*map(torch.from_numpy, (x, w)), padding=1).numpy()),
    "depthwise": (lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 1, 0, 1), (PICTURE, _array(4, 2, 3, 3)),
                  lambda x, w: F.conv2d(torch.from_numpy(x), torch.from_numpy(w).reshape(8, 1, 3, 3), groups=4).numpy()),
    "pool2d": (lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), (PICTURE,),
               lambda x: F.max_pool2d(torch.from_numpy(x), 3, 2, 1).numpy()),
    "layer_norm": (lambda x, g, b: topi.nn.layer_norm(x, g, b, [-1]), (X, _array(4), _array(4)),
                   lambda x, g, b: F.layer_norm(*map(torch.from_numpy, (x,)), (4,), torch.from_numpy(g), torch.from_numpy(b)).numpy()),
}


@pytest.mark.parametrize("name", TOPI)
def test_topi(name):
    fn, arrays, expected = TOPI[name]
    np.testing.assert_allclose(_through(fn, *arrays), expected(*arrays), rtol=2e-5, atol=2e-5)


def test_what_is_missing_says_where_to_look():
    with pytest.raises(AttributeError, match="from-tvm"):
        tvm.auto_scheduler
    with pytest.raises(AttributeError, match=r"tvm\.topi\.nn\.bitserial_dense"):
        topi.nn.bitserial_dense
    with pytest.raises(tvm.TVMError, match="processor"):
        tvm.build(IRModule({}), target="cuda")


def test_constructors_take_the_arguments_of_tvm_in_its_order():
    from roundel.compat.tvm import arith, ir, tir

    x = tir.Var("x", "int32")
    assert isinstance(tir.IntImm("int32", 3), tir.IntImm) and int(tir.IntImm("int32", 3)) == 3
    assert not isinstance(tir.FloatImm("float32", 1.5), tir.IntImm)
    analyzer = arith.Analyzer()
    analyzer.bind(x, ir.Range(2, 8))
    assert analyzer.prove(x + 1 < 9) and not analyzer.prove(x < 7)
    assert str(ir.Range(8).extent) == "8" and str(ir.Range.from_min_extent(2, 8).extent) == "8"
    axis = tir.IterVar(ir.Range(0, 4), x, tir.IterVar.CommReduce if hasattr(tir.IterVar, "CommReduce") else 2)
    assert axis.kind.value == "reduce" and axis.var is x


def test_the_analyzer_has_the_names_of_tvm():
    from roundel.compat.tvm import arith, ir, tir

    x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
    an = arith.Analyzer()
    an.bind(x, ir.Range(0, 16))
    an.update(y, arith.ConstIntBound(2, arith.ConstIntBound.POS_INF))
    assert an.can_prove(x * 4 + 3 < 64, arith.ProofStrength.SYMBOLIC_BOUND) and an.can_prove_equal(x // 4 * 4 + x % 4, x)
    bound = an.const_int_bound(x * 2 + 1)
    assert (bound.min_value, bound.max_value) == (1, 31) and an.const_int_bound(y).max_value == arith.ConstIntBound.POS_INF
    assert an.const_int_bound_is_bound(x) and not an.const_int_bound_is_bound(tir.Var("z", "int64"))
    known = an.modular_set(x * 6 + 2)
    assert (known.coeff, known.base) == (6, 2)
    assert str(an.simplify(x // 16 + x % 16)) == str(an.canonical_simplify(x)) == str(an.rewrite_simplify(x + 0)) == "x"
    with an.constraint_scope(x > 7):
        assert an.can_prove(x >= 8)
    assert not an.can_prove(x >= 8)
    found = an.int_set(x + y, {x: arith.IntervalSet(0, 7)})
    assert str(found.min_value) == "y" and str(found.max_value) == "y + 7" and not found.is_everything()
    assert arith.IntervalSet.single_point(3).is_single_point()
    (low,) = arith.estimate_region_lower_bound([ir.Range(x * 2, x * 2 + 2)], {x: ir.Range(0, 8)}, True)
    assert str(low.max_value) == "15" and arith.estimate_region_upper_bound([ir.Range(x, x + 3)], {x: ir.Range(0, 8)}, True)[0].max_value.value == 9
