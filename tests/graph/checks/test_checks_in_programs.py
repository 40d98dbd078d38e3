# SPDX-License-Identifier: Apache-2.0
"""Programs that use indices check them: which do, that they agree with the interpreter, and that nothing outside is touched."""

import numpy as np
import pytest

import roundel as rd
from roundel import driver
from roundel.builder import BlockBuilder
from roundel.frontend.onnx import from_onnx
from roundel.graph.checks.checks_in_programs import checks_in_programs
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.script import from_source

UP_TO_CHECKS = driver.DEFAULT[: driver.DEFAULT.index(checks_in_programs) + 2]
F = "float32"
X, GRID = (("n",), F), (("n", "m"), F)


def model(name, infos, **attrs):
    """A model of one operator, for all sizes."""
    known = {}
    dim = lambda d: known.setdefault(d, tir.Var(d, INT64, True)) if isinstance(d, str) else d
    params = [graph.Var(f"x{k}", graph.TensorInfo(tuple(map(dim, shape)), dtype)) for k, (shape, dtype) in enumerate(infos)]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(make(name, *params, **attrs)))
    return bb.get()


def indices(dtype, *shape):
    """The shape and type of an index tensor."""
    return shape, dtype


CASES = {
    "take": (lambda t: model("take", [X, indices(t, "k")], axis=0), [(9,)], (1100,), 9),
    "gather_elements": (lambda t: model("gather_elements", [GRID, indices(t, "n", "q")], axis=1), [(9, 9)], (9, 30), 9),
    "gather_nd": (lambda t: model("gather_nd", [GRID, indices(t, "k", 2)]), [(7, 9)], (1100, 2), 7),
    "scatter_elements": (lambda t: model("scatter_elements", [GRID, indices(t, "n", "q"), (("n", "q"), F)], axis=1, reduction="add"),
                         [(3, 9), (3, 70)], (3, 70), 9),
    "scatter_nd": (lambda t: model("scatter_nd", [X, indices(t, "k", 1), (("k",), F)], reduction="add"), [(9,), (1100,)], (1100, 1), 9),
}


def arguments(name, dtype):
    _, floats, shape, limit = CASES[name]
    rng = np.random.default_rng(0)
    x, *updates = (rng.random(s, np.float32) for s in floats)
    return [x, rng.integers(0 if dtype.startswith("u") else -limit, limit, shape).astype(dtype), *updates]


@pytest.mark.parametrize(("name", "dtype"), [*((n, "int64") for n in CASES), ("take", "int32"), ("take", "uint8")])
def test_an_index_is_read_by_what_uses_it_only(name, dtype):
    mod = CASES[name][0](dtype)
    prepared = driver.prepare(mod, pipeline=UP_TO_CHECKS)
    names = list(prepared)
    assert f"checked_{name}" in names and not any("index_flag" in n for n in names)
    given = arguments(name, dtype)
    compiled, wanted = rd.compile(mod), np.asarray(rd.interpret(mod)["main"](*given))
    np.testing.assert_allclose(np.asarray(compiled(*given)), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(rd.interpret(prepared)["main"](*given)), wanted, rtol=1e-5)
    for place in (0, -1):
        bad = [given[0], given[1].copy(), *given[2:]]
        bad[1].reshape(-1)[place] = 100
        with pytest.raises(rd.RoundelError, match=f"{name}: index 100 at position"):
            compiled(*bad)
        with pytest.raises(rd.RoundelError, match=f"{name}: index 100 at position"):
            rd.interpret(prepared)["main"](*bad)


@pytest.mark.parametrize("name", CASES)
def test_programs_with_checks_print_and_parse(name):
    prepared = driver.prepare(CASES[name][0]("int64"), pipeline=UP_TO_CHECKS)
    text = prepared.script()
    assert from_source(text).script() == text


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 71])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_each_index_of_a_scatter_is_looked_at_wherever_it_lies(count, columns):
    """Indices are looked at in strips of tuples, vectors, and what remains of them; limits differ between columns."""
    limits = (9, 11, 7)[:columns]
    compiled = rd.compile(model("scatter_nd", [(limits, F), indices("int64", "k", columns), (("k",), F)], reduction="add"))
    rng = np.random.default_rng(count)
    x, u = rng.random(limits, np.float32), rng.random(count, np.float32)
    i = np.stack([rng.integers(-n, n, count) for n in limits], 1)
    wanted = x.copy()
    np.add.at(wanted, tuple(i.T), u)
    np.testing.assert_allclose(compiled(x, i, u), wanted, rtol=1e-5)
    for row in range(count):
        for column, n in enumerate(limits):
            wrong = i.copy()
            wrong[row, column] = (n, -n - 1, 2**62, -(2**63))[row % 4]
            with pytest.raises(rd.RoundelError, match=rf"at position \({row}, {column}\) is not in \[-{n}, {n}\)"):
                compiled(x, wrong, u)


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (16, 2), (17, 2), (9, 4), (3, 40), (2, 64), (5, 33)])
def test_rows_of_indices_of_a_known_size_are_looked_at_whole(rows, columns):
    compiled = rd.compile(model("scatter_elements", [((rows, columns), F), indices("int32", rows, columns), ((rows, columns), F)], axis=1))
    rng = np.random.default_rng(rows)
    x, u = (rng.random((rows, columns), np.float32) for _ in range(2))
    i = rng.permuted(np.tile(np.arange(columns, dtype=np.int32), (rows, 1)), axis=1)
    wanted = x.copy()
    np.put_along_axis(wanted, i, u, 1)
    np.testing.assert_array_equal(compiled(x, i, u), wanted)
    for row in range(rows):
        for column in range(columns):
            wrong = i.copy()
            wrong[row, column] = (columns, -columns - 1, 2**31 - 1)[column % 3]
            with pytest.raises(rd.RoundelError, match=rf"at position \({row}, {column}\)"):
                compiled(x, wrong, u)


def test_no_indices_at_all_change_nothing():
    compiled = rd.compile(CASES["scatter_elements"][0]("int64"))
    x = np.ones((3, 9), np.float32)
    np.testing.assert_array_equal(compiled(x, np.zeros((3, 0), np.int64), np.zeros((3, 0), np.float32)), x)


def test_what_no_element_can_be_taken_from_is_an_error():
    mod = CASES["take"][0]("int64")
    compiled = rd.compile(mod)
    assert np.asarray(compiled(np.zeros(0, np.float32), np.zeros(0, np.int64))).shape == (0,)
    with pytest.raises(rd.RoundelError, match=r"not in \[0, 0\)"):
        compiled(np.zeros(0, np.float32), np.zeros(1100, np.int64))


def test_rows_and_indices_with_several_users_are_checked_before():
    rows = model("take", [(("n", 64), F), indices("int64", "k")], axis=0)
    assert "index_flag" in list(driver.prepare(rows, pipeline=UP_TO_CHECKS))


def test_scatters_in_loops_stay_in_place():
    """A state that each iteration scatters into is not copied: its kernel overwrites it."""
    from onnx import TensorProto as P
    from onnx import helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("ScatterND", ["s", "i", "u"], ["t"]), helper.make_node("Identity", ["go"], ["on"])], "body",
        [value("n", P.INT64, []), value("go", P.BOOL, []), value("s", P.FLOAT, [1000])], [value("on", P.BOOL, []), value("t", P.FLOAT, [1000])])
    g = helper.make_graph([helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)], "g",
                          [value("count", P.INT64, []), value("x", P.FLOAT, [1000]), value("i", P.INT64, [100, 1]), value("u", P.FLOAT, [100])],
                          [value("y", P.FLOAT, [1000])])
    proto = helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)])
    prepared = driver.prepare(from_onnx(proto))
    assert any("_over_" in n for n in prepared)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float64"])
def test_elements_of_every_width_are_scattered(dtype):
    compiled = rd.compile(model("scatter_nd", [(("n",), dtype), indices("int32", "k", 1), (("k",), dtype)]))
    x, i = np.zeros(90).astype(dtype), np.random.default_rng(0).permutation(90)[:70, None].astype(np.int32)
    u = np.arange(1, 71).astype(dtype)
    wanted = x.copy()
    wanted[i[:, 0]] = u
    np.testing.assert_array_equal(np.asarray(compiled(x, i, u)), wanted)
    i[69] = 90
    with pytest.raises(rd.RoundelError, match="index 90 at position"):
        compiled(x, i, u)
