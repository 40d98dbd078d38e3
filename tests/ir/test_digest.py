# SPDX-License-Identifier: Apache-2.0
"""A digest is shared by programs that are equal but for names, in every process, and by no others."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings

from roundel.ir import load_json, save_json, structural_equal
from roundel.ir.digest import structural_digest
from roundel.script import parse
from strategies import tensor_programs

NAMED = ("Var", "Buffer", "Block")  # kinds of nodes whose names are hints


SOURCE = """
@T.prim_func
def scaled(a: T.Buffer((4, 8), "float32"), n: T.int64, b: T.Buffer((n, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj] * T.float32(2) + T.float32(0)
"""
CHANGES = {
    "a constant": ("T.float32(2)", "T.float32(3)"),
    "the sign of a zero": ("T.float32(0)", "T.float32(-0.0)"),
    "an extent": ("T.grid(4, 8)", "T.grid(4, 7)"),
    "a shape": ('a: T.Buffer((4, 8), "float32")', 'a: T.Buffer((5, 8), "float32")'),
    "a type": ('T.Buffer((n, 8), "float32")', 'T.Buffer((n, 8), "float16")'),
    "which index comes first": ("a[vi, vj]", "a[vj // 2, vi]"),
    "the operation": ("* T.float32(2) +", "* T.float32(2) -"),
    "the order of parameters": ('a: T.Buffer((4, 8), "float32"), n: T.int64, b: T.Buffer((n, 8), "float32")',
                                'n: T.int64, b: T.Buffer((n, 8), "float32"), a: T.Buffer((4, 8), "float32")'),
    "a variable's type": ("n: T.int64", "n: T.int32"),
}
scaled = parse(SOURCE)


def renamed(node):
    """The same program with other names everywhere."""
    data = json.loads(save_json(node))
    for k, entry in enumerate(data["nodes"]):
        (kind, fields), = entry.items()
        if kind.rpartition(".")[2] in NAMED:
            fields["name"] = f"other{k}"
    return load_json(json.dumps(data))


def variants(node):
    """Programs that differ from one in a single number, truth value or type."""
    data = json.loads(save_json(node))
    for entry in data["nodes"]:
        (kind, fields), = entry.items()
        for name, value in fields.items():
            other = {int: lambda v: v + 1, bool: lambda v: not v, float: lambda v: v + 1.5}.get(type(value))
            if other is None:
                continue
            fields[name] = other(value)
            try:
                yield f"{kind}.{name}", load_json(json.dumps(data))
            except Exception:  # no program at all
                continue
            finally:
                fields[name] = value


def test_a_program_is_found_under_other_names():
    other = renamed(scaled)
    assert "other" in other.script() and structural_equal(scaled, other)
    assert structural_digest(other) == structural_digest(scaled)


@settings(max_examples=60, deadline=None)
@given(tensor_programs())
def test_any_program_is_found_under_other_names(func):
    assert structural_digest(renamed(func)) == structural_digest(func)


@settings(max_examples=25, deadline=None)
@given(tensor_programs())
def test_what_differs_in_one_value_differs_in_its_digest(func):
    for where, other in variants(func):
        assert (structural_digest(other) == structural_digest(func)) == structural_equal(other, func), where


@pytest.mark.parametrize("what", CHANGES)
def test_every_part_of_a_program_counts(what):
    old, new = CHANGES[what]
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    assert structural_digest(parse(source)) != structural_digest(parse(SOURCE))


def test_attributes_count_unless_they_are_left_out():
    marked = scaled.with_attr("marked", True)
    assert structural_digest(marked) != structural_digest(scaled.with_attr("marked", 1))
    assert structural_digest(marked, without_attrs=["marked"]) == structural_digest(scaled, without_attrs=["marked"])


def test_an_expression_that_occurs_often_takes_no_more_than_once():
    from roundel.ir import Var, tir

    e = Var("x", "int64")
    for _ in range(200):
        e = tir.Add(e, e)
    assert structural_digest(e)


def test_equal_in_every_process():
    program = f"from roundel.ir import load_json; from roundel.ir.digest import structural_digest; print(structural_digest(load_json({save_json(scaled)!r})))"
    for seed in "12":
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == structural_digest(scaled)
