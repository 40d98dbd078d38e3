# SPDX-License-Identifier: Apache-2.0
"""Mixed precision asked for by name: which operators compute in 16 bits, and that types at the ends and results stay."""

import numpy as np
import pytest

import roundel as rd
from roundel.graph.algorithms.mixed_precision import mixed_precision
from roundel.ir.errors import OptionError
from roundel.script import ir as I
from roundel.script import relax as R


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((2, 3, 8, 8), "float32"), k: R.Tensor((4, 3, 3, 3), "float32"), w: R.Tensor((144, 5), "float32")):
        with R.dataflow():
            c = R.nn.relu(R.nn.conv2d(x, k))
            f = R.reshape(R.add(c, R.const(1.0, "float32")), (2, 144))
            s = R.nn.softmax(R.matmul(f, w))
            R.output(s)
        return s


RNG = np.random.default_rng(0)
VALUES = [RNG.standard_normal(shape).astype("float32") for shape in ((2, 3, 8, 8), (4, 3, 3, 3), (144, 5))]
VALUES[2] /= 20


def _types(mod):
    return [(str(b.value.op.name), str(b.value.sinfo.dtype)) for b in mod["main"].body.bindings if hasattr(b.value, "op") and b.value.op.name != "astype"]


@pytest.mark.parametrize("dtype, limit", [("float16", 4e-3), ("bfloat16", 4e-2)])
@pytest.mark.parametrize("narrow_results", [False, True])
def test_results_are_those_of_float32_within_the_narrow_type(dtype, limit, narrow_results):
    mod = mixed_precision(Net, dtype, dtype if narrow_results else "float32")
    plain = rd.interpret(Net)["main"](*VALUES)
    for run in (rd.interpret(mod), rd.build(mod)):
        found = run["main"](*VALUES)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, plain, atol=limit)


def test_products_take_narrow_operands_and_give_wide_results():
    mod = mixed_precision(Net)
    products = [b.value for b in mod["main"].body.bindings if b.value.op.name in ("matmul", "nn.conv2d")]
    assert all(a.sinfo.dtype == "float16" for p in products for a in p.args[:2]) and all(t == "float32" for _, t in _types(mod))


def test_what_follows_narrow_results_is_narrow_until_an_operator_that_would_lose():
    assert dict(_types(mixed_precision(Net, "float16", "float16"))) == {
        "nn.conv2d": "float16", "nn.relu": "float16", "add": "float16", "reshape": "float16", "matmul": "float16", "nn.softmax": "float32"}


def test_named_inputs_are_narrow_parameters():
    mod = mixed_precision(Net, inputs=["k", "w"])
    assert [str(p.sinfo.dtype) for p in mod["main"].params] == ["float32", "float16", "float16"]
    assert sum(b.value.op.name == "astype" for b in mod["main"].body.bindings) == 2
    found = rd.interpret(mod)["main"](VALUES[0], *(v.astype("float16") for v in VALUES[1:]))
    np.testing.assert_allclose(found, rd.interpret(Net)["main"](*VALUES), atol=4e-3)


def test_other_types_and_names_are_refused():
    with pytest.raises(OptionError, match="float16 with results of bfloat16"):
        mixed_precision(Net, "float16", "bfloat16")
    with pytest.raises(OptionError, match="int8"):
        mixed_precision(Net, "int8", "int8")
    with pytest.raises(OptionError, match="no function has a parameter weights"):
        mixed_precision(Net, inputs=["weights"])
