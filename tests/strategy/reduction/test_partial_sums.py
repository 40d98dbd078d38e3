# SPDX-License-Identifier: Apache-2.0
"""Long sums are as exact as the square root of their length allows: of numbers that are nearly the same, such as the pixels behind a
normalisation, additions one after another lose in proportion to the length."""

import numpy as np
import pytest

from roundel import te
from roundel.builder import BlockBuilder
from roundel.driver import build_module
from roundel.ir import graph
from roundel.ops import make

UNIT = 2.0**-24
REFERENCE = {"sum": np.sum, "mean": np.mean, "variance": np.var}


def _compiled(name, shape, axes):
    sizes = {d: te.size_var(d) for d in shape if isinstance(d, str)}
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(tuple(sizes.get(d, d) for d in shape), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(bb.emit(make(name, x, axis=axes)))
        bb.emit_func_output(result)
    return build_module(bb.get())["main"]


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape, axes, sizes", [
    ((1, 4, 32, 32, 16), [2, 3], [(1, 4, 32, 32, 16)]),  # pixels of blocked channels
    ((1, 8, 64, 64), [-1, -2], [(1, 8, 64, 64)]),
    ((4096, 40), [0], [(4096, 40)]),
    ((2, 1021, 96), [1], [(2, 1021, 96)]),               # no part divides it
    ((2, 1, 3000, 64), [1, 2], [(2, 1, 3000, 64)]),
    ((3, 400, 2, 16), [0, 1], [(3, 400, 2, 16)]),
    (("n", 48), [0], [(1, 48), (31, 48), (33, 48), (3000, 48)]),
    ((2, "n", "m", 16), [1, 2], [(2, 1, 3, 16), (2, 60, 70, 16)]),
])
def test_long_sums_of_numbers_that_are_nearly_the_same(name, shape, axes, sizes):
    run = _compiled(name, shape, axes)
    for size in sizes:
        x = (1 + 0.01 * np.random.default_rng(0).standard_normal(size)).astype("float32")
        exact = REFERENCE[name](x.astype("float64"), tuple(axes))
        assert np.linalg.norm(run(x) - exact) < 4 * UNIT * np.linalg.norm(exact), size


@pytest.mark.parametrize("shape", [(2, 2048, 64), (2, 300, 20, 64)])
def test_stages_after_a_long_sum(shape):
    """Deviations from a mean, with axes between it and the columns or without."""
    x = (1 + 0.01 * np.random.default_rng(0).standard_normal(shape)).astype("float32")
    np.testing.assert_allclose(_compiled("variance", shape, [1])(x), REFERENCE["variance"](x.astype("float64"), (1,)), rtol=1e-5)


def test_what_is_not_finite_is_summed_up_as_ever():
    x = np.ones((1024, 32), "float32")
    x[5, 1], x[700, 2], x[3, 3], x[900, 3] = np.nan, np.inf, np.inf, -np.inf
    got = _compiled("sum", x.shape, [0])(x)
    assert np.isnan(got[[1, 3]]).all() and got[2] == np.inf and (np.delete(got, [1, 2, 3]) == 1024).all()
