# SPDX-License-Identifier: Apache-2.0
"""Any node is read from its JSON text as it was; any other text is an error of ours."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import script_programs
from roundel import ir, relax
from roundel.ir import tir
from roundel.ir.errors import RoundelError
from roundel.script import parse
from roundel.script import relax as R
from strategies import graph_functions, tensor_programs

RANDOM = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
N = tir.Var("n", ir.DType("int64"))


def again(node):
    return ir.load_json(ir.save_json(node))


@pytest.mark.parametrize("name", script_programs.ALL)
def test_programs_come_back(name):
    program = parse(script_programs.HEADER + script_programs.ALL[name])
    ir.assert_structural_equal(again(program), program)


@RANDOM
@given(st.one_of(tensor_programs(), graph_functions()))
def test_random_programs_come_back(program):
    ir.assert_structural_equal(again(program), program)


@pytest.mark.parametrize("node", [
    N + 1, tir.const(float("inf"), "float32"), relax.PrimValue(N), relax.StringImm("a\n\u2028"), relax.DataTypeImm("bfloat16"),
    R.Tensor((N, 4), "float32"), R.Callable((R.Tensor(ndim=2),), R.Object()), relax.ObjectStructInfo(), relax.ShapeExpr([N, 1]),
    relax.Constant.of(np.arange(6, dtype="float16").reshape(2, 3)),
])  # fmt: skip
def test_parts_come_back(node):
    ir.assert_structural_equal(again(node), node, map_free_vars=True)


def test_what_is_shared_stays_shared():
    """Two struct infos of one variable still speak of one dimension."""
    a, b = again((R.Tensor((N,), "int8"), R.Tensor((N,), "int16")))
    assert a.shape[0] is b.shape[0] and a.shape[0] is not N


def test_constants_keep_their_values():
    values = np.array([1.5, np.nan, -np.inf], "float32")
    assert np.array_equal(again(relax.Constant.of(values)).data.numpy(), values, equal_nan=True)


@pytest.mark.parametrize("text", [
    "", "[]", "{}", "null", '{"format": "roundel-ir", "version": 9, "nodes": [], "root": 1}',
    '{"format": "roundel-ir", "version": 1, "nodes": [{"os.system": {}}], "root": {"node": 0}}',
    '{"format": "roundel-ir", "version": 1, "nodes": [], "root": {"node": 5}}',
    '{"format": "roundel-ir", "version": 1, "nodes": [{"ir.tir.expr.Var": {}}], "root": {"node": 0}}',
])  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises(RoundelError, match="no saved program"):
        ir.load_json(text)


def test_texts_with_a_part_changed_are_refused_or_read():
    """A hostile file makes nodes or an error, never anything else."""
    text = ir.save_json(parse(script_programs.HEADER + script_programs.MM_RELU))
    data = json.loads(text)
    for k in range(len(data["nodes"])):
        broken = json.loads(text)
        broken["nodes"][k] = {"ir.tir.expr.IntImm": {"value": "x", "dtype": [k]}}
        try:
            ir.load_json(json.dumps(broken))
        except RoundelError as e:
            assert "no saved program" in str(e)
