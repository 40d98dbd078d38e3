# SPDX-License-Identifier: Apache-2.0
"""Results that append to an input are written behind it: in the host function, and in all that reads them."""

import numpy as np

from roundel.driver import build_module, prepare
from roundel.host.specialize import specialize
from roundel.interp import interpret
from roundel.ir import graph, options, tir
from roundel.ir.visit import walk
from roundel.ops import make
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.target import Target

from ..graph.decoders import B, P, S, decoder, info, numbers, step_inputs
from ..graph.functions import function
from ..graph.running import agree, same


def test_attention_reads_what_has_grown():
    for batch in (1, B):
        host = prepare(decoder(batch), target=Target.host())["main"]
        assert host.attrs["caches"] == ((1, 1, 2), (2, 2, 2))
        assert not any("append" in n.op.name for n in walk(host.body) if type(n) is tir.Call and isinstance(n.op, graph.GlobalVar))
    agree(decoder(), *(step_inputs(b, p, s) for b, p, s in [(1, 5, 1), (1, 0, 7), (1, 31, 3), (2, 4, 1), (3, 17, 5)]))


def test_branches_of_hot_sizes_append_to_the_same_memory():
    mod = specialize(decoder(), [{"s": 1, "b": 1}, {"s": 1}])
    assert not _kept(mod)
    agree(mod, *(step_inputs(b, p, s) for b, p, s in [(1, 5, 1), (2, 4, 1), (2, 3, 2)]))


def test_branches_that_do_not_all_append():
    def main(other):
        @I.ir_module
        class Mod:
            @R.function
            def main(past: R.Tensor(("p", 4), "float32"), new: R.Tensor(("s", 4), "float32"), flag: R.Tensor((), "bool")):
                if flag:
                    result = R.concat((past, new), axis=0)
                else:
                    result = other(past, new)
                return result
        return Mod

    past, new = numbers(3, 4), numbers(2, 4)
    grows = main(lambda past, new: R.concat((past, R.exp(new)), axis=0))
    assert not _kept(grows)
    for mod in (grows, main(lambda past, new: R.concat((new, past), axis=0)), main(lambda past, new: R.concat((past, past), axis=0)),
                main(lambda past, new: R.concat((R.exp(past), new), axis=0))):
        assert mod is grows or _kept(mod)
        if mod["main"].ret_sinfo.shape is not None:
            agree(mod, (past, new, np.array(True)), (past, new, np.array(False)))


def _kept(mod):
    return "caches" not in prepare(mod, target=Target.host())["main"].attrs


def test_what_stays_a_concat():
    two = lambda p, n: graph.Tuple((p, n))
    assert _kept(function([info(2, 5, 4), info(2, S, 4)], lambda bb, p, n: make("concat", two(p, n), axis=1)))  # no symbolic length
    assert _kept(function([info(2, P, 4), info(2, 5, 4)], lambda bb, p, n: make("concat", two(n, p), axis=1)))  # in front of it
    assert _kept(function([info(2, P, 4), info(2, S, 4)], lambda bb, p, n: make("exp", make("concat", two(p, n), axis=1))))  # no result
    used = lambda bb, p, n: graph.Tuple((bb.emit(make("append", p, n, axis=1)), bb.emit(make("exp", p))))
    mod = function([info(2, P, 4), info(2, S, 4)], used)
    assert _kept(mod)  # the past is read otherwise
    agree(mod, (numbers(2, 3, 4), numbers(2, 2, 4)))
    flat = lambda bb, p, n: graph.Tuple((c := bb.emit(make("concat", two(p, n), axis=1)), bb.emit(make("reshape", c, graph.ShapeExpr(((P + S) * 8,))))))
    mod = function([info(2, P, 4), info(2, S, 4)], flat)
    assert _kept(mod)  # rows are not apart
    agree(mod, (numbers(2, 3, 4), numbers(2, 2, 4)))
    with options.override(grow=False):
        assert _kept(decoder())


def test_readers_that_see_rows_under_another_shape():
    def body(bb, p, n, w):
        c = bb.emit(make("concat", graph.Tuple((p, n)), axis=2))
        return graph.Tuple((c, bb.emit(make("matmul", bb.emit(make("reshape", c, graph.ShapeExpr((6, P + S, 4)))), w)), bb.emit(make("sum", c, axis=(2,)))))

    mod = function([info(2, 3, P, 4), info(2, 3, S, 4), info(4, 5)], body)
    assert not _kept(mod)
    agree(mod, (numbers(2, 3, 5, 4), numbers(2, 3, 2, 4), numbers(4, 5)), (numbers(2, 3, 0, 4), numbers(2, 3, 1, 4), numbers(4, 5)))
    run, want = build_module(mod)["main"], interpret(mod)["main"]
    past, w = numbers(2, 3, 5, 4), numbers(4, 5)
    for _ in range(3):
        rows = numbers(2, 3, 1, 4)
        expected = want(np.ascontiguousarray(past), rows, w)
        got = run(past, rows, w)
        same(got, expected)
        past = got[0]


def test_results_under_other_names():
    def body(bb, p, n):
        c = bb.emit(make("concat", graph.Tuple((p, n)), axis=1))
        return graph.Tuple((bb.emit_output(c), bb.emit_output(bb.emit(make("exp", c)))))

    mod = function([info(2, P, 4), info(2, S, 4)], body)
    assert not _kept(mod)
    agree(mod, (numbers(2, 3, 4), numbers(2, 2, 4)))
