# SPDX-License-Identifier: Apache-2.0
"""``build`` knows code generators by one protocol, and no layout of one machine's pointers is in the text."""

import re
from pathlib import Path

import pytest

import roundel
from roundel.codegen import BACKENDS, Array, Data, Function, Number, Record, Symbol, Text, backend_of
from roundel.ir import tir
from roundel.ir.attrs import Attrs
from roundel.ir.errors import BuildError
from roundel.target.spec import MachineSpec

HERE = Path(roundel.__file__).parent
GENERATORS = sorted(p.parent.name for p in HERE.glob("codegen/*/backend.py"))
IMPORT = re.compile(rf"(from \.+|from roundel\.|import roundel\.)codegen\.({'|'.join(GENERATORS)})\b")


def test_nobody_outside_imports_a_code_generator_by_name():
    """But who puts a file of C source together."""
    assert {"c", "llvm"} <= set(GENERATORS)
    found = {str(p.relative_to(HERE)): m.group() for p in HERE.rglob("*.py") if "codegen" not in p.parts and (m := IMPORT.search(p.read_text()))}
    assert set(found) == {"build/source.py"}


@pytest.mark.parametrize("kind", BACKENDS)
def test_each_has_what_the_protocol_asks_for(kind):
    backend = backend_of(kind)
    assert backend.version
    assert isinstance(backend.features(MachineSpec.host(), set), list)


def test_a_kind_without_one_is_told():
    with pytest.raises(BuildError, match="there is no code generator for target kind metal yet"):
        backend_of("metal")


def host_text(triple):
    where = tir.call("constant_ptr", tir.StringImm("sha:0"), dtype="handle")
    out = tir.decl_buffer((1,), "float32", "out")
    source = tir.decl_buffer((1,), "float32", "source", data=tir.Var("constant", "handle"))
    body = tir.Let(source.data, where, tir.BufferStore(out, tir.BufferLoad(source, (tir.index_const(0),)), (tir.index_const(0),)))
    param = tir.Var("out", "handle")
    func = tir.PrimFunc((param,), body, ((param, out),), Attrs(kind="host"))
    return backend_of("llvm").emit([Function("f", func)], MachineSpec(triple, "", "")).text


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "i686-unknown-linux-gnu", "armv7-unknown-linux-gnueabihf"])
def test_fields_of_the_context_lie_where_the_machine_has_them(triple):
    assert not re.search(r"getelementptr i8, ptr %ctx", text := host_text(triple))
    assert "getelementptr { ptr, ptr, i32 }, ptr %ctx, i32 0, i32 1" in text


def test_data_refers_to_functions_texts_and_arrays():
    pair = Record("Pair", (Number(32, 7), Text("a\"b")))
    data = Data("table", Record("Table", (Array.of([pair, pair]), Array(()), Symbol(None), Number(64, -1))))
    text = backend_of("llvm").emit([], MachineSpec.host(), [data]).text
    assert '@table = constant { ptr, ptr, ptr, i64 } { ptr @.rd1, ptr null, ptr null, i64 -1 }' in text
    assert "[2 x { i32, ptr }]" in text


def test_words_of_messages_are_no_uses():
    """A parameter that only a message names is unused: compilers are told so."""
    from roundel.codegen.c.writer import identifiers

    assert identifiers(r'fail(ctx, "out \" of \054 room", n)') == ["fail", "ctx", "n"]
