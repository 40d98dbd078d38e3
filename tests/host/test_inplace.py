# SPDX-License-Identifier: Apache-2.0
"""Kernels write over operands that die, and only over those."""

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.host.inplace import can_overwrite
from roundel.ir import Var, graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import HANDLE, INT64
from roundel.ir.visit import walk
from roundel.ops import make

from ..graph.functions import function
from ..graph.running import agree, lowered

N = Var("n", INT64, True)
RNG = np.random.default_rng(5)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _arena(mod):
    host = mod["main"]
    return next((n.buffer.shape[0] for n in walk(host.body) if type(n) is tir.Allocate and n.annotations.get("arena")), None)


def _overwriting(mod):
    return [n for n in mod if "_over_" in n]


def _scan(bb, x):
    return bb.emit(make("cumsum", x, axis=0))


@pytest.mark.parametrize("n", [16, N])
def test_a_dying_operand_is_overwritten(n):
    def body(bb, x):
        y = bb.emit(make("exp", _scan(bb, x)))
        return make("cumsum", y, axis=0)

    mod = function([graph.TensorInfo((n, 4), "float32")], body)
    low = lowered(mod)
    assert len(_overwriting(low)) == 1
    if n is not N:
        assert _arena(low).value == 16 * 4 * 4  # one tensor instead of two
    agree(mod, (_x(16, 4),))


def test_the_result_of_the_function_is_computed_in_its_place():
    mod = function([graph.TensorInfo((8, 4), "float32")], lambda bb, x: make("exp", _scan(bb, x)))
    low = lowered(mod)
    assert _overwriting(low) and _arena(low) is None
    agree(mod, (_x(8, 4),))


def test_an_operand_that_is_needed_later_is_kept():
    def body(bb, x):
        a = _scan(bb, x)
        b = _scan(bb, bb.emit(make("exp", a)))
        return make("cumsum", bb.emit(make("add", a, b)), axis=0)

    mod = function([graph.TensorInfo((N, 4), "float32")], body)
    low = lowered(mod)
    assert len(_overwriting(low)) == 1  # the sum goes over a or b; exp must not overwrite a
    agree(mod, (_x(5, 4),), (_x(0, 4),))


def test_inputs_and_constants_are_never_overwritten():
    constant = graph.Constant.of(_x(3, 4))

    def body(bb, x):
        return graph.Tuple((bb.emit(make("exp", x)), bb.emit(make("add", x, constant)), x))

    mod = function([graph.TensorInfo((3, 4), "float32")], body)
    assert not _overwriting(lowered(mod))
    agree(mod, (_x(3, 4),))


def test_operands_of_another_shape_are_kept():
    def body(bb, x, y):
        return make("cumsum", bb.emit(make("add", _scan(bb, x), _scan(bb, y))), axis=0)

    mod = function([graph.TensorInfo((5, 1), "float32"), graph.TensorInfo((5, 4), "float32")], body)
    agree(mod, (_x(5, 1), _x(5, 4)))


def test_one_memory_seen_twice_is_not_overwritten():
    def body(bb, x):
        a = _scan(bb, x)
        turned = bb.emit(make("permute_dims", bb.emit(make("reshape", a, (4, 4)))))
        return make("cumsum", bb.emit(make("add", a, turned)), axis=0)

    mod = function([graph.TensorInfo((4, 4), "float32")], body)
    agree(mod, (_x(4, 4),))


def test_leading_slices_are_views():
    def body(bb, x):
        a = _scan(bb, x)
        part = bb.emit(make("strided_slice", a, axes=(0,), begin=(2,), end=(6,), strides=(1,)))
        b = bb.emit(make("cumsum", part, axis=0))
        return graph.Tuple((b, part, bb.emit(make("cumsum", b, axis=1)), a))

    mod = function([graph.TensorInfo((8, 3), "float32")], body)
    low = lowered(mod)
    called = [n.op.name for n in walk(low["main"].body) if type(n) is tir.Call and isinstance(n.op, graph.GlobalVar)]
    assert not any("slice" in name for name in called)
    agree(mod, (_x(8, 3),))


def test_what_reads_elsewhere_cannot_overwrite():
    a, out = (tir.decl_buffer((4,), "float32", name) for name in ("a", "out"))
    i = Var("i", INT64)

    def program(index):
        body = tir.For(i, tir.index_const(0), tir.index_const(4), tir.ForKind.SERIAL, tir.BufferStore(out, a[index], (i,)))
        root = tir.BlockRealize((), tir.const(True), tir.Block((), (), (), "root", body))
        handles = tuple(Var(b.name, HANDLE) for b in (a, out))
        return tir.PrimFunc(handles, root, tuple(zip(handles, (a, out), strict=True)), Attrs(fuse_kind=0))

    for index, allowed in ((i, True), (3 - i, False)):
        f = program(index)
        assert can_overwrite(f, f.params[0], f.params[1]) is allowed


def _counted(new, count):
    return graph.Tuple((count, *new))


def _loop(step):
    """``y, x = step(i, y, x)`` three times."""
    bb = BlockBuilder()
    params = [graph.Var("y", graph.TensorInfo((N, 4), "float32")), graph.Var("x", graph.TensorInfo((N, 4), "float32"))]
    three, zero, one = (graph.Constant.of(np.int64(k)) for k in (3, 0, 1))
    with bb.function("main", params):
        i, y, x = held = [graph.Var(name, info) for name, info in zip("iyx", (three.sinfo, *(p.sinfo for p in params)), strict=True)]
        condition = bb.sequence(lambda: bb.emit(make("less", i, three)))
        body = bb.sequence(lambda: _counted(step(lambda *a, **k: bb.emit(make(*a, **k)), i, y, x), bb.emit(make("add", i, one))))
        out = bb.emit(graph.While(tuple(held), (zero, *params), condition, body, graph.TupleInfo(tuple(v.sinfo for v in held))))
        bb.emit_func_output(graph.Tuple(tuple(bb.emit(graph.TupleGetItem(out, k)) for k in (1, 2))))
    return bb.get()


def _with_row(emit, i, y, x):
    """y with its row i % 2 replaced by the largest of x."""
    place = emit("reshape", emit("floor_mod", i, graph.Constant.of(np.int64(2))), (1, 1))
    return emit("scatter_nd", y, place, emit("max", x, axis=0, keepdims=True))


def test_loop_variables_stay_where_they_are():
    mod = _loop(lambda emit, i, y, x: [_with_row(emit, i, y, x), emit("exp", emit("negative", x))])
    low = lowered(mod)
    assert any("scatter_nd" in name for name in _overwriting(low)) and any("exp" in name for name in _overwriting(low))
    assert not any(type(n) is tir.Call and n.op == "copy_bytes" for s in walk(low["main"].body) if type(s) is tir.While for n in walk(s))
    agree(mod, (_x(5, 4), _x(5, 4)), (_x(2, 4), _x(2, 4)))


def test_loop_variables_that_are_needed_after_they_change_are_copied():
    def exchanged(emit, i, y, x):
        return [x, emit("add", y, x)]

    def read_later(emit, i, y, x):
        return [_with_row(emit, i, y, x), emit("add", x, y)]

    def twice(emit, i, y, x):
        row = _with_row(emit, i, y, x)
        return [row, row]

    for step in (exchanged, read_later, twice):
        agree(_loop(step), (_x(5, 4), _x(5, 4)))
