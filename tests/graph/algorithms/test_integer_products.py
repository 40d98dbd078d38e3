# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers: what is recognised, and that the sums are exact."""

import platform
import re
from itertools import pairwise

import numpy as np
import pytest

from roundel.build.inspect import inspect
from roundel.driver import LOWER, OPTIMIZE, build_module, prepare
from roundel.graph.algorithms.integer_products import _Products, integer_products, quantised_products
from roundel.interp import interpret
from roundel.ir import IRModule, Var, graph
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.passes import run
from roundel.target import Target

from ..functions import calls, function, same_results
from ..running import agree

RNG = np.random.default_rng(0)
WITH = Target({"kind": "llvm", "mcpu": "znver4"})
M = Var("m", INT64, True)


def _weight(k, n):
    return graph.Constant.of(RNG.integers(-128, 128, (k, n)).astype(np.int32))


def _product(weight, zero=None, dtype="uint8"):
    def body(bb, x):
        wide = bb.emit(make("astype", x, dtype="int32"))
        wide = wide if zero is None else bb.emit(make("subtract", wide, zero))
        return make("multiply", bb.emit(make("astype", bb.emit(make("matmul", wide, weight)), dtype="float32")), np.float32(0.5))

    return body


def _has_narrow_product(mod):
    made = integer_products(mod.replace(attrs=mod.attrs | {"target": WITH}))
    return any(isinstance(b.value, graph.Call) and getattr(b.value.op, "name", "") == "matmul" and b.value.args[0].sinfo.dtype == "uint8"
               for b in made["main"].body.bindings)


def _numbers(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zero", [None, np.int32(7), np.arange(5, dtype=np.int32)[:, None]])
def test_exact_sums(dtype, zero):
    zero = None if zero is None else graph.Constant.of(zero)
    mod = function([graph.TensorInfo((5, 24), dtype)], _product(_weight(24, 19), zero, dtype))
    assert _has_narrow_product(mod)
    same_results(mod, run(mod.replace(attrs=mod.attrs | {"target": WITH}), [integer_products]), _numbers(dtype, 5, 24), rtol=0, atol=0)


def test_compiled_at_many_sizes():
    for k, n in ((4, 1), (64, 40)):
        mod = function([graph.TensorInfo((M, k), "uint8")], _product(_weight(k, n), graph.Constant.of(np.int32(128))))
        agree(mod, *((_numbers("uint8", m, k),) for m in (1, 30)))
    mod = function([graph.TensorInfo((2, 3, 260), "int8")], _product(_weight(260, 48), None, "int8"))
    agree(mod, (_numbers("int8", 2, 3, 260),))


def test_whole_floats_become_bytes():
    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        whole = emit("minimum", emit("maximum", emit("round", x), np.float32(0)), np.float32(255))
        return emit("matmul", emit("astype", whole, dtype="int32"), _weight(8, 4))

    mod = function([graph.TensorInfo((3, 8), "float32")], body)
    assert _has_narrow_product(mod)
    agree(mod, (RNG.uniform(-50, 300, (3, 8)).astype("float32"),))


def test_what_stays_wide():
    large = graph.Constant.of(RNG.integers(-300, 300, (8, 4)).astype(np.int32))
    odd = function([graph.TensorInfo((5, 7), "uint8")], _product(_weight(7, 4)))
    columns = graph.Constant.of(np.arange(8, dtype=np.int32))
    eight = [graph.TensorInfo((5, 8), "uint8")]
    for mod in (odd, function(eight, _product(large)), function(eight, _product(_weight(8, 4), columns))):
        assert not _has_narrow_product(mod)
        agree(mod, (_numbers("uint8", 5, mod["main"].params[0].sinfo.shape[1].value),))
    old = Target({"kind": "llvm", "mcpu": "haswell"})
    mod = function([graph.TensorInfo((5, 8), "uint8")], _product(_weight(8, 4)))
    assert calls(integer_products(mod.replace(attrs=mod.attrs | {"target": old}))) == calls(mod)


def _dequantised(emit, value, zero, scale, axis=None):
    """DequantizeLinear as it is imported."""
    zero, scale = (v if axis is None else v.reshape((-1, 1) if axis == 0 else (1, -1)) for v in (zero, scale))
    wide = emit("subtract", emit("astype", value, dtype="int32"), graph.Constant.of(zero.astype(np.int32)))
    return emit("multiply", emit("astype", wide, dtype="float32"), graph.Constant.of(scale))


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_bytes_of_another_type_than_the_instruction_takes_are_moved(kind):
    """A product that takes bytes as they are, on a machine whose instruction takes unsigned data: twice as fast as one of 16-bit numbers."""
    weight = graph.Constant.of(_numbers(kind, 64, 48))
    mod = function([graph.TensorInfo((5, 64), "int8")], lambda bb, x: bb.emit(make("matmul", x, weight, out_dtype="int32")))
    made = integer_products(mod.replace(attrs={"target": Target("znver4")}))
    product = next(b.value for b in made["main"].body.bindings if getattr(b.value.op, "name", "") == "matmul")
    assert [str(a.sinfo.dtype) for a in product.args] == ["uint8", "int8"]
    x = _numbers("int8", 5, 64)
    np.testing.assert_array_equal(interpret(made)["main"](x), x.astype(np.int32) @ weight.data.numpy().astype(np.int32))


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_dequantised_matrices_sum_integers(turned):
    k, n = 12, 20

    def body(bb, x):
        emit = lambda *a, **kw: bb.emit(make(*a, **kw))
        scales = RNG.uniform(0.001, 0.01, n).astype(np.float32)
        w = graph.Constant.of(_numbers("int8", n, k) // 2 if turned else _numbers("int8", k, n) // 2)
        weight = _dequantised(emit, w, np.zeros(n, np.int8), scales, 0 if turned else 1)
        return emit("matmul", _dequantised(emit, x, np.uint8(100), np.float32(0.02)), emit("permute_dims", weight) if turned else weight)

    mod = function([graph.TensorInfo((M, k), "uint8")], body)
    made = quantised_products(mod.replace(attrs=mod.attrs | {"target": WITH}))
    products = [b.var for b in made["main"].body.bindings if isinstance(b.value, graph.Call) and b.value.op.name == "matmul"]
    assert [p.sinfo.dtype for p in products] == ["int32"]
    same_results(mod, made, _numbers("uint8", 5, k), rtol=1e-5, atol=1e-5)
    agree(mod, (_numbers("uint8", 9, k),), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_pointwise_convolutions_of_dequantised_pictures(dtype):
    """Channels that vectors of 16, 8 and 4 fill, a stride, and a convolution over space."""
    widths = (8, 24, 48, 20, 16)

    def body(bb, x):
        emit = lambda *a, **kw: bb.emit(make(*a, **kw))
        y, zero = x, np.int32(3)
        for k, (i, o) in enumerate(pairwise(widths)):
            size = 3 if k == 2 else 1
            w = graph.Constant.of(_numbers("int8", o, i, size, size) // 2)
            wide = emit("astype", w, dtype="int32")
            weight = emit("multiply", emit("astype", wide, dtype="float32"), graph.Constant.of(RNG.uniform(0.001, 0.01, (o, 1, 1, 1)).astype(np.float32)))
            data = _dequantised(emit, y, zero, np.float32(0.02))
            out = emit("add", emit("nn.conv2d", data, weight, strides=2 if k == 1 else 1, padding=size // 2), graph.Constant.of(
                RNG.standard_normal((o, 1, 1)).astype(np.float32)))
            if k < len(widths) - 2:
                info = np.iinfo(dtype)
                whole = emit("round", emit("divide", out, np.float32(0.05)))
                y = emit("astype", emit("minimum", emit("maximum", whole, np.float32(info.min)), np.float32(info.max)), dtype=dtype)
        return out

    mod = function([graph.TensorInfo((2, 8, 7, 5), dtype)], body)
    made = quantised_products(mod.replace(attrs=mod.attrs | {"target": WITH}))
    convolutions = [b.var.sinfo.dtype for b in made["main"].body.bindings if isinstance(b.value, graph.Call) and b.value.op.name == "nn.conv2d"]
    assert set(convolutions) == {"int32"}
    x = _numbers(dtype, 2, 8, 7, 5)
    got, want = build_module(mod)["main"](x), interpret(mod)["main"](x)
    assert np.abs(got - want).max() < 0.05 and np.abs(got - want).mean() < 0.005  # a number that is halfway may be rounded otherwise


CONVOLUTIONS = [  # data channels, weight, attributes
    (1, (5, 1, 3, 2), {"padding": (1, 0, 0, 1)}),
    (7, (24, 7, 3, 3), {"padding": (2, 1, 0, 1), "strides": (2, 1), "dilation": (1, 2)}),
    (16, (32, 16, 2, 3), {"padding": 1, "strides": 2}),
    (16, (16, 1, 3, 3), {"padding": 1, "groups": 16}),
    (5, (5, 1, 2, 2), {"padding": (0, 1), "strides": 2, "groups": 5}),
    (8, (16, 4, 3, 3), {"padding": 1, "groups": 2}),
]


@pytest.mark.parametrize("k, n", [(7, 9), (12, 17)])
def test_zeros_fill_groups_and_vectors_and_weights_are_moved(k, n):
    """Weights of a range of 256 that 8 bits do not hold as they are."""
    weight = graph.Constant.of(RNG.integers(-118, 138, (k, n)).astype(np.int32))
    mod = function([graph.TensorInfo((M, k), "uint8")], _product(weight, graph.Constant.of(np.int32(77))))
    assert _has_narrow_product(mod)
    agree(mod, (_numbers("uint8", 6, k),))
    kernel = graph.Constant.of(RNG.integers(-118, 138, (n, k, 2, 3)).astype(np.int32))

    def body(bb, x):
        wide = bb.emit(make("subtract", bb.emit(make("astype", x, dtype="int32")), np.int32(5)))
        return bb.emit(make("nn.conv2d", wide, kernel, padding=(1, 0, 0, 2), strides=(1, 2)))

    agree(function([graph.TensorInfo((2, k, 5, 6), "int8")], body), (_numbers("int8", 2, k, 5, 6),))


def test_channels_by_themselves_take_wider_weights():
    kernel = graph.Constant.of(RNG.integers(-255, 256, (16, 1, 3, 3)).astype(np.int32))
    mod = function([graph.TensorInfo((2, 16, 5, 6), "uint8")], lambda bb, x: bb.emit(make(
        "nn.conv2d", bb.emit(make("astype", x, dtype="int32")), kernel, padding=1, groups=16)))
    made = integer_products(mod.replace(attrs=mod.attrs | {"target": WITH}))
    values = [b.value for b in made["main"].body.bindings]
    assert [v.args[1].sinfo.dtype for v in values if isinstance(v, graph.Call) and v.op.name == "nn.conv2d"] == ["int16"]
    agree(mod, (_numbers("uint8", 2, 16, 5, 6),))


@pytest.mark.parametrize("dtype, zero, case", [*(("uint8", 255, c) for c in CONVOLUTIONS), *(("int8", None, c) for c in CONVOLUTIONS[::2])])
def test_convolutions_are_exact(dtype, zero, case):
    """The border counts as the zero point; missing channels of a group of four count nothing."""
    channels, shape, attrs = case
    weight = graph.Constant.of(_numbers("int8", *shape).astype(np.int32))

    def body(bb, x):
        wide = bb.emit(make("astype", x, dtype="int32"))
        return bb.emit(make("nn.conv2d", wide if zero is None else bb.emit(make("subtract", wide, np.int32(zero))), weight, **attrs))

    mod = function([graph.TensorInfo((2, channels, 6, 7), dtype)], body)
    made = integer_products(mod.replace(attrs=mod.attrs | {"target": WITH}))
    products = [b.value for b in made["main"].body.bindings if isinstance(b.value, graph.Call) and b.value.op.name == "nn.conv2d"]
    assert [p.args[1].sinfo.dtype for p in products] == ["float32" if attrs.get("groups") == 2 else "int8"]  # its groups fill no vectors of 16
    x = _numbers(dtype, 2, channels, 6, 7)
    np.testing.assert_array_equal(build_module(mod)["main"](x), interpret(mod)["main"](x))


@pytest.mark.parametrize("name, shape, weight, attrs", [
    ("conv1d", (16, 19), (32, 16, 5), {"padding": 2, "strides": 2}),
    ("conv1d", (7, 12), (24, 7, 3), {"padding": (2, 0), "dilation": 2}),
    ("conv1d", (64, 9), (64, 8, 3), {"padding": 1, "groups": 8}),
    ("conv2d", (32, 5, 6), (64, 16, 3, 3), {"padding": 1, "groups": 2}),
    ("conv2d", (64, 5, 4), (64, 8, 3, 3), {"padding": (0, 1), "groups": 8, "strides": 2}),
    ("conv3d", (6, 4, 5, 6), (16, 6, 2, 3, 3), {"padding": 1, "strides": (1, 2, 1)}),
    ("conv2d_transpose", (8, 4, 5), (8, 16, 3, 3), {"padding": 1, "strides": 2, "output_padding": 1}),
    ("conv1d_transpose", (24, 7), (24, 16, 4), {"strides": 2}),
])
@pytest.mark.parametrize("cpu", ["znver4", "cortex-a53"])
def test_other_convolutions_are_sums_of_integers(cpu, name, shape, weight, attrs):
    """Over one axis and three, in groups of several channels, and transposed: as exact, whether by instructions or as whole floats, the scales behind."""
    transposed = "transpose" in name
    whole = graph.Constant.of(_numbers("int8", *weight))
    scale = graph.Constant.of(RNG.uniform(0.001, 0.01, [n if k == transposed else 1 for k, n in enumerate(weight)]).astype(np.float32))

    def body(bb, x):
        emit = lambda *a, **kw: bb.emit(make(*a, **kw))
        w = emit("multiply", emit("astype", emit("astype", whole, dtype="int32"), dtype="float32"), scale)
        return emit(f"nn.{name}", _dequantised(emit, x, np.uint8(77), np.float32(0.02)), w, **attrs)

    def sums(bb, x):
        emit = lambda *a, **kw: bb.emit(make(*a, **kw))
        wide = emit("subtract", emit("astype", x, dtype="int32"), np.int32(77))
        total = emit(f"nn.{name}", wide, graph.Constant.of(whole.data.numpy().astype(np.int32)), **attrs)
        by = graph.Constant.of((scale.data.numpy() * np.float32(0.02)).reshape(1, -1, *(1 for _ in weight[2:])))
        return emit("multiply", emit("astype", total, dtype="float32"), by)

    info, x, target = [graph.TensorInfo((2, *shape), "uint8")], _numbers("uint8", 2, *shape), Target(cpu)
    made = prepare(function(info, body).replace(attrs={"target": target}), target=target)
    narrow = {str(b.value.args[1].sinfo.dtype) for b in integer_products(quantised_products(function(info, body).replace(attrs={"target": target})))
              ["main"].body.bindings if isinstance(b.value, graph.Call) and getattr(b.value.op, "name", "") == f"nn.{name}"}
    assert narrow == {"int8" if cpu == "znver4" and not transposed else "float32"}
    np.testing.assert_array_equal(interpret(made)["main"](x), interpret(function(info, sums))["main"](x))


def test_shapes_as_values_are_passed_over():
    def body(bb, x):
        sizes = bb.emit(make("shape_of", x))
        return bb.emit(make("shape_to_tensor", sizes))

    mod = function([graph.TensorInfo((M, 4), "float32")], body)
    assert calls(quantised_products(integer_products(mod.replace(attrs=mod.attrs | {"target": WITH})))) == calls(mod)


@pytest.mark.parametrize("cpu, mnemonic", [("neoverse-n1", "sdot"), ("neoverse-v1", "usdot|sdot"), ("znver4", "vpdpbusd"), ("alderlake", "vpdpbusd"),
                                            ("haswell", "vpmaddwd"), ("x86-64", "pmaddwd"), ("i686", "pmaddwd"), ("wasm32", r"i32x4\.dot_i16x8_s")])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_every_machine_sums_by_its_own_instruction(cpu, mnemonic, dtype):
    target = Target(cpu)
    mod = function([graph.TensorInfo((5, 24), dtype)], _product(_weight(24, 32), graph.Constant.of(np.int32(3)), dtype))
    mod = mod.replace(attrs=mod.attrs | {"target": target})
    same_results(mod, run(mod, [integer_products]), _numbers(dtype, 5, 24), rtol=0, atol=0)
    made = prepare(mod, target=target)
    (kernel,) = (n for n, f in made.items() if f.attrs.get("scheduled") == "dot_products")
    assert len(re.findall(rf"\b({mnemonic})\b", inspect(made, kernel, target=target).assembly)) > 4


@pytest.mark.parametrize("cpu", ["neoverse-n1", "haswell", "cortex-a53"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("groups, channels, outer, size", [(1, 16, 16, 3), (1, 13, 24, 1), (16, 16, 16, 3)])
def test_convolutions_on_other_machines_are_exact(cpu, dtype, groups, channels, outer, size):
    weight = graph.Constant.of(RNG.integers(-128, 128, (outer, channels // groups, size, size)).astype(np.int32))

    def body(bb, x):
        wide = bb.emit(make("subtract", bb.emit(make("astype", x, dtype="int32")), graph.Constant.of(np.int32(3))))
        return make("nn.conv2d", wide, weight, padding=(size // 2,) * 4, groups=groups)

    mod = function([graph.TensorInfo((1, channels, 5, 4), dtype)], body)
    same_results(mod, prepare(mod, target=Target(cpu)), _numbers(dtype, 1, channels, 5, 4), rtol=0, atol=0)


def _quantised_net():
    """Two convolutions, a sum of two tensors, a mean over space and a product of matrices, each of dequantised bytes and quantised again."""
    scales = lambda *shape: graph.Constant.of(RNG.uniform(0.001, 0.02, shape).astype(np.float32))

    def body(bb, x):
        emit = lambda *a, **kw: bb.emit(make(*a, **kw))

        def quantised(value, scale, zero):
            whole = emit("add", emit("round", emit("divide", value, np.float32(scale))), np.float32(zero))
            q = emit("astype", emit("minimum", emit("maximum", whole, np.float32(0)), np.float32(255)), dtype="uint8")
            return _dequantised(emit, q, np.uint8(zero), np.float32(scale))

        def weights(*shape):
            wide = emit("astype", emit("astype", graph.Constant.of(_numbers("int8", *shape)), dtype="int32"), dtype="float32")
            return emit("multiply", wide, scales(*(shape[:1] if len(shape) > 2 else (1,)), *(1 for _ in shape[1:-1]), *((1,) if len(shape) > 2 else shape[1:])))

        y = z = quantised(x, 0.013, 120)
        for groups in (1, 24):
            y = quantised(emit("add", emit("nn.conv2d", y, weights(24, 24 // groups, 3, 3), padding=1, groups=groups), scales(24, 1, 1)), 0.37, 131)
        y = quantised(emit("add", y, z), 0.41, 7)
        y = quantised(emit("reshape", emit("mean", y, axis=(2, 3)), graph.ShapeExpr((2, 24))), 0.07, 3)
        return quantised(emit("add", emit("matmul", y, weights(24, 40)), scales(40)), 0.19, 50)

    return function([graph.TensorInfo((2, 24, 9, 11), "float32")], body)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="machines of one family run each other's code")
def test_results_are_those_of_every_machine():
    """With dot products and fused multiply-adds or without."""
    mod, x = _quantised_net(), RNG.standard_normal((2, 24, 9, 11)).astype(np.float32)
    want = build_module(mod)["main"](x)
    assert len(np.unique(want)) > 20
    for target in ("x86-64", "llvm -mcpu=x86-64 -vector-width=32"):
        np.testing.assert_array_equal(build_module(mod, target=target)["main"](x), want)


@pytest.mark.parametrize("cpu", ["cortex-a53", "rv64gc"])
def test_machines_without_an_instruction_sum_whole_floats(cpu):
    mod, x = _quantised_net(), RNG.standard_normal((2, 24, 9, 11)).astype(np.float32)
    made, bytewise = (run(mod.replace(attrs=mod.attrs | {"target": t}), OPTIMIZE + LOWER[: LOWER.index(integer_products) + 1]) for t in (Target(cpu), WITH))
    weights = [b.value.args[1].data.numpy() for b in made["main"].body.bindings if getattr(getattr(b.value, "op", None), "name", "") in ("nn.conv2d", "matmul")]
    assert [w.dtype for w in weights] == [np.float32] * 3
    assert all((w == np.rint(w)).all() for w in weights)
    np.testing.assert_array_equal(interpret(made)["main"](x), interpret(bytewise)["main"](x))


@pytest.mark.parametrize("product", ["matmul", "nn.conv2d"])
def test_sums_that_floats_do_not_hold_are_made_of_parts(product):
    """All of one sign, so that the sums are the largest there are."""
    depth = 1024
    kernel = np.full((depth, 3) if product == "matmul" else (3, depth, 1, 1), 127, np.int32)
    shape = (2, depth) if product == "matmul" else (2, depth, 2, 1)
    mod = function([graph.TensorInfo(shape, "uint8")], lambda bb, x: make(product, bb.emit(make("astype", x, dtype="int32")), graph.Constant.of(kernel)))
    made = integer_products(mod.replace(attrs=mod.attrs | {"target": Target("cortex-a53")}))
    assert calls(made).count(product) == 2
    same_results(mod, made, np.full(shape, 255, np.uint8) - (np.arange(depth, dtype=np.uint8) % 3).reshape(-1, *(1 for _ in shape[2:])), rtol=0, atol=0)


def test_many_columns_that_fill_no_half_of_a_vector_are_filled_up():
    missing = lambda cpu, n: _Products(IRModule({}), Target(cpu))._columns_missing(n, "uint8")
    assert [missing("znver4", n) for n in (764, 1000, 60, 1001)] == [4, 0, 0, 7]
    assert missing("neoverse-v1", 764) == 0
