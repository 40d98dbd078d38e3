# SPDX-License-Identifier: Apache-2.0
"""Tensor programs parse as written, print, and parse back to equal programs."""

from __future__ import annotations

import pytest

from roundel.ir import IRModule, assert_structural_equal, equal, structural_equal, structural_hash, tir
from roundel.ir.dtype import HANDLE, INT64
from roundel.ir.equal import StructuralMap
from roundel.ir.errors import ScriptError
from roundel.ir.visit import free_vars, walk
from roundel.script import ir as I
from roundel.script import parse, print_script
from roundel.script import relax as R
from roundel.script import tir as T
from script_programs import ALL, HANDLES, HEADER, MM_RELU, OLD_BUFFER_SYNTAX

N = 16


def round_trip(node):
    text = print_script(node)
    again = parse(text)
    assert_structural_equal(node, again)
    assert print_script(again) == text
    return text


@pytest.mark.parametrize("name", ALL)
def test_round_trip(name):
    round_trip(parse(HEADER + ALL[name]))


def test_matmul_relu_means_what_it_says():
    mod = parse(MM_RELU)
    func = mod["mm_relu"]
    assert dict(func.attrs) == {"global_symbol": "mm_relu", "noalias": True}
    assert [b.name for b in func.buffer_params] == ["A", "B", "C"]
    root = func.root_block
    assert [b.name for b in root.alloc_buffers] == ["Y"]
    nest = root.body.stmts[0]
    assert nest.loop_var.dtype is INT64 and nest.extent is tir.index_const(128)
    block = nest.body.body.body.block
    assert [iv.kind.value for iv in block.iter_vars] == ["spatial", "spatial", "reduce"]
    assert [r.buffer.name for r in block.reads] == ["A", "B"] and [r.buffer.name for r in block.writes] == ["Y"]
    assert isinstance(block.init, tir.BufferStore)


def test_older_and_newer_spellings_are_equal():
    new = OLD_BUFFER_SYNTAX.replace('T.Buffer[(4, 4), "int64"]', 'T.Buffer((4, 4), "int64")').replace(
        'T.Buffer[16, "int64"]', 'T.Buffer((16,), "int64")'
    )
    new = new.replace("T.block(", "T.sblock(").replace("T.axis.spatial(4, i)", "T.axis.S((0, 4), i)")
    assert_structural_equal(parse(OLD_BUFFER_SYNTAX), parse(new))
    assert_structural_equal(
        parse(OLD_BUFFER_SYNTAX), parse(new.replace("T.axis.spatial(4, j)", "T.axis.spatial(j, 4)"))
    )


def test_reads_and_writes_are_found_or_taken():
    block = parse(HANDLES).root_block.body
    while not isinstance(block, tir.BlockRealize):
        block = block.body
    assert block.block.annotations["pragma"] == 1
    plain = parse(HANDLES.replace("T.reads([A[vi, vk], B[vk, vj]])", "pass").replace("T.writes([C[vi, vj]])", "pass"))
    assert structural_equal(parse(HANDLES), plain)


def test_decorators_capture_python_names():
    local = 8

    @T.prim_func
    def double(A: T.Buffer((N, local), "float32"), B: T.Buffer((N, local), "float32")):
        """Twice."""
        for i, j in T.grid(*[N, local]):
            with T.block(f"double_{local}"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * sum([T.float32(x) for x in (1, 1)], T.float32(0))

    assert double.attrs["global_symbol"] == "double"
    assert double.buffer_params[0].shape == (tir.index_const(16), tir.index_const(8))
    assert 'T.sblock("double_8")' in round_trip(double)

    @T.prim_func(private=True)
    def hidden(A: T.Buffer((local,), "float32")):
        A[0] = 1.0

    assert "global_symbol" not in hidden.attrs and "@T.prim_func(private=True)" in round_trip(hidden)


def test_class_decorator_captures_and_calls():
    size = 4

    @I.ir_module
    class Mod:
        I.module_attrs({"k": [1, {"a": "b"}]})

        @T.prim_func
        def inner(x: T.int32) -> T.int32:
            return x + size

        @T.prim_func
        def outer(A: T.Buffer((4,), "int32")):
            A[0] = Mod.inner(A[1])
            A[1] = inner(A[2])
            T.evaluate(Mod.inner(T.int32(1)))

    assert isinstance(Mod, IRModule) and list(Mod) == ["inner", "outer"]
    assert Mod.attrs["k"] == (1, {"a": "b"}) or Mod.attrs["k"][0] == 1
    text = round_trip(Mod)
    assert "Module.inner(A[1])" in text
    assert Mod["outer"].body.stmts[0].value.dtype == "int32"


def test_macros_and_unrolled_python_loops():
    @T.macro
    def put(buffer, at, value=1.0):
        buffer[at] = value

    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for k in [0, 3, 5]:
            put(A, k)
        put(A, 7, value=2.0)
        if N > 8:
            A[1] = T.float32(N)
        extent = T.meta_var(4)
        for i in range(extent):
            A[i] = 0.0

    stores = [s for s in f.body.stmts if isinstance(s, tir.BufferStore)]
    assert [s.indices[0].value for s in stores] == [0, 3, 5, 7, 1]
    assert f.body.stmts[-1].extent is tir.index_const(4)


def test_let_bindings():
    f = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), n: T.int32):
    x = n * 2
    x = x + 1
    y: T.float32 = T.exp(A[0])
    A[x] = y
""")
    first = f.body
    assert isinstance(first, tir.Let) and isinstance(first.body, tir.Let) and first.body.var is not first.var
    assert "x_1: T.int32 = x + 1" in round_trip(f)


def test_index_types():
    f = parse("""
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), n: T.int32):
    for i in range(n):
        A[i, 0] = 1.0
    for j in range(8):
        A[j, n] = 1.0
    for k in T.serial(T.int32(1), n):
        A[k, 1] = 0.0
""")
    assert [s.loop_var.dtype for s in f.body.stmts] == ["int32", "int64", "int32"]
    round_trip(f)


def test_names_stay_readable_and_unique():
    f = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        for i in range(8):
            A[i] = 1.0
    for i in range(8):
        A[i] = 2.0
""")
    text = print_script(f)
    assert "for i, i_1 in T.grid(8, 8)" in text and text.count("for i in range(8)") == 1


def test_statements_print_alone():
    f = parse(MM_RELU)["mm_relu"]
    loop = f.root_block.body.stmts[1]
    text = loop.script()
    assert (
        text.startswith('Y = T.Buffer((128, 128), "float32")\nC = T.Buffer')
        and "C[vi, vj] = T.max(Y[vi, vj], T.float32(0.0))" in text
    )
    assert f.buffer_params[0].script() == 'A = T.Buffer((128, 128), "float32")'
    i = tir.Var("i", INT64)
    assert (i * 4 + 1).script() == "i * 4 + 1"
    assert tir.eq(i, 2).script() == "i == 2"
    block = loop.body.body.block
    assert "no_realize=True" in block.script()
    assert block.writes[0].script() == "C[vi, vj]"


def test_unfolded_expressions_keep_their_form():
    i = tir.Var("i", INT64)
    for e in (
        tir.Add(i, tir.index_const(0)),
        tir.Mul(tir.index_const(2), tir.index_const(3)),
        tir.Not(tir.Not(tir.lt(i, 3))),
        tir.And(tir.logical_and(), tir.lt(i, 1)),
        tir.Cast(INT64, i),
        tir.FloorDiv(i, tir.index_const(1)),
    ):
        func = tir.PrimFunc((i,), tir.Evaluate(e))
        assert parse(print_script(func)).body.value.script() == e.script()
        assert_structural_equal(func, parse(print_script(func)))


def test_nested_and_single_sequences():
    one, two = tir.Evaluate(tir.index_const(1)), tir.Evaluate(tir.index_const(2))
    x = tir.Var("x", INT64)
    let = tir.Let(x, tir.index_const(5), tir.Evaluate(x + 1))
    for body in (
        tir.Seq((tir.Seq((one, two)), two)),
        tir.Seq((one,)),
        tir.Seq(()),
        tir.Seq((let, one)),
        tir.Seq((one, let)),
        tir.Seq((tir.Seq(()), one)),
        tir.Seq((tir.Seq((let,)), one)),
        tir.Let(x, tir.index_const(5), tir.Seq((one, two))),
    ):
        round_trip(tir.PrimFunc((), body))


def test_buffers_without_declaration():
    """Lowered programs use buffers over pointers that come from elsewhere."""
    p = tir.Var("p", HANDLE)
    n = tir.Var("n", INT64, True)
    a = tir.decl_buffer((n,), "float32", "a", data=p)
    body = tir.Let(
        p,
        tir.call("constant_ptr", "sha:1"),
        tir.seq(tir.BufferStore(a, tir.const(1.0), (tir.index_const(0),)), tir.Evaluate(p)),
    )
    text = round_trip(tir.PrimFunc((n,), body))
    assert 'a = T.Buffer((n,), "float32", data=p)' in text and "n: T.SizeVar" in text


def test_names_that_are_not_identifiers():
    f = parse(MM_RELU)["mm_relu"]
    mod = IRModule({"conv.1": f.with_attr("global_symbol", "conv.1"), "class": f.without_attr("global_symbol"), "x": f})
    text = round_trip(mod)
    assert 'name="conv.1"' in text


def test_loops_that_share_their_variable():
    i = tir.Var("i", INT64)
    loop = tir.For(i, tir.index_const(0), tir.index_const(4), tir.ForKind.SERIAL, tir.Evaluate(i + 1))
    for body in (tir.seq(loop, loop), tir.seq(loop, tir.Let(i, tir.index_const(1), tir.Evaluate(i)))):
        func = tir.PrimFunc((), body)
        again = parse(round_trip(func))
        assert structural_hash(func) == structural_hash(again)


def test_programs_of_one_hash_stay_apart(monkeypatch):
    i, j = tir.Var("i", INT64), tir.Var("j", INT64)
    found = StructuralMap()
    monkeypatch.setattr(equal, "structural_hash", lambda node, map_free_vars=False: 0)
    assert [found.setdefault(e, lambda n=n: n) for n, e in enumerate((i * 2 + j, i * 2 + i, j * 2 + i))] == [0, 1, 0]
    assert found.values() == [0, 1]


def test_shapes_of_outputs_that_the_body_computes():
    n, k = tir.Var("n", INT64, True), tir.Var("k", INT64, True)
    x, z = tir.decl_buffer((n,), "float32", "x"), tir.decl_buffer((k,), "float32", "z")
    params = (tir.Var("x", HANDLE), tir.Var("z", HANDLE))
    let = tir.Let(k, tir.min_(n, 3), tir.Evaluate(tir.call("alloc_output", 0, k)))
    for body in (let, tir.seq(let, let)):
        text = round_trip(tir.PrimFunc(params, body, ((params[0], x), (params[1], z))))
        assert "T.min(n, 3), var=k)" in text


def test_targets_and_quoted_annotations():
    f = parse("""
@T.prim_func
def f(A: "T.Buffer((8,), 'float32')", n: "T.int32") -> "T.int32":
    T.func_attr({"target": T.target("llvm -mcpu=znver3")})
    T.assume(n > 0)
    return n
""")
    assert f.attrs["target"].cpu == "znver3" and f.ret_dtype == "int32"
    round_trip(f)


def test_device_intrinsics_are_opaque_calls():
    f = parse("""
@T.prim_func
def f(A: T.Buffer((16, 16), "float16", scope="wmma.matrix_a"), B: T.Buffer((16, 16), "float16")):
    T.tvm_load_matrix_sync(A.data, 16, 16, 16, 0, B.access_ptr("r"), 16, "row_major")
    T.ptx_wait_group("handle", 0)
    T.tvm_storage_sync("shared")
""")
    assert [s.value.op for s in f.body.stmts] == ["tvm_load_matrix_sync", "ptx_wait_group", "tvm_storage_sync"]
    round_trip(f)


def test_attributes_of_a_block_are_merged():
    attrs = '        T.block_attr({"k": {"a": 1}})\n        T.block_attr({"k": {"b": 2}, "l": 3})'
    f = parse(f'@T.prim_func\ndef f():\n    with T.block("b"):\n{attrs}\n        T.evaluate(0)')
    assert block_of(f).annotations == {"k": {"a": 1, "b": 2}, "l": 3}
    round_trip(f)


def block_of(f):
    return next(n for n in walk(f) if isinstance(n, tir.Block) and n.name == "b")


@pytest.mark.parametrize(
    "body",
    [
        'p = T.handle("float32")\n    B = T.decl_buffer((1,), "float32", data=p)\n    T.evaluate(B[0])',
        "y = T.int32()\n    with T.LetStmt(y) as x:\n        with T.LetStmt(0, var=y):\n            T.evaluate(x + y)\n    T.evaluate(0)",
        'T.func_attr({"t": T.target({"kind": "cuda", "host": T.target({"kind": "llvm"})})})\n    T.evaluate(0)',
        'T.func_attr({"t": T.target("cuda", host="llvm")})\n    T.evaluate(0)',
        'with T.block("root"):\n        T.block_attr({"a": "0"})\n        B = T.alloc_buffer((4,))\n        with T.block("b"):\n            T.evaluate(B[0])',
        'A = T.match_buffer(h, (4,), strides=("s",))\n    T.evaluate(A[1])',
        "for *i, j in T.grid(2, 3, 4):\n        T.evaluate(i[0] + i[1] + j)",
        "for i, *j in T.grid(2):\n        T.evaluate(i)",
    ],
)
def test_forms_that_read_back(body):
    round_trip(parse(f"@T.prim_func\ndef f(h: T.handle):\n    {body}"))


def test_macros_take_any_python_signature():
    text = """
@T.macro
def m(i, *rest, by=2, **more):
    more["B"][i] = rest[0] * by

@T.prim_func
def f(B: T.Buffer((4,), "int32")):
    m(0, 3, B=B)
    m(1, 3, 4, by=5, B=B)
"""
    plain = '@T.prim_func\ndef f(B: T.Buffer((4,), "int32")):\n    B[0] = 6\n    B[1] = 15'
    assert structural_equal(parse(text), parse(plain))
    with pytest.raises(ScriptError, match=r"macro m\(\) missing 1 required positional argument: 'i'"):
        parse(text.replace("m(0, 3, B=B)", "m()"))


def test_variables_of_scripts_in_plain_python():
    n = T.int64()
    info = R.Tensor((n, n * 4, 784), "float32")
    assert info.shape[0] in free_vars(info.shape[1])


def test_all_and_any_are_and_and_or():
    """TVM's names of them."""
    texts = [("i < 6 and A[i] > T.float32(0)", "T.all(i < 6, A[i] > T.float32(0))"),
             ("i < 2 or i == 5 or A[i] > T.float32(0)", "T.any(i < 2, i == 5, A[i] > T.float32(0))")]
    for own, named in texts:
        made = [parse(f"""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        if {condition}:
            A[i] = T.float32(1)
""") for condition in (own, named)]
        assert_structural_equal(*made)
    with pytest.raises(ScriptError, match="all of no conditions"):
        parse("@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    if T.all():\n        A[0] = T.float32(1)\n")
