# SPDX-License-Identifier: Apache-2.0
"""Whatever is printed is text that a person reads: script, or an expression, and no tree of Python objects."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import arith, te, tir
from roundel.ir import IRModule, graph, structural_equal
from roundel.ir.node import Node
from roundel.script import parse
from roundel.script.printer.module import _FAMILIES, _WRITE

X, Y = tir.Var("x", "int64"), tir.Var("y", "int64")
K, DATA = te.reduce_axis((0, 4), "k"), te.placeholder((4,), name="data")
DOMAIN = {X: tir.Range(0, 8), Y: tir.Range(0, 4)}
FOUND = arith.detect_iter_map([X * 4 + Y], DOMAIN)
TEXTS = {
    "extern": (graph.ExternFunc("f"), 'R.ExternFunc("f")'), "axis": (K, "k: reduce in 4"), "sum": (te.sum(DATA[K], axis=K), "te.sum(data[k], axis=k)"),
    "part": (te.max(DATA[K], axis=[K], where=K > 1), "te.max(data[k], axis=k, where=k > 1)"), "map": (FOUND, "IterMap(x * 4 + y)"),
    "mark": (FOUND.indices[0], "IterSum(x * 4 + y)"), "analyzer": (arith.Analyzer({X: tir.Range(0, 8)}), "Analyzer(x in [0, 7])"),
    "number": (tir.Evaluate(0), "T.evaluate(0)"), "range": (tir.Range(2, 3), "2:5"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    value, text = TEXTS[name]
    assert str(value) == repr(value) == text


def test_every_kind_of_node_has_a_form():
    def below(cls):
        for sub in cls.__subclasses__():
            yield sub
            yield from below(sub)

    without = {c.__name__ for c in below(Node) if c._fields and not any(t in _WRITE for t in c.__mro__) and not issubclass(c, tuple(_FAMILIES))}
    assert without <= {"Layout"}  # part of struct info, which prints it


def test_a_module_names_functions_that_are_elsewhere():
    mod = IRModule({"my_ext": graph.ExternFunc("my.func")})
    assert structural_equal(parse(mod.script()), mod)
    text = """
from roundel.script import ir as I, relax as R


@I.ir_module
class Module:
    my_ext = R.ExternFunc("tests.script.double")

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return R.call_dps_packed(cls.my_ext, (x,), out_sinfo=R.Tensor((2,), "float32"))
"""
    mod = parse(text)
    assert structural_equal(parse(mod.script()), mod) and list(mod) == ["my_ext", "main"]

    @rd.register_func("tests.script.double", override=True)
    def double(x, out):
        np.copyto(np.from_dlpack(out), 2 * np.from_dlpack(x))

    for run in (rd.interpret, rd.build):
        assert np.asarray(run(mod)["main"](np.ones(2, np.float32))).tolist() == [2.0, 2.0]
    with pytest.raises(rd.RoundelError, match="has no function 'other'"):
        parse(text.replace("cls.my_ext", "cls.other"))
