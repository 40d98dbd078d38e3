# SPDX-License-Identifier: Apache-2.0
"""Products by OpenBLAS: every transposition, batched, by vectors, of symbolic sizes, on as many threads as the model has."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import roundel as rd
from roundel import backends, driver
from roundel.backends import openblas
from roundel.builder import BlockBuilder
from roundel.driver import libraries
from roundel.ir import graph
from roundel.script import relax as R

pytestmark = pytest.mark.skipif(bool(openblas.LIBRARY.missing), reason=openblas.LIBRARY.missing)
rng = np.random.default_rng(0)


CASES = {
    "plain": ((7, 5), (5, 9), (None, None)),
    "left transposed": ((5, 7), (5, 9), ((1, 0), None)),
    "right transposed": ((7, 5), (9, 5), (None, (1, 0))),
    "both transposed": ((5, 7), (9, 5), ((1, 0), (1, 0))),
    "batched": ((3, 7, 5), (3, 5, 9), (None, None)),
    "batched, both transposed": ((2, 3, 5, 7), (2, 3, 9, 5), ((0, 1, 3, 2), (0, 1, 3, 2))),
    "one right side": ((2, 3, 7, 5), (5, 9), (None, None)),
    "one right side, left transposed": ((3, 5, 7), (5, 9), ((0, 2, 1), None)),
    "one left side": ((7, 5), (3, 5, 9), (None, None)),
    "a row": ((1, 5), (5, 9), (None, None)),
    "a column": ((700, 5), (5, 1), (None, None)),
    "several panels": ((1025, 33), (33, 9), (None, None)),
    "several panels, left transposed": ((33, 520), (33, 9), ((1, 0), None)),
}


def module(left, right, axes, dtype="float32", symbolic=None):
    """The product of two tensors of these shapes, each transposed by ``axes`` before; one size may be symbolic."""
    size = rd.te.size_var("n")
    params = [graph.Var(n, graph.TensorInfo(tuple(size if d == symbolic else d for d in shape), dtype)) for n, shape in zip("ab", (left, right), strict=True)]
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            sides = [p if a is None else bb.emit(R.permute_dims(p, a)) for p, a in zip(params, axes, strict=True)]
            out = bb.emit_output(R.matmul(*sides), "product")
        bb.emit_func_output(out)
    return bb.get()


def check(mod, left, right, axes, dtype, **options):
    a, b = (rng.standard_normal(s).astype(dtype) for s in (left, right))
    want = np.matmul(*(x if p is None else x.transpose(p) for x, p in zip((a, b), axes, strict=True)))
    model = rd.compile(mod, choices={"product": "openblas"}, **options)
    np.testing.assert_allclose(model(a, b), want, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-4 if dtype == "float32" else 1e-11)
    return model


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_products(case):
    for dtype in ("float32", "float64"):
        check(module(*case, dtype), *case, dtype)


@pytest.mark.parametrize("name", ["several panels", "several panels, left transposed", "one right side", "batched"])
def test_a_symbolic_size_and_two_threads(name):
    left, right, axes = CASES[name]
    check(module(left, right, axes, symbolic=max(left) if "panels" in name else left[0]), left, right, axes, "float32", threads=2)


def test_several_runs_at_once():
    left, right, axes = CASES["several panels"]
    mod = module(left, right, axes)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in (left, right))
    model = rd.compile(mod, choices={"product": "openblas"}, threads=2)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda _: model(a, b), range(32)):
            np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)


def test_what_it_cannot_compute_says_why():
    with pytest.raises(rd.RoundelError, match="openblas cannot be had"):
        rd.compile(module((4, 7, 5), (2, 1, 5, 9), (None, None)), choices={"product": "openblas"})
    with pytest.raises(rd.RoundelError, match="openblas cannot be had"):
        rd.compile(module((7, 5), (5, 9), (None, None), "float16"), choices={"product": "openblas"})


def test_transpositions_are_part_of_the_product_where_they_can_be():
    def left(axes, shape):
        script = driver.prepare(module(shape, (5, 9), (axes, None)), choices={"product": "openblas"}, pipeline=[libraries])["main"].script()
        return script.count("R.permute_dims")

    assert left((0, 2, 1), (3, 5, 7)) == 1, "in generated code alone, for machines without the library"
    assert left((1, 2, 0), (5, 7, 3)) == 1, "of other axes: before both"


def test_it_is_one_of_the_backends():
    assert "openblas" in backends.available()
