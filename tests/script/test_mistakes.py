# SPDX-License-Identifier: Apache-2.0
"""Mistakes that students of the field make: each message has the place, the cause and the way out."""

from __future__ import annotations

import textwrap
import warnings

import numpy as np
import pytest

import roundel as rd
from roundel import relax, te
from roundel.ir.errors import ScriptError, ScriptWarning
from roundel.schedule import Schedule
from roundel.script import parse
from roundel.script import relax as R

X4, SQUARE = np.ones(4, "float32"), np.ones((128, 128), "float32")
TWO = 'x: R.Tensor((4, 8), "float32"), w: R.Tensor((16, 8), "float32")'
ONE = 'x: R.Tensor((4,), "float32")'
CHOICE = 'c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")'
PICTURE = 'x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")'
BUFFERS = ", ".join(f'{name}: T.Buffer((128, 128), "float32")' for name in "ABC")
MATMUL = """
for i, j, k in T.grid(128, 128, 128):
    with T.sblock("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
COPY = """
@T.prim_func
def f(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("b"):
            v = T.axis.spatial(4, i)
            b[v] = a[v]
"""


def graph(signature, body):
    return parse(f"@R.function\ndef main({signature}):\n{textwrap.indent(body, '    ')}\n")


def program(body, **names):
    return parse(f"@T.prim_func\ndef main({BUFFERS}):\n{textwrap.indent(body, '    ')}\n", names)


def block(body, loops="i"):
    """A program of one block under one loop."""
    return program(f'for {loops} in range(128):\n    with T.sblock("b"):\n        v = T.axis.spatial(128, i)\n        {body}\n')


def module(body, size=4):
    main = f'@R.function\ndef main(x: R.Tensor(({size},), "float32")):\n    cls = M\n{textwrap.indent(body, "    ")}\n'
    return parse("@I.ir_module\nclass M:\n" + textwrap.indent(COPY + main, "    "))


def scheduled(step):
    sch = Schedule(program(MATMUL))
    found = sch.get_sblock("C")
    return step(sch, found, *sch.get_loops(found))


def doubled():
    return rd.compile(rd.IRModule({"main": graph(ONE, "return R.add(x, x)")}))


def built(steps):
    bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]):
        steps(bb, x)


GRAPHS = {  # signature, body, what the message says
    "dense": (TWO, "return R.nn.dense(x, w)", [":3:", "no operator R.nn.dense", "linear"]),
    "a letter missing": (TWO, "return R.nn.sofmax(x)", [":3:", "R.nn.sofmax", "nn.softmax"]),
    "batch_matmul": (TWO, "return R.nn.batch_matmul(x, w)", [":3:", "matmul"]),
    "transpose": (TWO, "return R.transpose(x)", [":3:", "permute_dims"]),
    "stride": (PICTURE, "return R.nn.conv2d(x, w, stride=2)", [":3:", "no argument stride", "did you mean strides?"]),
    "channels": (PICTURE.replace("(4, 3,", "(4, 5,"), "return R.nn.conv2d(x, w)", [":3:", "5", "3"]),
    "inner dimensions": (TWO, "return R.matmul(x, w)", [":3:", "inner dimensions 8 and 16", "(4, 8)", "R.permute_dims"]),
    "broadcast": (TWO, "return R.add(x, w)", [":3:", "4 and 16", "do not broadcast"]),
    "two types": (TWO, 'return R.add(x, R.const(1, "int32"))', [":3:", "float32 and int32", "R.astype"]),
    "no return": (TWO, "y = R.add(x, x)", [":2:", "does not return a value", "return y"]),
    "no annotation": ("x", "return x", [":2:", "x has no annotation", "R.Tensor("]),
    "undefined name": (ONE, "return y", [":3:", "'y' is not defined"]),
    "bare symbol": ('x: R.Tensor((n, 4), "float32")', "return x", [":2:", "'n' is not defined", '"n"', "n = T.int64()"]),
    "bare symbol in text": ('x: R.Tensor(("n * 2",), "float32")', "return x", [":2:", "n does not follow", "n alone"]),
    "no output": (ONE, "with R.dataflow():\n    z = R.add(x, x)\nreturn z", ["z ended with its dataflow block", "R.output(z)"]),
    "bound after output": (ONE, "with R.dataflow():\n    z = R.add(x, x)\n    R.output(z)\n    y = R.add(z, z)\nreturn z", ["R.output ends", "bind before"]),
    "if inside dataflow": (CHOICE, "with R.dataflow():\n    if c:\n        y = R.add(x, x)\n    else:\n        y = x\n    R.output(y)\nreturn y",
                           ["no control flow", "after the block"]),
    "if without else": (CHOICE, "if c:\n    y = R.add(x, x)\nreturn y", [":3:", "no else", "else: y = b"]),
    "different names": (CHOICE, "if c:\n    y = R.add(x, x)\nelse:\n    z = x\nreturn y", [":3:", "y and z", "end both"]),
    "slice": (TWO, "return x[0:2]", [":3:", "x is not a tuple", "R.strided_slice"]),
    "reshape": (TWO, "return R.reshape(x, (5, 5))", [":3:", "32 elements", "25"]),
    "axis": (TWO, "return R.sum(x, axis=2)", [":3:", "axis 2", "2 dimensions"]),
    "axes twice": (TWO, "return R.permute_dims(x, axes=[0, 0])", [":3:", "(0, 0)", "repeated"]),
    "a loop of Python": (ONE, "for i in range(3):\n    x = R.add(x, x)\nreturn x", [":3:", "no loops of Python", "R.while_loop"]),
    "a type misspelt": ('x: R.Tensor((4,), "flaot32")', "return x", [":2:", "'flaot32'", "did you mean float32?"]),
    "annotation": (TWO, 'y: R.Tensor((4, 9), "float32") = R.add(x, x)\nreturn y', [":3:", "annotated as 9, inferred as 8"]),
    "value not used": (ONE, "R.add(x, x)\nreturn x", [":3:", "not used", "assign it"]),
}  # fmt: skip
OTHERS = {
    "call_tir without out_sinfo": (lambda: module("return R.call_tir(cls.f, (x,))"), ["out_sinfo=R.Tensor"]),
    "no such function": (lambda: module('return R.call_tir(cls.g, (x,), out_sinfo=R.Tensor((4,), "float32"))'), ["no function 'g'", "it has f, main"]),
    "a program called": (lambda: module("return cls.f(x)"), ["f is a tensor program", "R.call_tir(cls.f"]),
    "buffers too small": (lambda: rd.compile(module('return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((8,), "float32"))', 8)),
                          ["buffer a of f", "float32 (4)", "(8,)"]),
    "result too large": (lambda: rd.compile(module('return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((8,), "float32"))')), ["buffer b of f", "(8,)"]),
    "result of another type": (lambda: rd.compile(module('return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "int8"))')), ["buffer b of f", "int8"]),
    "an operand too many": (lambda: rd.compile(module('return R.call_tir(cls.f, (x, x), out_sinfo=R.Tensor((4,), "float32"))')),
                            ["2 buffers (a, b)", "2 operands"]),
    "grid": (lambda: program("for i, j in T.grid(128, 128, 128):\n    pass"), [":3:", "2 loop variables for 3 loops"]),
    "remap": (lambda: block('a, b = T.axis.remap("S", [i, i])'), [":6:", "1 kinds"]),
    "an index too few": (lambda: block("B[v] = A[v, 0]"), [":6:", "B has 2 dimensions, 1 indices"]),
    "a word of T misspelt": (lambda: block("B[v, 0] = T.expp(A[v, 0])"), [":6:", "no 'expp'", "T.exp"]),
    "a block misspelt": (lambda: program('with T.blok("b"):\n    pass'), [":3:", "no 'blok'", "T.block"]),
    "a buffer returned": (lambda: program("return A"), [":3:", "returns nothing, or one number", "buffers that are its parameters"]),
    "np not known": (lambda: block("B[v, 0] = np.exp(A[v, 0])"), [":6:", "'np' is not defined"]),
    "outside a buffer": (lambda: rd.interpret(rd.IRModule({"main": program("B[128, 0] = A[0, 0]")}))["main"](SQUARE, SQUARE, SQUARE),
                         ["(128, 0)", "out of bounds of buffer B", "0 to 127"]),
    "factors too small": (lambda: scheduled(lambda s, b, i, j, k: s.split(i, [3, 5])), ["loop i by [3, 5]", "15", "extent 128", "None"]),
    "two factors left out": (lambda: scheduled(lambda s, b, i, j, k: s.split(i, [None, None])), ["[None, None]", "one factor at most"]),
    "a reduction in parallel": (lambda: scheduled(lambda s, b, i, j, k: s.parallel(k)), ["parallelize loop k", "reduce and not spatial", "rfactor"]),
    "a reduction in lanes": (lambda: scheduled(lambda s, b, i, j, k: s.vectorize(k)), ["vectorize loop k", "rfactor"]),
    "no such block": (lambda: scheduled(lambda s, b, i, j, k: s.get_sblock("D")), ["no block 'D'", "root, C"]),
    "a loop that is gone": (lambda: scheduled(lambda s, b, i, j, k: (s.split(i, [4, 32]), s.parallel(i))), ["no longer there", "i_0, i_1"]),
    "fuse": (lambda: scheduled(lambda s, b, i, j, k: s.fuse(i, k)), ["fuse i with k", "reorder first"]),
    "inline the result": (lambda: scheduled(lambda s, b, i, j, k: s.compute_inline(b)), ["inline block C", "output block"]),
    "move under itself": (lambda: scheduled(lambda s, b, i, j, k: s.compute_at(b, i)), ["move block C under loop i", "already"]),
    "no such intrinsic": (lambda: scheduled(lambda s, b, i, j, k: s.tensorize(i, "wmma")), ["no tensor intrinsic 'wmma'", "known are"]),
    "no such thread": (lambda: scheduled(lambda s, b, i, j, k: s.bind(i, "threadIdx.q")), ["no thread axis 'threadIdx.q'", "blockIdx.x"]),
    "no such read": (lambda: scheduled(lambda s, b, i, j, k: s.cache_read(b, 5, "local")), ["reads no buffer 5", "0: A, 1: B"]),
    "rfactor a spatial loop": (lambda: scheduled(lambda s, b, i, j, k: s.rfactor(i, 0)), ["rfactor loop i", "does not reduce"]),
    "indices of te": (lambda: te.compute((4,), lambda i: te.placeholder((4, 4), name="A")[i, i, i]), ["A has 2 dimensions", "3"]),
    "a lambda too short": (lambda: te.compute((4, 4), lambda i: i), ["2 dimensions", "1 indices"]),
    "te.sum of what": (lambda: te.sum(te.placeholder((4,), name="A")[0]), ["sum does not say", "te.reduce_axis"]),
    "a placeholder left out": (lambda: te.create_prim_func([te.compute((4,), lambda i: te.placeholder((4,), name="A")[i])]), ["A is read", "create_prim_func"]),
    "no such file": (lambda: rd.compile("model.onx"), ["model.onx", "No such file"]),
    "an array for a model": (lambda: rd.compile(X4), ["not a model: ndarray", "ONNX", "IRModule"]),
    "no main": (lambda: rd.compile(rd.IRModule({n: graph(ONE, "return x").with_attr("global_symbol", n) for n in "fg"})),
                ["no function main", "f, g", 'rd.build(mod)["f"]']),
    "float64": (lambda: doubled()(np.ones(4)), ["'x'", "float64", "float32", "astype"]),
    "a wrong size": (lambda: doubled()(np.ones(5, "float32")), ["dimension 0", "'x'", "5", "4"]),
    "no arguments": (lambda: doubled()(), ["main takes 1 argument (x)", "0 were given"]),
    "another name": (lambda: doubled()(y=X4), ["main(x)", "unknown: y", "missing: x"]),
    "no array for the result": (lambda: rd.build(program(MATMUL))["main"](SQUARE, SQUARE), ["3 arguments (A, B, C)", "2 were given", "writes too: C"]),
    "no such backend": (lambda: rd.build(program(MATMUL), target="cuda"), ["no code generator", "cuda", "llvm"]),
    "emit outside": (lambda: relax.BlockBuilder().emit(relax.const(1)), ["no function to emit into", "bb.function"]),
    "no result": (lambda: built(lambda bb, x: bb.emit(relax.op.add(x, x))), ["main has no result", "emit_func_output"]),
    "two results": (lambda: built(lambda bb, x: (bb.emit_func_output(x), bb.emit_func_output(x))), ["main has a result already"]),
    "te of an unknown shape": (lambda: built(lambda bb, x: bb.emit_te(lambda a: a, relax.Var("y", R.Tensor(ndim=2)))), ["operand y", "match_cast"]),
    "a module changed in place": (lambda: rd.IRModule({}).__setitem__("main", None), ["not changed in place", "with_functions"]),
    "an expression as condition": (lambda: bool(te.var("n", "int64") == 4), ["does not compare", "eq(a, b)"]),
}  # fmt: skip


def said(attempt):
    with pytest.raises(Exception) as caught:
        attempt()
    assert isinstance(caught.value, rd.RoundelError | TypeError), f"{type(caught.value).__name__} is not an error of ours"
    return str(caught.value)


@pytest.mark.parametrize("name", GRAPHS)
def test_of_graph_functions(name):
    signature, body, words = GRAPHS[name]
    text = said(lambda: graph(signature, body))
    assert [w for w in words if w not in text] == [], text


@pytest.mark.parametrize("name", OTHERS)
def test_of_programs_schedules_and_runs(name):
    attempt, words = OTHERS[name]
    text = said(attempt)
    assert [w for w in words if w not in text] == [], text


def domain_program(iterations: int, more: str = "") -> str:
    return f'''
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for i in range({iterations}):
        with T.sblock("B"):
            vi = T.axis.spatial(128, i)
            {more}
            B[vi] = A[vi]
'''


@pytest.mark.parametrize("iterations, what", [(127, "elements are left out"), (129, "axis vi ends before 128, and loop i runs to 128")])
def test_a_loop_that_is_not_the_domain_of_its_axis_is_warned_of(iterations, what):
    with pytest.warns(ScriptWarning, match=what):
        parse(domain_program(iterations))


def test_loops_that_are_the_domain_and_parts_of_it_are_not_warned_of():
    parts = domain_program(100) + domain_program(28).split("def f")[1].split(":\n", 1)[1].replace("128, i", "128, i + 100")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(domain_program(128))
        parse(domain_program(130, "T.where(i < 128)"))
        parse(parts)


@pytest.mark.parametrize("value", ["~1.5", "~A[vi]", "T.bitwise_not(A[vi])", "T.popcount(A[vi])"])
def test_bits_of_floats_are_refused(value):
    with pytest.raises(ScriptError, match="integers|unary"):
        parse(domain_program(128).replace("= A[vi]", f"= {value}"))


def _gradient(name="main"):
    from roundel.graph.gradient import gradient

    return gradient(parse(f"@I.ir_module\nclass M:\n    @R.function\n    def main({ONE}):\n        return R.add(x, x)\n"), name)


def _mixed():
    from roundel.graph.algorithms.mixed_precision import mixed_precision

    return mixed_precision(rd.IRModule({}), "int8")


def _with_axis():
    a, k = te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), "k")
    return te.create_prim_func([a, te.compute((4,), lambda i: a[i, k], "C")])


TEN_MORE = {
    "an array for the result is missing": (lambda: rd.build(parse(COPY))(X4), "a tensor program takes arrays for what it writes too: b"),
    "an index is missing": (lambda: program("for i in range(128):\n    C[i] = A[i]\n"), "buffer A has 2 dimensions, 1 indices given"),
    "text is stored": (lambda: program("for i, j in T.grid(128, 128):\n    C[i, j] = 'x'\n"),
                       "'x' cannot be stored into buffer C: it is no number and no expression"),
    "factors are too small": (lambda: scheduled(lambda sch, c, i, j, k: sch.split(i, [3, 2])), "None in place of one of them takes what is left"),
    "one loop is reordered": (lambda: scheduled(lambda sch, c, i, j, k: sch.reorder(i, i)), "reorder takes different loops"),
    "a loop is given for a block": (lambda: scheduled(lambda sch, c, i, j, k: sch.get_loops(i)), "cannot take a loop as block"),
    "the loss is no scalar": (_gradient, "reduce it, for instance by R.sum(x)"),
    "the function's name is misspelt": (lambda: _gradient("mian"), "there is no graph function mian\nhint: functions there are: main"),
    "a type is no 16-bit float": (_mixed, "dtype is float16 or bfloat16"),
    "a reduce axis without a reduction": (_with_axis, "hint: reduce over it: te.sum"),
}


@pytest.mark.parametrize("name", TEN_MORE)
def test_ten_more(name):
    attempt, part = TEN_MORE[name]
    assert part in said(attempt)
