# SPDX-License-Identifier: Apache-2.0
"""Every rule against differences: the gradient of sum(weights * f(x)) in float64, by each operand, at random places."""

import numpy as np
import pytest

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.graph.gradient import gradient
from roundel.graph.gradient.rules import COMPOSITIONS, RULES
from roundel.ir import graph
from roundel.ops import make

ANY, POSITIVE, SMALL, ABOVE_1 = (-2.0, 2.0), (0.3, 2.0), (-0.8, 0.8), (1.2, 3.0)
UNARY = {
    **dict.fromkeys(["abs", "atan", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "negative", "asinh", "sigmoid", "sin", "sinh", "square",
    "tanh", "nn.relu",
                     "nn.celu", "nn.elu", "nn.gelu", "nn.gelu_tanh", "nn.hardsigmoid", "nn.hardswish", "nn.hardtanh", "nn.leakyrelu",
                     "nn.log_sigmoid", "nn.mish",
                     "nn.relu6", "nn.selu", "nn.shrink", "nn.silu", "nn.swish", "nn.softplus", "nn.softsign", "nn.thresholded_relu", "ceil", "floor",
                     "round", "sign",
                     "trunc"], ANY),
    **dict.fromkeys(["log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sqrt"], POSITIVE),
    **dict.fromkeys(["acos", "asin", "atanh", "tan"], SMALL), "acosh": ABOVE_1,
}
I = lambda *values: np.array(values, "int64")
CASES = [
    *((name, [(3, 4)], bounds, {}) for name, bounds in UNARY.items()),
    *((name, [(3, 4), (4,)], POSITIVE, {}) for name in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "log_add_exp", "atan2",
                                                       "floor_mod", "mod", "floor_divide", "trunc_divide")),
    ("nn.prelu_broadcast", [(3, 4), (3, 1)], ANY, {}), ("ewise_fma", [(3, 4)] * 3, ANY, {}), ("clip", [(3, 4), -0.5, 0.5], ANY, {}),
    ("where", [np.arange(12).reshape(3, 4) % 3 == 0, (3, 1), (4,)], ANY, {}),
    *((name, [(3, 4, 2)], POSITIVE, {"axis": axis, "keepdims": keep}) for name in (
        "sum", "mean", "variance", "std", "max", "min", "prod", "reduce_l1", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp", "reduce_sum_square")
      for axis, keep in ((None, False), ([0, 2], True), (-2, False))),
    ("prod", [np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])], ANY, {"axis": 1}),
    *(("cumsum", [(3, 4)], ANY, {"axis": axis, "exclusive": e}) for axis in (None, 0, -1) for e in (False, True)),
    *(("sort", [(3, 4)], ANY, {"axis": a, "descending": d}) for a in (0, -1) for d in (False, True)),
    *(("topk", [(3, 6), 2], ANY, {"axis": -1, "ret_type": kind}) for kind in ("both", "values")),
    ("median", [(3, 5)], ANY, {"axis": 1}),
    *((name, [(3, 4)], ANY, {"axis": a}) for name in ("nn.softmax", "nn.log_softmax") for a in (0, -1)),
    ("reshape", [(3, 4), graph.ShapeExpr((2, 6))], ANY, {}), ("flatten", [(3, 4)], ANY, {}), ("nn.batch_flatten", [(2, 3, 4)], ANY, {}),
    ("expand_dims", [(3, 4)], ANY, {"axis": [0, 2]}), ("squeeze", [(3, 1, 4)], ANY, {"axis": [1]}), ("broadcast_to", [(3, 1), graph.ShapeExpr((2, 3,
    4))], ANY, {}),
    ("permute_dims", [(2, 3, 4)], ANY, {"axes": [1, 2, 0]}), ("permute_dims", [(2, 3, 4)], ANY, {}), ("flip", [(3, 4)], ANY, {"axis": 1}),
    ("roll", [(3, 4)], ANY, {"shift": [1, -2], "axis": [0, 1]}), ("tril", [(4, 4)], ANY, {"k": 1}), ("triu", [(3, 4)], ANY, {}),
    ("depth_to_space", [(1, 8, 2, 3)], ANY, {"block_size": 2}), ("space_to_depth", [(1, 2, 4, 6)], ANY, {"block_size": 2}),
    ("repeat", [(3, 4)], ANY, {"repeats": 2, "axis": 1}), ("repeat", [(3, 4)], ANY, {"repeats": 2}), ("tile", [(3, 4), graph.ShapeExpr((2, 1, 2))], ANY, {}),
    ("concat", [[(3, 2), (3, 4)]], ANY, {"axis": -1}), ("stack", [[(3, 2), (3, 2)]], ANY, {"axis": 1}),
    ("split", [(3, 7)], ANY, {"indices_or_sections": [2, 5], "axis": 1}),
    ("strided_slice", [(5, 7), (0, 1), (1, -1), (4, 0), (2, -2)], ANY, {}), ("strided_slice", [(5, 7), (1,), (2,), (100,)], ANY, {}),
    ("slice_scatter", [(6, 3), (2, 3), 1, 5, 2], ANY, {"axis": 0}), ("nn.pad", [(3, 4), (0, 1, 2, 0)], ANY, {}),
    *(("take", [(5, 4, 3), index], ANY, {"axis": axis}) for axis, index in (
        (0, I(1, 1, 4)), (1, I(0, 3).reshape(1, 2)), (2, I(2, 0)), (None, I(7, 7, 59)), (-1, np.array(2)))),
    ("take", [(5, 4), I(-1, 7, 2)], ANY, {"axis": 0, "mode": "clip"}), ("take", [(5, 4), I(-1, 7, 2)], ANY, {"axis": 0, "mode": "wrap"}),
    ("gather_elements", [(3, 4), np.array([[0, 2, 0, 1], [0, 2, 2, 1]])], ANY, {"axis": 0}), ("gather_nd", [(3, 4), np.array([[0, 1], [0, 1], [2,
    3]])], ANY, {}),
    ("gather_nd", [(3, 4), np.array([[0], [0]])], ANY, {}),
    *(("scatter_elements", [(3, 4), np.array([[0, 1], [2, 0]]), (2, 2)], ANY, {"axis": 0, "reduction": how}) for how in ("update", "add")),
    *(("scatter_nd", [(3, 4), np.array([[0], [2]]), (2, 4)], ANY, {"reduction": how}) for how in ("update", "add")),
    ("astype", [(3, 4)], ANY, {"dtype": "float64"}), ("nn.dropout", [(3, 4)], ANY, {}),
    *(("matmul", list(shapes), ANY, {}) for shapes in (
        [(3, 4), (4, 5)], [(4,), (4,)], [(4,), (2, 4, 3)], [(2, 3, 4), (4,)], [(2, 1, 3, 4), (5, 4, 2)])),
    ("linear", [(2, 3, 4), (5, 4), (5,)], ANY, {}), ("outer", [(3,), (4,)], ANY, {}), ("einsum", [[(2, 3), (3, 4)]], ANY, {"subscripts": "ij,jk->ki"}),
    ("einsum", [[(2, 3), (2, 4)]], ANY, {"subscripts": "ij,ik->i"}),
    ("nn.conv2d", [(2, 4, 7, 6), (6, 2, 3, 2)], ANY, {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2], "groups": 2}),
    ("nn.conv2d", [(1, 3, 8, 8), (3, 1, 3, 3)], ANY, {"padding": 1, "groups": 3, "strides": 3}), ("nn.conv1d", [(2, 3, 9), (4, 3, 3)], ANY,
    {"strides": 2, "dilation": 2}),
    ("nn.conv3d", [(1, 2, 4, 4, 3), (2, 2, 2, 2, 2)], ANY, {"padding": 1}),
    ("nn.conv2d_transpose", [(1, 4, 3, 4), (4, 3, 3, 2)], ANY, {"strides": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ("nn.conv1d_transpose", [(2, 3, 5), (3, 2, 3)], ANY, {"strides": 2, "dilation": 2}), ("nn.conv3d_transpose", [(1, 2, 2, 2, 2), (2, 1, 2, 2, 2)], ANY, {}),
    *((f"nn.avg_pool{len(shape) - 2}d", [shape], ANY, {"pool_size": 3, "strides": 2, "padding": 1, "ceil_mode": ceil, "count_include_pad": whole})
      for shape in ((1, 2, 8), (1, 2, 6, 5), (1, 1, 4, 4, 4)) for ceil in (False, True) for whole in (False, True)),
    *((f"nn.max_pool{len(shape) - 2}d", [shape], ANY, {"pool_size": 3, "strides": 2, "padding": 1, "ceil_mode": ceil, "dilation": d})
      for shape in ((1, 2, 8), (1, 2, 6, 7), (1, 1, 5, 5, 5)) for ceil, d in ((False, 1), (True, 1), (False, 2))),
    ("nn.adaptive_avg_pool1d", [(1, 2, 7)], ANY, {"output_size": [3]}), ("nn.adaptive_avg_pool2d", [(1, 2, 5, 4)], ANY, {"output_size": [1, 3]}),
    ("nn.adaptive_avg_pool3d", [(1, 1, 3, 4, 2)], ANY, {"output_size": [2, 2, 2]}),
    ("nn.layer_norm", [(2, 3, 4), (3, 4), (3, 4)], ANY, {"axes": [1, 2]}), ("nn.rms_norm", [(2, 3, 4), (4,)], ANY, {"axes": [-1]}),
    ("nn.group_norm", [(2, 4, 3), (4,), (4,)], ANY, {"num_groups": 2, "channel_axis": 1, "axes": [2]}),
    ("nn.instance_norm", [(2, 3, 4), (3,), (3,)], ANY, {"channel_axis": 1, "axes": [2]}), ("nn.l2_normalize", [(2, 3)], ANY, {"axis": -1}),
    *(("nn.batch_norm", [(3, 2, 4), (2,), (2,), (2,), (2,)], POSITIVE, {"training": t}) for t in (False, True)),
    ("nn.prelu", [(2, 3, 4), (3,)], ANY, {"axis": 1}), ("nn.attention", [(1, 3, 2, 4), (1, 5, 2, 4), (1, 5, 2, 3)], ANY, {}),
    *(("nn.nll_loss", [(4, 3), I(0, 2, 1, -100), (3,)], POSITIVE, {"reduction": how}) for how in ("mean", "sum", "none")),
    ("nn.cross_entropy_with_logits", [(4, 3), (4, 3)], ANY, {}), ("index_tensor", [(3, 4), [I(0, 0, 2), I(1, 1, 3)]], ANY, {}),
    ("index_put", [(3, 4), [I(0, 2), I(1, 3)], (2,)], ANY, {"accumulate": True}),
]


WITH_BOUNDS = ("strided_slice", "nn.pad")


def program(name, spec, bounds, attrs, seed=0):
    """The module of a scalar made of an operator, and values of its parameters."""
    rng, params, values = np.random.default_rng(seed), [], []

    def operand(part):
        if isinstance(part, list):
            return graph.Tuple(tuple(map(operand, part)))
        if isinstance(part, np.ndarray) and part.dtype != "float64":
            return graph.Constant.of(part)
        if isinstance(part, np.ndarray) or (isinstance(part, tuple) and not (params and name in WITH_BOUNDS)):
            values.append(part if isinstance(part, np.ndarray) else rng.uniform(*bounds, part))
            params.append(graph.Var(f"x{len(params)}", graph.TensorInfo(values[-1].shape, "float64")))
            return params[-1]
        return part

    args = [operand(part) for part in spec]
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit(make(name, *args, **attrs))
            fields = [out] if isinstance(out.sinfo, graph.TensorInfo) else [bb.emit(graph.TupleGetItem(out, k)) for k in range(len(out.sinfo.fields))]
            total = None
            for f in fields:
                if f.sinfo.dtype.is_float:
                    weights = graph.Constant.of(rng.uniform(0.5, 1.5, [int(d.value) for d in f.sinfo.shape]))
                    part = bb.emit(make("sum", make("multiply", f, weights)))
                    total = part if total is None else bb.emit(make("add", total, part))
            total = bb.emit_output(total)
        bb.emit_func_output(total)
    return bb.finalize(), values


def differences(f, values, k, step=1e-6):
    """The gradient by the k-th operand as differences of values on both sides."""
    found = np.zeros_like(values[k])
    for at in np.ndindex(found.shape):
        sides = []
        for way in (step, -step):
            moved = [v.copy() for v in values]
            moved[k][at] += way
            sides.append(float(f(*moved)))
        found[at] = (sides[0] - sides[1]) / (2 * step)
    return found


@pytest.mark.parametrize("name, spec, bounds, attrs", CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)])
def test_the_gradient_is_what_differences_tell(name, spec, bounds, attrs):
    mod, values = program(name, spec, bounds, attrs)
    adjoint = gradient(mod, "main")
    result, found = rd.interpret(adjoint)["main_adjoint"](*values)
    plain = rd.interpret(mod)["main"]
    np.testing.assert_allclose(result, plain(*values))
    for k, g in enumerate(found):
        np.testing.assert_allclose(g, differences(plain, values, k), rtol=2e-4, atol=1e-6)


def test_every_rule_has_a_case():
    made = {"call_tir_with_grad"}  # of functions that users give: test_reverse.py
    constant = {"zeros_like", "ones_like", "full_like", "argmax", "argmin", "argsort", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
                "isnan", "isinf", "isfinite", "shape_of", "size", "one_hot"}
    assert {*RULES, *COMPOSITIONS} - {c[0] for c in CASES} == made | constant
