# SPDX-License-Identifier: Apache-2.0
"""Operators whose sizes follow from others by arithmetic: a kernel knows how many there are, not of what that is computed."""

import numpy as np
import pytest

import roundel as rd
from roundel import backends
from roundel.relax.dpl import is_op, wildcard
from roundel.script import ir as I
from roundel.script import relax as R

SOURCE = """
#include <math.h>
#include <stdint.h>
void rows_of_softmax(const float *x, float *y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += y[r * n + i] = expf(x[r * n + i]);
    for (int64_t i = 0; i < n; i++) y[r * n + i] /= sum;
  }
}
int32_t are_many(int64_t rows) { return rows > 6; }
"""


@I.ir_module
class Halved:
    @R.function
    def main(x: R.Tensor(("b", "w", 16), "float32")):
        with R.dataflow():
            y = R.strided_slice(x, axes=[1], begin=[0], end=[1000000], strides=[2])
            soft = R.nn.softmax(y, axis=-1)
            out = R.multiply(soft, y)
            R.output(out)
        return out


@I.ir_module
class Joined:
    @R.function
    def main(x: R.Tensor(("b", "past", 16), "float32"), z: R.Tensor(("b", "new", 16), "float32")):
        with R.dataflow():
            y = R.concat((x, z), axis=1)
            soft = R.nn.softmax(y, axis=-1)
            out = R.add(soft, y)
            R.output(out)
        return out


@I.ir_module
class Paired:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")):
        with R.dataflow():
            y = R.concat((x, x), axis=0)
            pairs = R.reshape(y, (-1, 32))
            R.output(pairs)
        return pairs


def in_c(guard):
    def implement(c):
        *rows, n = c.operands[0].shape
        count = rows[0] * rows[1]
        return backends.native(c, "rows_of_softmax", count, n, source=SOURCE, guard=("are_many", count) if guard else ())

    return implement


def in_python(c):
    def soft(x, out):
        e = np.exp(x)
        out[:] = e / e.sum(-1, keepdims=True)

    return backends.python(soft)


@pytest.mark.parametrize("implement", [in_c(False), in_c(True), in_python], ids=["C", "guarded", "Python"])
@pytest.mark.parametrize("module, widths", [(Halved, [1, 4, 9]), (Joined, [1, 4, 9])], ids=["halved", "joined"])
def test_a_kernel_gets_sizes_that_are_computed_of_others(registered, module, widths, implement):
    registered(backends.Backend("mine", [("mine.softmax", is_op("relax.nn.softmax")(wildcard()))], implement))
    model = rd.compile(module, choices={"soft": "mine"}, verify=True)
    rng = np.random.default_rng(0)
    for w in widths:
        inputs = [rng.standard_normal((2, w + k, 16), dtype=np.float32) for k in range(len(module["main"].params))]
        np.testing.assert_allclose(model(*inputs), rd.interpret(module)["main"](*inputs), rtol=1e-5, atol=1e-6)


def test_a_size_that_a_kernel_cannot_know_is_named(registered):
    """Of 2n rows it would have to make n."""
    registered(backends.Backend("mine", [("mine.reshape", is_op("relax.reshape")(wildcard(), wildcard()))], in_python))
    with pytest.raises(rd.RoundelError, match="n cannot be told from the shapes of its operands"):
        rd.compile(Paired, choices={"pairs": "mine"})
