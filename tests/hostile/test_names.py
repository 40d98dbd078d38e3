# SPDX-License-Identifier: Apache-2.0
"""Names of a model in generated texts: short forms of the attacks on headers, scripts and models, and what a terminal is shown."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from typer.testing import CliRunner

import roundel as rd
from roundel.build.header import entry_name, write_header
from roundel.cli.app import app
from roundel.ir import escape
from roundel.ir.errors import ModelError, RunError
from roundel.runtime import FunctionInfo, TensorInfo

from . import headers, models, scripts
from .names import hostile_names


def test_a_name_that_closes_the_comment_does_not_become_code(tmp_path):
    name = "x */ int injected = 1; /*"
    info = FunctionInfo("main", "graph", (TensorInfo(name, "float32", ("n */ int injected;",)),), (TensorInfo("y??/", "float32", ()),), (0,))
    assert list(headers.problems(write_header(tmp_path / "model.h", [info]), [info])) == []


@pytest.mark.parametrize("subject, count", [(headers, 1000), (scripts, 20), (models, 60)])
def test_short_form(subject, count):
    assert list(subject.attack(count, seed=1)) == []


def test_what_is_escaped_stays_different_and_can_be_read():
    names = list(dict.fromkeys(hostile_names(3000, seed=2)))
    for write in (escape.name, escape.file_name, lambda n: entry_name("model", n)):
        assert len({write(n) for n in names}) == len(names)
    for name in names:
        assert escape.name(name).isprintable()
        assert not {"*/", "/*", "??", "\n"} & {escape.c_comment(name)[k : k + w] for k in range(len(escape.c_comment(name))) for w in (1, 2)}
        assert escape.c_string(name).isascii() and '"' not in escape.c_string(name)
        assert b"\0" not in escape.encoded(name)
        assert escape.python_identifier(name).isidentifier() and escape.python_identifier(name).isascii()
        assert "/" not in escape.file_name(name) and len(escape.file_name(name).encode()) <= 120
    for plain in ("x", "input.1", "/encoder/layer.0/MatMul_output_0", "名前", "hidden states [1]"):
        assert escape.name(plain) == plain


@pytest.mark.parametrize("function", ["f_input0", "run", "Release", "last_error", "a.b", "a_b_0c0ffee0", "f" * 300, "é"])
def test_functions_whose_c_name_would_be_taken_get_another(function):
    others = [entry_name("model", n) for n in ("main", "f", "a_b")]
    fixed = ["model_run", "model_release", "model_last_error", *(f"{o}_{p}{k}" for o in others for p in ("input", "output") for k in range(3))]
    made = entry_name("model", function)
    assert made.isidentifier() and made.isascii() and made.lower() not in [n.lower() for n in (*others, *fixed)]


def test_errors_do_not_steer_the_terminal():
    error = ModelError("tensor '\x1b[2J\u202e' is wrong", where="node 'a\nhint: run this'", hint="line one\nline two")
    assert str(error) == "node 'a\\nhint: run this': tensor '\\x1b[2J\\u202e' is wrong\nhint: line one\nline two"


def test_commands_show_names_as_they_are_and_write_files_where_they_should(tmp_path):
    name = "../[red]\x1b[31my"
    infos = [helper.make_tensor_value_info(n, 1, [2]) for n in ("[/]x", name)]
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["[/]x"], [name], name="\x1b]0;a\x07")], "g", infos[:1], infos[1:]))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    for command in ("check", "inspect", "run", "bench", "explain"):
        extra = {"run": ["-O", str(tmp_path / "out")], "bench": ["--seconds", "0.01"], "explain": ["--seconds", "0.01"]}
        shown = CliRunner().invoke(app, [command, str(tmp_path / "model.onnx"), *extra.get(command, [])])
        assert shown.exit_code == 0, shown.output
        assert "\x1b" not in shown.output and "\x07" not in shown.output
        assert command not in ("run", "bench") or "[/]x" in shown.output
    (written,) = (tmp_path / "out").iterdir()
    assert written.suffix == ".npy" and not list(tmp_path.glob("*.npy"))


@pytest.mark.parametrize("size", ["lambda", "None", "2²", "n * 2", "__class__", "名前", ""])
def test_sizes_of_any_name_run_from_the_command_line(tmp_path, size):
    shapes = ([size, 4], [size, size, 4])
    infos = [helper.make_tensor_value_info(n, 1, s) for n, s in zip("xy", shapes)]
    nodes = [helper.make_node("Unsqueeze", ["x", "axis"], ["u"]), helper.make_node("Mul", ["u", "x"], ["y"])]
    axis = helper.make_tensor("axis", 7, [1], [1])
    model = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], [axis]), opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    for command in (["compile"], ["run"]):
        shown = CliRunner().invoke(app, [*command, str(tmp_path / "model.onnx")])
        assert shown.exit_code == 0, (shown.output, shown.exception)


def test_a_node_that_an_index_error_names_stands_for_no_number():
    table = helper.make_tensor("table", 1, [10, 4], np.arange(40.0))
    infos = [helper.make_tensor_value_info("i", 7, ["n"]), helper.make_tensor_value_info("o", 1, ["n", 4])]
    nodes = [helper.make_node("Gather", ["table", "i"], ["o"], name="{0}%s\x1b[2J" + "名" * 1000)]
    model = rd.compile(helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], [table]), opset_imports=[helper.make_opsetid("", 17)]))
    with pytest.raises(RunError, match=r"Gather \(0\)%s\\x1b\[2J名+\.\.\. \(.*\): index 12 at position 0 is not in \[-10, 10\)"):
        model(np.array([12]))
