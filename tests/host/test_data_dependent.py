# SPDX-License-Identifier: Apache-2.0
"""Shapes that depend on data: inside one artifact, sizes checked."""

import numpy as np
import pytest

from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir.errors import CallError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

from ..graph.running import agree, lowered

RNG = np.random.default_rng(1)


@I.ir_module
class NonZero:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        with R.dataflow():
            k = T.int64()
            at = R.nonzero(x)
            here = R.match_cast(at, R.Tensor((2, k), "int64"))
            rows = R.permute_dims(here)
            values = R.gather_nd(x, rows)
            twice = R.multiply(values, R.const(2.0, "float32"))
            R.output(rows, twice)
        return (rows, twice)


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (0, 3), (7, 3)])
def test_nonzero(shape):
    x = RNG.standard_normal(shape).astype("float32") * (RNG.random(shape) < 0.4)
    agree(NonZero, (x,), (x * 0,), (x + 10,), want=lambda x: (np.argwhere(x), 2 * x[x != 0]))


def test_nothing_has_to_be_known_ahead():
    """Without match_cast inference goes on when the count has a name."""

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "int32")):
            with R.dataflow():
                at = R.nonzero(x)
                y = R.add(at, at)
                R.output(y)
            return y

    agree(Mod, (np.array([0, 3, 0, 1], "int32"),), (np.zeros(2, "int32"),))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(ordered, axis):
    from roundel.builder import BlockBuilder
    from roundel.ir import Var, graph
    from roundel.ir.dtype import INT64
    from roundel.ops import make

    bb = BlockBuilder()
    x = graph.Var("x", graph.TensorInfo((Var("n", INT64, True), 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            call = make("unique", x, sorted=ordered, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            out = bb.emit_output(call)
        bb.emit_func_output(out)
    arrays = [RNG.integers(0, 3, (n, 3)).astype("float32") for n in (1, 5, 8)]
    arrays[1][2] = arrays[1][4]
    arrays[2][0, 0] = arrays[2][4, 1] = np.nan
    agree(bb.get(), *((a,) for a in arrays))


@I.ir_module
class Shapes:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), sizes: R.Tensor((2,), "int64")):
        n = T.int64()
        with R.dataflow():
            a = T.int64()
            b = T.int64()
            s = R.tensor_to_shape(sizes)
            t = R.match_cast(s, R.Shape([a, b]))
            y = R.match_cast(x, R.Tensor((a * b,), "float32"))
            z = R.reshape(y, t)
            w = R.sum(z, axis=1)
            big = R.broadcast_to(R.reshape(w, R.shape([a, 1])), R.shape([a, n]))
            out = R.exp(big)
            R.output(out)
        return out


def test_shapes_from_tensors():
    def want(x, sizes):
        return np.exp(np.broadcast_to(x.reshape(sizes).sum(1)[:, None], (sizes[0], x.size)))

    x = RNG.standard_normal(12).astype("float32")
    agree(Shapes, *((x, np.array(s)) for s in [(3, 4), (12, 1), (1, 12)]), (x[:0], np.array([0, 5])), want=want)


@pytest.mark.parametrize("sizes", [(3, 5), (-3, -4), (2**40, 2**40), (2**32, 2**32)])
def test_sizes_that_do_not_fit_are_errors(sizes):
    x = np.ones(12, "float32")
    native = build_module(Shapes)
    for rt in (native, interpret(lowered(Shapes))):
        with pytest.raises(Exception, match=r"match_cast|negative|too large|no memory"):
            rt["main"](x, np.array(sizes))
    np.testing.assert_allclose(native["main"](x * 0, np.array([3, 4])), np.ones((3, 12)))


def test_a_wrong_size_names_the_dimension_and_both_values():
    with pytest.raises((CallError, RuntimeError), match=r"dimension 0 .*12.*15"):
        build_module(Shapes)["main"](np.ones(12, "float32"), np.array([3, 5]))


@pytest.mark.parametrize("center", [False, True])
def test_non_maximum_suppression(center):
    from roundel.builder import BlockBuilder
    from roundel.ir import Var, graph
    from roundel.ir.dtype import INT64
    from roundel.ops import make
    from roundel.ops.data_dependent import counted, prefix

    n = Var("n", INT64, True)
    bb = BlockBuilder()
    infos = [((2, n, 4), "float32"), ((2, 3, n), "float32"), ((1,), "int64"), ((1,), "float32"), ((1,), "float32")]
    params = [graph.Var(f"x{k}", graph.TensorInfo(s, d)) for k, (s, d) in enumerate(infos)]
    with bb.function("main", params):
        with bb.dataflow():
            found = bb.emit(make("vision.all_class_non_max_suppression", *params, center=center))
            k = counted(bb, bb.emit(graph.TupleGetItem(found, 1)), n * 6, "k")
            out = bb.emit_output(prefix(bb, bb.emit(graph.TupleGetItem(found, 0)), k))
        bb.emit_func_output(out)
    for size in (0, 1, 9, 40):
        boxes = RNG.random((2, size, 4)).astype("float32")
        scores = RNG.random((2, 3, size)).astype("float32").round(1)  # of equal ones, the first box
        agree(bb.get(), (boxes, scores, np.array([4]), np.array([0.3], "float32"), np.array([0.2], "float32")))
