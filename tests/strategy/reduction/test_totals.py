# SPDX-License-Identifier: Apache-2.0
"""Reductions of everything to one number run in vectors; sizes that only occur in a product are found again."""

import numpy as np
import pytest

from roundel import te
from roundel.builder import BlockBuilder
from roundel.driver import build_module, prepare
from roundel.ir import graph
from roundel.ops import make

RNG = np.random.default_rng(0)


def _module(shape):
    sizes = {d: te.size_var(d) for d in shape if isinstance(d, str)}
    x = graph.Var("x", graph.TensorInfo(tuple(sizes.get(d, d) for d in shape), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            emit = lambda *a, **k: bb.emit(make(*a, **k))
            results = emit("sum", x), emit("min", x), emit("maximum", emit("max", x), np.float32(0)), emit("mean", emit("multiply", x, x))
            results = [bb.emit_output(r) for r in results]
        bb.emit_func_output(graph.Tuple(tuple(results)))
    return bb.get()


@pytest.mark.parametrize("shape, sizes", [((128, 33), [(128, 33)]), (("n", "m"), [(1, 1), (5, 7), (100, 129), (1500, 401)]), ((1,), [(1,)]),
    ((1, "n", 3), [(1, 1, 3), (1, 90000, 3)]), ((701, 1501), [(701, 1501)])])  # the last two in parts
def test_numbers_of_a_whole_tensor(shape, sizes):
    mod = _module(shape)
    rules = {f.attrs["scheduled"] for f in prepare(mod).functions.values() if "scheduled" in f.attrs}
    assert rules == {"totals"}
    main = build_module(mod)["main"]
    for size in sizes:
        x = RNG.standard_normal(size).astype("float32")
        wide = x.astype("float64")
        near = max(1e-4, 1e-8 * np.abs(wide).sum())  # what a sum of both signs may be off goes by its terms, not by what is left
        np.testing.assert_allclose(main(x), [wide.sum(), x.min(), max(x.max(), 0), (wide**2).mean()], rtol=1e-5, atol=near)
        x.reshape(-1)[-1] = np.nan
        assert np.isnan(main(x)).all()


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("shape, axis", [((1, 300001), 1), ((1, 300001, 1), 1), ((77,), 0)])
def test_where_the_extreme_of_a_row_is(name, shape, axis):
    """In parts too, where a row is all there is."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(bb.emit(make(name, x, axis=axis)))
        bb.emit_func_output(result)
    assert {f.attrs["scheduled"] for f in prepare(bb.get()).functions.values() if "scheduled" in f.attrs} == {"totals"}
    main, data = build_module(bb.get())["main"], RNG.standard_normal(shape).astype("float32")
    for change in ({}, {3: np.nan, 70: np.nan}, {5: np.inf, 60: np.inf, 61: -np.inf, 72: -np.inf}):
        for place, value in change.items():
            data.reshape(-1)[place] = value
        np.testing.assert_array_equal(main(data), getattr(np, name)(data, axis))
        data = np.nan_to_num(data)
