# SPDX-License-Identifier: Apache-2.0
"""Tensors that products read in 16 bits are stored so: which they are, and what that does to kernels and to results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from roundel.driver import prepare
from roundel.graph.algorithms.narrow_results import narrow_results
from roundel.graph.algorithms.precision import precision
from roundel.interp import interpret
from roundel.ir import graph, options
from roundel.ops import make
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(0)
TARGET = Target("znver4")
WEIGHTS = [graph.Constant.of(RNG.standard_normal((32, 32)).astype(np.float32) / 8) for _ in range(3)]


def chain(results=()):
    """Two layers, each with what it got added; ``results``: which of the tensors inside come out too."""
    def body(bb, x):
        made = [x]
        for weight in WEIGHTS[:2]:
            product = bb.emit(make("matmul", made[-1], weight))
            made.append(bb.emit(make("nn.relu", bb.emit(make("add", product, made[-1])))))
        last = bb.emit(make("matmul", made[-1], WEIGHTS[2]))
        return graph.Tuple((last, *(made[k] for k in results))) if results else last

    return function([graph.TensorInfo((8, 32), "float32")], body)


def normalised(before):
    """Layers that normalise the sums that they make, or what they read."""
    scale = graph.Constant.of(np.ones(32, np.float32))
    normal = lambda bb, x: bb.emit(make("nn.layer_norm", x, scale, scale))

    def body(bb, x):
        for weight in WEIGHTS:
            read = normal(bb, x) if before else x
            x = bb.emit(make("add", bb.emit(make("matmul", read, weight)), x))
            x = x if before else normal(bb, x)
        return x

    return function([graph.TensorInfo((8, 32), "float32")], body)


def narrowed(mod):
    with options.override(precision="bfloat16"):
        return narrow_results(precision(mod.replace(attrs=mod.attrs | {"target": TARGET})))


def conversions(mod):
    return [(str(b.value.args[0].sinfo.dtype), str(b.value.sinfo.dtype)) for block in mod["main"].body.blocks for b in block.bindings
            if getattr(getattr(b.value, "op", None), "name", "") == "astype"]


@pytest.mark.parametrize("results, widened", [((), 1), ((1,), 0), ((2,), 1)], ids=["inside", "the one that is added", "another"])
def test_what_is_read_beside_a_product_is_widened_again_unless_it_is_a_result(results, widened):
    made = conversions(narrowed(chain(results)))
    assert made.count(("float32", "bfloat16")) == 3 and made.count(("bfloat16", "float32")) == widened  # the input's sum reads it as it came


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_what_is_added_to_sums_that_are_normalised_is_not_rounded(before):
    made = conversions(narrowed(normalised(before)))
    assert made.count(("float32", "bfloat16")) == 3 and ("bfloat16", "float32") not in made


def test_results_are_those_of_rounded_sums():
    x = RNG.standard_normal((8, 32)).astype(np.float32)
    made = interpret(narrowed(chain()))["main"](x)
    rounded = lambda a: a.astype(ml_dtypes.bfloat16).astype(np.float64)
    first, second, third = (rounded(w.data.numpy()) for w in WEIGHTS)
    one = np.maximum(rounded(x) @ first + x, 0)
    two = np.maximum(rounded(one) @ second + rounded(one), 0)
    np.testing.assert_allclose(made, rounded(two) @ third, rtol=1e-2, atol=2e-2)


def test_nothing_changes_where_float32_is_asked_for():
    mod = chain()
    assert narrow_results(mod) is mod


def test_a_residual_is_widened_in_the_kernel_that_adds_it():
    with options.override(precision="bfloat16"):
        made = prepare(chain(), target=TARGET)
    kernels = [f for _, f in made.items() if f.attrs.get("scheduled")]
    assert [f.attrs["scheduled"] for f in kernels].count("elementwise") == 1 and len(kernels) == 4, [f.attrs["scheduled"] for f in kernels]
