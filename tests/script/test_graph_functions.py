# SPDX-License-Identifier: Apache-2.0
"""Graph functions parse as written, print, and parse back to equal functions."""


from __future__ import annotations

import numpy as np
import pytest

from roundel.ir import IRModule, assert_structural_equal, graph, structural_equal, tir
from roundel.ir.dtype import INT64
from roundel.ir.op import get_op
from roundel.passes.well_formed import well_formed
from roundel.script import ir as I
from roundel.script import parse, print_script
from roundel.script import relax as R
from roundel.script import tir as T
from script_programs import MM_RELU


def round_trip(node):
    text = print_script(node)
    again = parse(text)
    assert_structural_equal(node, again)
    assert print_script(again) == text
    return text


MLP = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (m, k), "float32")
        W = T.match_buffer(w, (k, n), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (m, n), "float32")
        for i, j, l in T.grid(m, n, k):
            with T.block("Z"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    Z[vi, vj] = B[vj]
                Z[vi, vj] = Z[vi, vj] + X[vi, vk] * W[vk, vj]

    @R.function
    def main(x: R.Tensor((1, 784), "float32"), w0: R.Tensor((784, 128), "float32"), b0: R.Tensor((128,), "float32"),
             w1: R.Tensor((128, 10), "float32"), b1: R.Tensor((10,), "float32")):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.linear, (x, w0, b0), R.Tensor((1, 128), dtype="float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), R.Tensor((1, 128), dtype="float32"))
            lv2 = R.call_tir(Module.linear, (lv1, w1, b1), (1, 10), dtype="float32")
            R.output(lv2)
        return lv2
"""


def test_course_mlp():
    mod = parse(MLP)
    main = mod["main"]
    block = main.body.blocks[0]
    assert isinstance(block, graph.DataflowBlock)
    assert [type(b.var) for b in block.bindings] == [graph.DataflowVar, graph.DataflowVar, graph.Var]
    assert [b.value.op.name for b in block.bindings] == ["call_tir", "call_dps_packed", "call_tir"]
    assert main.ret_sinfo is graph.TensorInfo((1, 10), "float32")
    assert main.attrs["global_symbol"] == "main" and "global_symbol" not in mod["linear"].attrs
    round_trip(mod)


def test_symbolic_shapes_are_one_variable_per_name():
    @R.function
    def f(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(["4 * n", "T.max(m, 2)"]), p: R.Prim(value="m")) -> R.Tensor(
        ("n", "2 * m"), "float32"
    ):
        n = T.int64()
        m = T.int64()
        y: R.Tensor((n, 2 * m), "float32") = R.call_dps_packed(
            "double", (x,), out_sinfo=R.Tensor((n, 2 * m), "float32")
        )
        return y

    n, m = f.params[0].sinfo.shape
    assert (
        n.size
        and n.dtype is INT64
        and f.params[1].sinfo.values == (4 * n, tir.max_(m, 2))
        and f.params[2].sinfo.value is m
    )
    assert f.ret_sinfo.shape == (n, 2 * m)
    assert f.body.bindings[0].value.sinfo_args[0].shape == (n, 2 * m)
    assert '"T.max(m, 2)"' in round_trip(f)


def test_variables_declared_in_the_body_serve_the_signature():
    f = parse("""
@R.function
def f(x: R.Tensor((n, 4 * m), "float32")) -> R.Tensor((n,), "float32"):
    n, m = T.int64(), T.int32()
    gv = R.call_dps_packed("f", x, out_sinfo=R.Tensor((n,), "float32"))
    return gv
""")
    assert f.ret_sinfo.shape[0] is f.params[0].sinfo.shape[0]
    round_trip(f)


STRUCT_INFOS = [
    "R.Object",
    "R.Tensor()",
    "R.Tensor(ndim=2)",
    'R.Tensor(dtype="int8", ndim=0)',
    "R.Tensor(())",
    "R.Shape()",
    "R.Shape(ndim=3)",
    "R.Shape([1, 2])",
    'R.Prim("float16")',
    "R.Prim(value=5)",
    "R.Tuple()",
    "R.Tuple(R.Tensor((1,)), R.Tuple(R.Object))",
    'R.Tensor((2, 3), "float32", "cuda:0:global")',
    "R.Callable()",
    "R.Callable((R.Tensor((1,)), R.Object), R.Shape([1]))",
    "R.Callable(None, R.Object, pure=False)",
    'R.Tensor((1, 8, 4, 4), "float32", layout=R.Layout("NCHW8c", halo=((0, 0), (0, 0), (1, 1), (1, 1)), fill=0.0, pitch=(1, 8, 6, 8)))',
]


@pytest.mark.parametrize("info", STRUCT_INFOS)
def test_struct_info(info):
    f = parse(f"@R.function\ndef f(x: {info}) -> {info}:\n    return x")
    assert f.params[0].sinfo is f.ret_sinfo
    round_trip(f)
    assert parse(f"@R.function\ndef f(x: {f.ret_sinfo.script()}):\n    return x").params[0].sinfo is f.ret_sinfo


def test_operators_and_sugar():
    f = parse("""
@R.function
def f(x: "R.Tensor((2, 3), 'float32')", y: R.Tensor((2, 3), "float32")):
    with R.dataflow():
        a = R.nn.relu(x + y * 2.0)
        b = R.astype(a, "float16")
        c = R.sum(a, axis=[1], keepdims=True)
        d = R.concat((a, y, R.tanh(x)), axis=0)
        e = -x
        R.output(b, c, d, e)
    return (b, c, d, e)
""")
    names = [b.value.op.name for b in f.body.bindings if isinstance(b.value, graph.Call)]
    assert names == ["multiply", "add", "nn.relu", "astype", "sum", "tanh", "concat", "negative"]
    assert [t.dtype for t in f.ret_sinfo.fields] == ["float16", "float32", "float32", "float32"]
    assert f.ret_sinfo.fields[2].shape[0] is tir.index_const(6)
    round_trip(f)


def test_conditionals():
    f = parse("""
@R.function
def f(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
    if c:
        a = R.add(x, x)
        if c:
            w = R.exp(a)
        else:
            w = x
        y = w
    else:
        y = R.multiply(x, x)
    return y
""")
    value = f.body.bindings[0].value
    assert isinstance(value, graph.If) and isinstance(value.true_branch.bindings[1].value, graph.If)
    assert f.ret_sinfo is graph.TensorInfo((2,), "float32")
    round_trip(f)


def test_static_conditions_choose_at_parse_time():
    fancy = True

    @R.function
    def f(x: R.Tensor((2,), "float32")):
        if fancy:
            y = R.exp(x)
        else:
            y = R.log(x)
        return y

    assert [b.value.op.name for b in f.body.bindings] == ["exp"]


def test_loops():
    f = parse("""
@R.function
def f(n: R.Tensor((), "int64"), x: R.Tensor((2,), "float32")):
    def condition(i: R.Tensor((), "int64"), acc: R.Tensor((2,), "float32")):
        return R.less(i, n)
    def body(i, acc):
        j = R.add(i, R.const(1))
        return (j, R.add(acc, x))
    out = R.while_loop(condition, body, (R.const(0), x))
    y = out[1]
    return y
""")
    loop = f.body.bindings[0].value
    assert isinstance(loop, graph.While) and len(loop.loop_vars) == 2 and isinstance(loop.body.body, graph.Tuple)
    assert f.ret_sinfo is graph.TensorInfo((2,), "float32")
    round_trip(f)


def test_calls_of_other_functions():
    mod = parse("""
@I.ir_module
class Mod:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        cls = Mod
        y = cls.helper(x)
        z = Mod.later(y)
        w = R.call_packed("vm.builtin.f", z, 3, R.str("s"), R.dtype("int8"), R.prim_value(T.int32(1)), mode="fast", sinfo_args=R.Tensor(ndim=1))
        R.call_packed("log", w)
        g = R.ExternFunc("h")
        v = g(w, sinfo_args=[R.Object])
        return z
    @R.function(private=True)
    def helper(a: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m", "n + 1"), "float32"):
        m, n = T.int64(), T.int64()
        b = R.call_dps_packed("t", a, out_sinfo=R.Tensor((m, n + 1), "float32"))
        return b
    @R.function(pure=False)
    def later(a: R.Tensor(("n", "m"), "float32")):
        R.func_attr({"relax.force_pure": True, "names": ["x", "y"]})
        return R.exp(a)
""")
    infos = [b.var.sinfo for b in mod["main"].body.bindings]
    assert infos[0] is graph.TensorInfo((4, 4), "float32") and infos[1] is infos[0]
    assert infos[2] is graph.TensorInfo(None, None, 1)
    assert not mod["later"].is_pure
    round_trip(mod)


def test_match_cast_tuples_and_blocks():
    f = parse("""
@R.function
def f(x: R.Tensor(ndim=2, dtype="float32"), t: R.Tuple(R.Tensor((1,)), R.Tuple(R.Shape([2])))):
    n = T.int64()
    m = T.int64()
    y = R.match_cast(x, R.Tensor((n, m), "float32"))
    with R.dataflow():
        z = R.match_cast(y, R.Tensor((n, 4), "float32"))
        a, b = t
        R.output(z)
    with R.binding_block():
        c = t[1][0]
    s = R.shape([n, m + 1])
    with R.dataflow():
        R.output()
    p = R.prim_value(n * 2)
    return z, c, s, (), p
""")
    kinds = [type(b).__name__ for b in f.body.blocks]
    assert kinds == ["BindingBlock", "DataflowBlock", "BindingBlock", "BindingBlock", "DataflowBlock", "BindingBlock"]
    assert isinstance(f.body.blocks[0].bindings[0], graph.MatchCast)
    assert isinstance(f.body.blocks[1].bindings[0].var, graph.Var) and isinstance(
        f.body.blocks[1].bindings[1].var, graph.DataflowVar
    )
    round_trip(f)


@pytest.mark.parametrize(
    "array",
    [
        np.float32(1.5),
        np.array([1, 2, 3], "int64"),
        np.array([[True, False]]),
        np.zeros((0, 3), "float32"),
        np.array([np.nan, np.inf], "float32"),
        np.array([-0.0, 0.1], "float32"),
        np.arange(100, dtype="int32"),
        np.array(2**63 - 1, "int64"),
        np.array([255, 0], "uint8"),
        np.array([], "float64"),
    ],
)
def test_constants(array):
    c = graph.Constant.of(array)
    f = graph.Function((), graph.SeqExpr((), c), c.sinfo)
    text = round_trip(f)
    assert ("sha:" in text) == (
        array.size > 8 or array.shape == (0, 3) or array.size == 0 or not np.isfinite(array.astype("float64")).all()
    )


def test_tensor_programs_and_vars_as_operands():
    prim = parse(MM_RELU)["mm_relu"]
    x = graph.Var("x", graph.TensorInfo((128, 128), "float32"))
    out = graph.TensorInfo((128, 128), "float32")
    call = graph.Call(
        get_op("call_tir"),
        (graph.GlobalVar("mm.relu"), graph.Tuple((x, x)), graph.ShapeExpr((tir.index_const(3),))),
        sinfo_args=(out,),
        sinfo=out,
    )
    two = graph.TupleInfo((out, out))
    inplace = R.call_tir_inplace(graph.GlobalVar("mm.relu"), (x, x), [0, -1], [out, out])
    odd = graph.Call(
        get_op("call_tir"), (graph.GlobalVar("gone"), graph.Tuple(())), sinfo_args=(graph.TupleInfo((out,)),), sinfo=two
    )
    bindings = tuple(graph.VarBinding(graph.Var("v", i), c) for c, i in ((call, out), (inplace, two), (odd, out)))
    body = graph.SeqExpr((graph.BindingBlock(bindings),), bindings[0].var)
    mod = IRModule({"mm.relu": prim, "main": graph.Function((x,), body, out)}, {"a": 1} and IRModule({}).attrs)
    text = round_trip(mod)
    assert "R.typed(" in text and "inplace_indices=[0, -1]" in text and "tir_vars=R.shape([3])" in text


def test_raw_calls():
    x = graph.Var("x", graph.TensorInfo((2,), "float32"))
    relu = get_op("nn.relu")
    for call in (
        graph.Call(relu, (x, x)),
        graph.Call(relu, (x,), sinfo_args=(x.sinfo,)),
        graph.Call(graph.GlobalVar("g"), (x,), sinfo_args=(x.sinfo,)),
        graph.Call(relu, (x,), tir.PrimFunc((), tir.Seq(())).attrs | {"odd": 1}),
    ):
        v = graph.Var("v", x.sinfo)
        func = graph.Function((x,), graph.SeqExpr((graph.BindingBlock((graph.VarBinding(v, call),)),), v), x.sinfo)
        round_trip(func)


def test_class_decorator():
    @I.ir_module
    class Mod:
        I.module_attrs({"n": 1})
        I.module_global_infos({"vdevice": [I.vdevice("llvm")]})

        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            with R.dataflow():
                y = R.add(x, x)
                R.output(y)
            return y

    assert Mod.attrs["global_infos"]["vdevice"] == ("llvm:0:global",)
    round_trip(Mod)


def test_fragments_print():
    f = parse(MLP)["main"]
    assert f.body.blocks[0].script().startswith("with R.dataflow():\n    lv0: R.Tensor((1, 128)")
    assert f.body.bindings[2].value.script().startswith('R.call_tir(I.GlobalVar("linear"), (lv1, w1, b1)')
    assert f.params[0].script() == "x" and f.params[0].sinfo.script() == 'R.Tensor((1, 784), dtype="float32")'
    assert f.body.script().endswith("\nlv2")
    f.show()


def test_functions_of_the_namespace_work_in_plain_python():
    x = graph.Var("x", R.Tensor((2, 3), "float32"))
    call = R.add(x, x)
    assert call.sinfo is R.Tensor((2, 3), "float32") and R.shape([1, 2]).values[1] is tir.index_const(2)


def test_other_names_for_the_namespaces():
    mod = parse("""
from tvm.script import relax as rx, tir as T, ir as I
@I.ir_module
class M:
    @rx.function
    def f(x: rx.Tensor(("n",), "float32")):
        n = T.int64()
        with rx.dataflow():
            y = rx.add(x, rx.const(1.0, "float32"))
            z = rx.emit(rx.nn.relu(y))
            w = rx.reshape(z, (1, n))
            p = rx.permute_dims(w, axes=[1, 0])
            q = rx.matmul(w, p, out_dtype="float32")
            s = rx.split(w, [1], axis=0) if False else q
            rx.output(q)
        return q
""")
    assert mod["f"].ret_sinfo is graph.TensorInfo((1, 1), "float32")
    round_trip(mod)


def test_results_leave_dataflow_blocks():
    made = [
        parse(f"@R.function\ndef f(x: R.Tensor((4,))):\n    with R.dataflow():\n        y = R.add(x, x)\n        z = R.add(y, y)\n{end}")
        for end in ("        R.output(z)\n    return z", "        return z")
    ]
    assert structural_equal(*made)
    assert well_formed(IRModule({"f": made[1]})) == []


def test_index_maps_of_layout_transforms_read_back():
    def swap(a, b):
        return b, a

    @R.function
    def f(x: R.Tensor((2, 3), "float32")):
        y = R.layout_transform(x, index_map=swap)
        return y

    round_trip(f)


def test_branches_may_have_no_result():
    branches = "    if c:\n        R.print(x)\n    else:\n        R.print(x, x)\n    return x"
    round_trip(parse(f"@R.function(pure=False)\ndef f(x: R.Tensor(()), c: R.Tensor((), 'bool')):\n{branches}"))


def test_expressions_are_conditions():
    text = "@R.function\ndef f(x: R.Tensor(('n',))):\n    n = T.int64()\n    if {}:\n        y = R.add(x, x)\n    else:\n        y = x\n    return y"
    assert structural_equal(parse(text.format("n % 16 == 0")), parse(text.format("R.prim_value(n % 16 == 0)")))
