# SPDX-License-Identifier: Apache-2.0
"""Errors in scripts: file, line and column, the line with a caret, and what would be right."""


from __future__ import annotations

import pytest

from roundel.ir.errors import ScriptError
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R
from roundel.script import tir as T

HEAD = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), n: T.int32):\n'
GRAPH = '@R.function\ndef f(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):\n'

# body of a tensor program, line and column of the error, what the message says
TENSOR_ERRORS = [
    ("    A[0, m] = 1.0", 3, 10, "'m' is not defined"),
    ("    A[0] = 1.0", 3, 5, "2 dimensions, 1 indices"),
    ("    A[0, 0] = A[0, 0] + T.foo(1)", 3, 25, "T has no 'foo'"),
    ("    A[0, 0] = T.sqr(A[0, 0])", 3, 15, "did you mean T.sqrt"),
    ("    for i, j in T.grid(8):\n        A[i, j] = 1.0", 3, 9, "2 loop variables for 1 loops"),
    ("    for i in A:\n        A[i, 0] = 1.0", 3, 14, "cannot loop over A"),
    ("    A[n / 2, 0] = 1.0", 3, 7, "`/` between integers is ambiguous"),
    ("    with T.init():\n        A[0, 0] = 0.0", 3, 5, "outside of a block"),
    ("    vi = T.axis.spatial(8, n)", 3, 5, "outside of a block"),
    ('    with T.block("b"):\n        vi = T.axis.remap("S", [n])', 4, 9, "takes loop variables"),
    ('    with T.block("b"):\n        vi = T.axis.remap("X", [n])', 4, 14, "unknown axis kind 'X'"),
    ('    with T.block("b"):\n        vi, vj = T.axis.remap("SS", [n])', 4, 18, "2 kinds"),
    ("    with A:\n        pass", 3, 10, "does not open a block"),
    ("    x = y = 1", 3, 5, "one assignment at a time"),
    ("    A = 1.0 +", 3, 14, "not valid Python"),
    ("    import os", 3, 5, "cannot have import here"),
    ("    A[0, 0] = 'text'", 3, 5, "cannot be stored"),
    ("    n[0] = 1", 3, 5, "is not a buffer"),
    ("    T.exp(1.0, 2.0)", 3, 5, "T.exp takes 1 operands, 2 given"),
    ("    A", 3, 5, "is not a statement"),
    ("    A[0, 0] = 1.0 if n == n else ä", 3, 34, "'ä' is not defined"),
    ("    n(1)", 3, 5, "cannot be called"),
    ("    A[0, 0:n] = A[0, 0:n] + 1.0", 3, 17, "constant length"),
    ("    a, b = T.int64(), T.int64(), T.int64()", 3, 5, "2 names for 3 values"),
    ('    with T.block("b"):\n        v = T.axis.S(8, n)\n        v = T.axis.S(8, n)', 5, 9, "two axes called v"),
    ('    for i, j in T.grid(8, 8):\n        with T.block("b"):\n            v, v = T.axis.remap("SS", [i, j])', 5, 13, "two axes called v"),
    ('    for i in range(8):\n        with T.block("b"):\n            v = T.axis.S(i)', 5, 13, "not bound to a value"),
    ('    with T.block("b"):\n        v = T.axis.S(0.5, 0.5)', 4, 13, "integers"),
    ('    with T.block("b"):\n        T.reads(A[0, 0])\n        T.reads(A[0, 1])', 5, 9, "T.reads twice"),
    ('    with T.block("b"):\n        T.writes(A[0, 0])\n        T.writes(A[0, 1])', 5, 9, "T.writes twice"),
    ('    with T.block("b"):\n        T.where(n > 1)\n        T.where(n < 4)', 5, 9, "T.where twice"),
    ('    with T.block("b"):\n        T.block_attr({"a": 1})\n        T.block_attr({"a": 2})', 5, 9, "attribute a has two values"),
    ("    with T.block('b') as x:\n        pass", 3, 26, "no value to name"),
    ("    T.reads(A[0, 0])", 3, 5, "outside of a block"),
    ("    T.where(n > 1)", 3, 5, "outside of a block"),
    ('    T.block_attr({"a": 1})', 3, 5, "outside of a block"),
    ("    B = T.alloc_buffer((4,))\n    B = T.alloc_buffer((4,))", 4, 5, "declared twice"),
    ("    with T.allocate([1], 'float32', '') as [B, C]:\n        pass", 3, 44, "makes one value"),
    ("    A[0, 0] = A[0:2, 0]", 3, 5, "2 values are stored into 1 elements"),
    ('    for i in T.serial("1", "1"):\n        pass', 3, 14, "not the text"),
    ("    for i in T.thread_binding(8, 8):\n        pass", 3, 14, "named axis of threads"),
    ("    for *i, *j in T.grid(8, 8):\n        pass", 3, 9, "one of them starred"),
    ("    T.realize(A, '')", 3, 5, "takes a region"),
]
GRAPH_ERRORS = [
    ("    return y", 3, 12, "'y' is not defined"),
    ("    y = R.nn.reluu(x)\n    return y", 3, 9, "no operator R.nn.reluu"),
    ("    y = R.add(x)\n    return y", 3, 9, "needs operand"),
    ("    y = R.nn.relu(x, foo=1)\n    return y", 3, 9, "no argument foo"),
    ("    y = R.add(x, x)", 2, 1, "does not return"),
    ('    y: R.Tensor((2, 4), "float32") = R.add(x, x)\n    return y', 3, 5, "annotated otherwise"),
    ('    y: R.Tensor((2, 3), "int8") = R.add(x, x)\n    return y', 3, 5, "annotated as int8, inferred as float32"),
    ("    if c:\n        y = x\n    return x", 3, 5, "the if has no else"),
    ("    if c:\n        y = x\n    else:\n        z = x\n    return x", 3, 5, "different variables, y and z"),
    (
        "    with R.dataflow():\n        if c:\n            y = x\n        else:\n            y = x\n        R.output(y)\n    return x",
        4,
        9,
        "no control flow",
    ),
    ("    return x[0]", 3, 12, "is not a tuple"),
    ("    return (x, c)[2]", 3, 12, "out of range"),
    ("    y = R.call_tir(I.GlobalVar('g'), (x,))\n    return y", 3, 9, "needs out_sinfo"),
    ("    y: 3 = x\n    return y", 3, 8, "is not the type of a graph value"),
    ("    y = R.const('sha:00', 'int8')\n    return y", 3, 9, "is not alive"),
    ("    return x\n    return x", 4, 5, "returns once"),
    ("    a, b = x\n    return a", 3, 5, "not a tuple of 2"),
    ("    R.add(x, x)\n    return x", 3, 5, "is not used"),
    ("    y = R.add(x, x)\n    R.output(y)\n    return y", 4, 5, "outside of a dataflow block"),
    ("    with R.dataflow():\n        y = R.add(x, x)\n        R.output(y)\n        z = R.add(y, y)\n    return y", 6, 9, "ends a dataflow block"),
    ("    with R.dataflow():\n        y = R.add(x, x)\n        R.output(y)\n        R.output(y)\n    return y", 6, 9, "ends a dataflow block"),
    ("    with R.dataflow():\n        y = R.add(x, x)\n        R.output(x, y)\n    return y", 5, 9, "not bound in it"),
    ("    with R.dataflow():\n        y = R.add(x, x)\n        z = R.add(y, y)\n        R.output(z)\n    return y", 7, 12, "y ended with its dataflow block"),
    ("    a = (x, x)\n    y = R.call_tir_inplace(I.GlobalVar('g'), a, [0], R.Tensor((2, 3)))\n    return y", 4, 9, "written out"),
]


@pytest.mark.parametrize(
    ("head", "body", "line", "column", "says"),
    [(HEAD, *e) for e in TENSOR_ERRORS] + [(GRAPH, *e) for e in GRAPH_ERRORS],
)
def test_position_and_message(head, body, line, column, says):
    with pytest.raises(ScriptError) as caught:
        parse(head + body, file="a.py")
    text = str(caught.value)
    assert says in text, text
    assert text.startswith(f"a.py:{line}:{column}: "), text
    source, caret = text.splitlines()[1:3]
    assert (
        source.strip() == (head + body).splitlines()[line - 1].strip()
        and caret.strip(" ^") == ""
        and caret.index("^") == 4 + column - 1
    )


def test_attributes_of_private_functions():
    for text in ("@T.prim_func(private=True)\ndef f():\n    T", "@R.function(private=True)\ndef f(x: R.Object):\n    R"):
        with pytest.raises(ScriptError, match="private and has a global_symbol"):
            parse(text + '.func_attr({"global_symbol": "f"})\n    return ' + ("x" if "R." in text else "None"))


@pytest.mark.parametrize(
    ("info", "says"),
    [
        ('R.Tensor((2, 3), "float32", ndim=3)', "has 2 dimensions"),
        ("R.Tensor(ndim=-2)", "not -2"),
        ('R.Tensor(ndim="1")', "not '1'"),
        ('R.Tensor(("m + 1", "m * 2"))', "value of m does not follow"),
    ],
)
def test_struct_infos_that_cannot_be(info, says):
    with pytest.raises(ScriptError, match=says):
        parse(f"@R.function\ndef f(x: {info}):\n    return x")


def test_dimensions_are_int64():
    with pytest.raises(ScriptError, match="n is a dimension, so it is int64"):
        parse('@R.function\ndef f(x: R.Tensor(("n",))):\n    n = T.int32()\n    return x')


def test_missing_annotations():
    with pytest.raises(ScriptError, match="parameter A has no annotation"):
        parse("@T.prim_func\ndef f(A):\n    pass")
    with pytest.raises(ScriptError, match="parameter x has no annotation"):
        parse("@R.function\ndef f(x):\n    return x")
    with pytest.raises(ScriptError, match="is not the type of a parameter"):
        parse("@T.prim_func\ndef f(A: 3):\n    pass")


def test_module_errors():
    with pytest.raises(ScriptError, match="neither a tensor program nor a graph function"):
        parse("@I.ir_module\nclass M:\n    def f():\n        pass")
    with pytest.raises(ScriptError, match="two functions called f"):
        parse(
            "@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        pass\n    @T.prim_func\n    def f():\n        pass"
        )
    with pytest.raises(ScriptError, match="has no function 'g'; it has f"):
        parse("@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        M.g()")
    with pytest.raises(ScriptError, match="a module holds functions"):
        parse("@I.ir_module\nclass M:\n    while 1:\n        pass")
    with pytest.raises(ScriptError, match="defines no module"):
        parse("x = 1")
    with pytest.raises(ScriptError, match="before its result is known"):
        parse("@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Object):\n        return M.f(x)")
    with pytest.raises(ScriptError, match="decorates a class"):
        I.ir_module(3)


def test_decorated_functions_point_into_their_file():
    with pytest.raises(ScriptError) as caught:

        @T.prim_func
        def f(A: T.Buffer((8,), "float32")):
            A[wrong] = 1.0

    assert __file__ in str(caught.value) and "A[wrong] = 1.0" in str(caught.value) and caught.value.where.line > 100


def test_functions_without_source():
    space = {"T": T, "R": R}
    with pytest.raises(ScriptError, match=r"use roundel\.script\.parse"):
        exec("@T.prim_func\ndef f(): pass", space)


def test_recursion_with_annotation_is_fine():
    mod = parse(
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor(('n',))) -> R.Tensor(('n',)):\n        y = M.f(x)\n        return y"
    )
    assert mod["f"].body.bindings[0].var.sinfo.shape[0] is mod["f"].params[0].sinfo.shape[0]
