# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions become tensor programs of the expected shape."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import graph, tir
from roundel.ir.errors import RoundelError
from roundel.ir.visit import walk
from roundel.passes.well_formed import well_formed


def blocks(f):
    return {n.name: n for n in walk(f) if type(n) is tir.Block}


def matmul_relu():
    n = te.size_var("n")
    A, B = te.placeholder((n, 128), name="A"), te.placeholder((128, 64), name="B")
    k = te.reduce_axis((0, 128), "k")
    C = te.compute((n, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, te.compute((n, 64), lambda *i: te.max_(C(*i), 0.0), name="D")


def test_a_stage_is_a_block_with_its_axes_init_and_regions():
    f = te.create_prim_func(matmul_relu())
    found = blocks(f)
    assert list(found) == ["root", "C", "D"]
    c = found["C"]
    assert [iv.kind for iv in c.iter_vars] == [tir.IterKind.SPATIAL] * 2 + [tir.IterKind.REDUCE]
    assert [iv.var.name for iv in c.iter_vars] == ["v_i", "v_j", "v_k"]
    assert type(c.init) is tir.BufferStore and [r.buffer.name for r in c.reads] == ["A", "B"]
    assert [b.name for b in found["root"].alloc_buffers] == ["C"]
    assert [b.name for b in f.buffer_params] == ["A", "B", "D"] and f.attrs["global_symbol"] == "main"


def test_one_expression_makes_programs_that_share_nothing():
    args = matmul_relu()
    f, g = te.create_prim_func(args), te.create_prim_func(args)
    assert not {b for b in f.buffer_params} & {b for b in g.buffer_params}
    from roundel.ir import structural_equal

    assert structural_equal(f, g)


def test_a_tuple_reduction_writes_all_its_outputs():
    A = te.placeholder((3, 7), name="A")
    k = te.reduce_axis(7, "k")
    argmax = te.comm_reducer(
        lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.max_(x[1], y[1])),
        lambda i, v: (te.const(-1, i), te.lowest(v)),
        "argmax",
    )
    at, value = te.compute((3,), lambda i: argmax((k.var, A[i, k]), axis=k), name="best")
    for outs, names in (
        ([at, value], ["best_v0", "best_v1"]),
        ([at], ["best_v0", "best_v0_1"]),
        ([value], ["best_v1_0", "best_v1"]),
    ):
        block = blocks(te.create_prim_func([A, *outs]))["best_v0" if outs[0] is at else "best_v1_0"]
        assert [w.buffer.name for w in block.writes] == names


def test_a_scalar_result_has_a_block_of_one_instance():
    A = te.placeholder((), name="A")
    f = te.create_prim_func([A, te.compute((), lambda: A() + 1.0, name="B")])
    assert len(blocks(f)["B"].iter_vars) == 1


def test_extern_stages_are_statements_over_points():
    A = te.placeholder((4, 5), name="A")

    def build(ins, outs, scratch, i):
        j = tir.Var("j", tir.index_const(0).dtype)
        return tir.For(
            j,
            tir.index_const(0),
            tir.index_const(5),
            tir.ForKind.SERIAL,
            tir.BufferStore(outs[0], ins[0][i, j], (i, j)),
        )

    out = te.extern([((4, 5), "float32")], [A], build, "copy", over=(4,))
    block = blocks(te.create_prim_func([A, out]))["copy"]
    assert len(block.iter_vars) == 1 and block.reads[0].region[1].extent is tir.index_const(5)
    assert block.reads[0].region[0].extent is tir.index_const(1)


def test_a_program_can_be_a_stage():
    n = te.size_var("n")
    X = te.placeholder((n,), name="X")
    inner = te.create_prim_func([X, te.compute((n,), lambda i: X[i] * 2.0, name="Y")])
    A = te.placeholder((9,), name="A")
    out = te.extern_primfunc([A], inner)
    assert out.shape == (tir.index_const(9),)
    assert len(te.create_prim_func([A, out]).params) == 2


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda A, k: te.sum(A[k], axis=k) + 1.0, "inside an expression"),
        (lambda A, k: A[k, k], "dimensions and is indexed"),
    ],
)
def test_misuse_is_explained(body, message):
    A, k = te.placeholder((4,), name="A"), te.reduce_axis(4, "k")
    with pytest.raises(RoundelError, match=message):
        te.compute((), lambda: body(A, k))


def test_missing_parameters_are_named():
    A, _, D = matmul_relu()
    with pytest.raises(RoundelError, match="tensor B is read"):
        te.create_prim_func([A, D])


def test_sizes_made_by_var_and_literals_in_extern():
    n = te.var("n")
    a = te.placeholder((n,), "float32", "A")
    one = te.literal(1.0, (n,), "float32")

    def build(ins, outs, scratch, i):
        return tir.BufferStore(outs[0], ins[0][i] + ins[1][i], (i,))

    b = te.extern([((n,), "float32")], [a, one], build, "B", over=[n])
    func = te.create_prim_func([a, b])
    for run in (rd.interpret(func), rd.build(func)):
        x, y = np.arange(5, dtype="float32"), np.zeros(5, "float32")
        run["main"](x, y)
        np.testing.assert_array_equal(y, x + 1)


def test_shapes_take_numbers():
    assert graph.ShapeExpr([1, n := te.size_var("n")]).values == (tir.index_const(1), n)
    with pytest.raises(TypeError):
        graph.ShapeExpr([1.5])


def run_both(func, *arrays):
    """What interpreter and compiled code write into the last array."""
    out = []
    for run in (rd.interpret, rd.build):
        arrays = (*arrays[:-1], np.full_like(arrays[-1], np.nan))
        run(func)["main"](*arrays)
        out.append(arrays[-1])
    return out


def test_identities_and_combiners_read_tensors():
    a, b, k = te.placeholder((5, 4), "float32", "a"), te.placeholder((5,), "float32", "b"), te.reduce_axis((0, 4), "k")
    started = te.compute((5,), lambda i: te.comm_reducer(lambda x, y: x + y, lambda t: b[i])(a[i, k], axis=k), "s")
    scaled = te.compute((5,), lambda i: te.comm_reducer(lambda x, y: x + y * b[i], lambda t: 0.0)(a[i, k], axis=k), "s")
    x, y = np.random.default_rng(0).random((5, 4), "float32"), np.arange(5, dtype="float32")
    for made, expected in ((started, y + x.sum(1)), (scaled, x.sum(1) * y)):
        func = te.create_prim_func([a, b, made])
        assert well_formed(rd.IRModule({"main": func})) == []
        for found in run_both(func, x, y, y):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("form", ["another axis", "the place of the result", "both"])
def test_domains_of_reduce_axes_depend(form):
    a = te.placeholder((6, 6), "float32", "a")
    x = np.random.default_rng(0).random((6, 6), "float32")

    def element(i):
        first = te.reduce_axis((0, 6) if form == "another axis" else (0, i), "p")
        second = te.reduce_axis((0, 6) if form == "the place of the result" else (0, first), "q")
        return te.sum(a[first, second], axis=[first, second])

    func = te.create_prim_func([a, te.compute((6,), element, "s")])
    assert well_formed(rd.IRModule({"main": func})) == []
    ends = [(range(6 if form == "another axis" else i), form != "the place of the result") for i in range(6)]
    expected = [sum(x[p, q] for p in outer for q in range(p if inner else 6)) for outer, inner in ends]
    for found in run_both(func, x, np.zeros(6, "float32")):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_tensors_in_attributes_become_buffers():
    a = te.placeholder((4,), "float32", "a")
    func = te.create_prim_func([a, te.compute((4,), lambda i: a[i], "b", attrs={"held": [a], "deep": {"one": a}})])
    attrs = blocks(func)["b"].annotations
    assert attrs["held"] == (func.buffer_params[0],) and attrs["deep"]["one"] is func.buffer_params[0]


def test_parts_of_tensors():
    a = te.placeholder((3, 4), "float32", "a")
    x = np.arange(12, dtype="float32").reshape(3, 4)
    func = te.create_prim_func([a, te.compute((4,), lambda j: a[0][j] + a[2, j], "b")])
    for found in run_both(func, x, np.zeros(4, "float32")):
        np.testing.assert_array_equal(found, x[0] + x[2])
    for use in (lambda j: a[0] + a[1], lambda j: list(a[0])):
        with pytest.raises((RoundelError, TypeError)):
            te.compute((4,), use)


def test_extern_of_shapes():
    a = te.placeholder((4,), "float32", "a")
    b = te.extern((4,), [a], lambda ins, outs: tir.call("call_extern", "f", ins[0].data, outs[0].data, dtype="int32"), "b")
    c, d = te.extern([(4,), (2,)], [a], lambda ins, outs: tir.Evaluate(tir.index_const(0)), "c", dtype=["int8", "int16"])
    assert (b.dtype, c.dtype, d.dtype, d.shape[0].value) == ("float32", "int8", "int16", 2)
    assert "f" in te.create_prim_func([a, b]).script()


def test_sizes_of_int32():
    m = te.var("m", "int32")
    a = te.placeholder((m,), "float32", "a")
    func = te.create_prim_func([a, te.compute((m,), lambda i: a[i] + 1.0, "b")])
    for found in run_both(func, np.arange(5, dtype="float32"), np.zeros(5, "float32")):
        np.testing.assert_array_equal(found, np.arange(1, 6))


def test_a_tag_belongs_to_every_stage_made_in_its_scope():
    A = te.placeholder((4,), name="A")

    @te.tag_scope("injective")
    def twice(x):
        return te.compute(x.shape, lambda i: x[i] * 2.0, name="B", attrs={"hello": 1})

    B = twice(A)
    assert B.op.tag == "injective" and dict(B.op.attrs) == {"hello": 1}
    assert te.compute((4,), lambda i: B[i]).op.tag == ""
    with te.tag_scope("a"), pytest.raises(ValueError, match="inside of tag_scope 'a'"):
        twice(A)


def test_the_operation_of_a_tensor():
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), "k")
    S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S")
    P, Q = te.compute((4,), lambda i: (S[i] + 1.0, S[i] * 2.0), name="T")
    assert isinstance(A.op, te.PlaceholderOp) and isinstance(S.op, te.ComputeOp)
    assert [a.var.name for a in S.op.axis] == ["i"] and S.op.reduce_axis == (k,) and S.op.input_tensors == (A,)
    assert Q.op.name == "T" and Q.op.num_outputs == 2 and Q.op.output(1) is Q and Q.op.output(0).name == P.name
    with pytest.raises(RoundelError, match="not an output 2"):
        Q.op.output(2)


def test_limits_of_types():
    assert te.min_value("float32").value == np.finfo("float32").min and te.max_value("int8").value == 127
    assert te.lowest("float32").value == -np.inf and te.highest("uint8").value == 255


def test_indices_are_of_the_type_of_their_sizes():
    n = te.var("n", "int32")
    A = te.placeholder((n, 3), name="A")
    f = te.create_prim_func([A, te.compute((n, 3), lambda i, j: A[i, j], name="B")])
    loop = f.root_block.body
    assert str(loop.loop_var.dtype) == "int32" and str(loop.body.loop_var.dtype) == "int64"
    assert loop.extent.size
    with pytest.raises(RoundelError, match="of type int32, not int64"):
        te.create_prim_func([A], "int64")


def test_tensors_of_free_layout():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: A[i] + B[i], name="C", attrs={"layout_free_placeholders": [B]})
    D = te.compute((4,), lambda i: C[i] * 2.0, name="D", attrs={"layout_free_placeholders": [C]})
    f = te.create_prim_func([A, B, D])
    assert tuple(f.attrs["layout_free_buffers"]) == (1,)
    c, d = f.root_block.body.stmts
    assert not c.body.block.annotations and d.body.block.annotations["layout_free_placeholders"][0].name == "C"
