# SPDX-License-Identifier: Apache-2.0
"""Hot sizes get code of their own in the same artifact; results and checks stay those of the general code."""

import numpy as np
import pytest

import roundel as rd
from roundel.driver import prepare
from roundel.host.specialize import specialize
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import OptionError
from roundel.ops import make

from ..graph.functions import function

RNG = np.random.default_rng(3)
WEIGHT = RNG.standard_normal((24, 40)).astype("float32")
HOT = [{"s": 16}, {"b": 1, "s": 3}]


def _module():
    b, s = (tir.Var(name, INT64, True) for name in "bs")

    def body(bb, x):
        product = bb.emit(make("nn.relu", bb.emit(make("matmul", x, graph.Constant.of(WEIGHT)))))
        return graph.Tuple((product, bb.emit(make("sum", product, axis=(1,)))))

    return function([graph.TensorInfo((b, s, 24), "float32")], body)


@pytest.mark.parametrize("size", [(1, 16), (3, 16), (1, 3), (2, 3), (5, 7), (0, 16), (2, 0)])
def test_every_size_gives_the_same(size):
    mod = specialize(_module(), HOT)
    x = RNG.standard_normal((*size, 24)).astype("float32")
    want = np.maximum(x @ WEIGHT, 0)
    for run in (rd.interpret(mod), rd.build(mod)):
        product, total = run["main"](x)
        np.testing.assert_allclose(product, want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(total, want.sum(1), rtol=1e-4, atol=1e-3)


def test_the_sizes_are_numbers_inside_and_results_are_made_in_place():
    host = prepare(specialize(_module(), HOT))["main"].script()
    assert "if s == 16:" in host and "if b == 1 and s == 3:" in host
    assert "copy_bytes" not in host and "arena" not in host


def test_modules_print_and_parse():
    mod = specialize(_module(), HOT)
    assert rd.ir.structural_equal(rd.script.parse(mod.script()), mod)


def test_nothing_hot_changes_nothing_and_unknown_names_are_refused():
    mod = _module()
    assert specialize(mod, []) is mod
    with pytest.raises(OptionError, match="no symbolic dimension 'length'"):
        specialize(mod, [{"length": 5}])
    with pytest.raises(OptionError, match="'length' is fixed to 3, so no sizes of it can be hot"):
        specialize(mod, [{"length": 5}], {"length": 3})
