# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits stay packed, however they are unpacked in the model; what they are multiplied to is NumPy's product with what they stand for."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.builder import operator_program
from roundel.graph.algorithms.packed_weights import Packed
from roundel.ir import IRModule, graph, tir
from roundel.ops import make
from roundel.ops.packed_matmul import WORD
from roundel.schedule.schedule import Schedule
from roundel.strategy.pack_constants import relayout
from roundel.strategy.product.packed_products import packed_products
from roundel.strategy.product.sliced_products import sliced_products
from roundel.strategy.program import Program
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(5)


def _model(nodes, held, depth, columns, dtype="float32"):
    code = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[dtype]
    infos = [helper.make_tensor_value_info(n, code, ["a", "b", size]) for n, size in (("x", depth), ("y", columns))]
    tensors = [v if hasattr(v, "dims") else numpy_helper.from_array(np.asarray(v), k) for k, v in held.items()]
    made = helper.make_graph(nodes, "g", infos[:1], infos[1:], tensors)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def _levels(packed, bits):
    """Numbers of bytes, the lowest bits first, along the last axis."""
    return ((packed[..., None] >> (np.arange(8 // bits, dtype=np.uint8) * bits)) & ((1 << bits) - 1)).reshape(*packed.shape[:-1], -1)


def _check(model, weights, shapes=((2, 1), (1, 3)), rtol=1e-5, dtype="float32"):
    compiled = rd.compile(model, threads=2)
    assert {"packed_products", "sliced_products"} & {k["rule"] for k in compiled.kernels.values()}
    assert compiled.weights_nbytes < 0.6 * 4 * weights.size
    for lead in shapes:
        x = RNG.standard_normal((*lead, weights.shape[0])).astype(dtype)
        want = x.astype(np.float64) @ weights
        np.testing.assert_allclose(compiled(x), want, rtol=rtol, atol=rtol * np.abs(want).max())


@pytest.mark.parametrize(("bits", "block", "depth", "columns", "zeros", "dtype"), [
    (4, 32, 192, 133, "", "float32"), (4, 16, 131, 140, "packed", "float32"), (8, 64, 160, 117, "packed", "float32"), (4, 128, 300, 61, "float", "float16")])
def test_matmul_nbits(bits, block, depth, columns, zeros, dtype):
    blocks = -(-depth // block)
    packed = RNG.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = (0.1 * RNG.standard_normal((columns, blocks))).astype(dtype)
    held, zero = {"w": packed, "s": scales.reshape(-1)}, np.full((columns, blocks), 1 << (bits - 1), np.float64)
    if zeros == "packed":
        held["z"] = RNG.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
        zero = _levels(held["z"], bits)[:, :blocks].astype(np.float64)
    elif zeros:
        held["z"] = RNG.uniform(0, 15, (columns, blocks)).astype(dtype)
        zero = held["z"].astype(np.float64)
    node = helper.make_node("MatMulNBits", ["x", *held], ["y"], domain="com.microsoft", K=depth, N=columns, bits=bits, block_size=block)
    weights = (_levels(packed, bits).astype(np.float64) - zero[..., None]) * scales[..., None].astype(np.float64)
    held = {k: v.reshape(-1) if k == "z" else v for k, v in held.items()}
    _check(_model([node], held, depth, columns, dtype), weights.reshape(columns, -1)[:, :depth].T, rtol=1e-5 if dtype == "float32" else 4e-3, dtype=dtype)


@pytest.mark.parametrize(("axis", "kind", "turned"), [(0, "INT4", False), (1, "UINT4", True), (0, "INT8", False)])
def test_dequantize_linear_in_blocks(axis, kind, turned):
    shape, low, high = (160, 131) if not turned else (131, 160), *{"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128)}[kind]
    q = RNG.integers(low, high, shape)
    sizes = tuple(n // 32 if k == axis else n for k, n in enumerate(shape))
    scales, zero = RNG.uniform(0.01, 0.1, sizes).astype(np.float32), RNG.integers(low, high, sizes)
    tensor = lambda name, v: helper.make_tensor(name, getattr(TensorProto, kind), v.shape, v.reshape(-1).tolist())
    held = {"q": tensor("q", q), "s": scales, "z": tensor("z", zero)}
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=axis, block_size=32),
             *([helper.make_node("Transpose", ["w"], ["t"])] if turned else []), helper.make_node("MatMul", ["x", "t" if turned else "w"], ["y"])]
    wide = lambda v: np.repeat(v.astype(np.float64), 32, axis)
    weights = (q - wide(zero)) * wide(scales)
    _check(_model(nodes, held, 160, 131), weights.T if turned else weights)


def test_a_scale_for_each_column_and_an_odd_depth():
    q, scales = RNG.integers(-127, 128, (333, 70)).astype(np.int8), RNG.uniform(0.01, 0.1, 70).astype(np.float32)
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=1), helper.make_node("MatMul", ["x", "w"], ["y"])]
    _check(_model(nodes, {"q": q, "s": scales}, 333, 70), q * scales.astype(np.float64))


def test_words_of_eight_numbers_with_minima():
    """As GPTQ packs them (int32 words along the depth) with what blocks of GGUF add after the scale."""
    words, order = RNG.integers(-(1 << 31), 1 << 31, (24, 130)).astype(np.int32), np.arange(0, 32, 4, dtype=np.int32).reshape(1, 8, 1)
    scales, least = (RNG.uniform(-1, 1, (6, 130)).astype(np.float16).astype(np.float32) for _ in range(2))

    def body(bb, x):
        shift = bb.emit(make("right_shift", bb.emit(make("expand_dims", graph.Constant.of(words), axis=(1,))), graph.Constant.of(order)))
        levels = bb.emit(make("bitwise_and", shift, graph.Constant.of(np.int32(15))))
        shaped = lambda v, *sizes: bb.emit(make("reshape", v, graph.ShapeExpr(tuple(map(tir.index_const, sizes)))))
        real = shaped(bb.emit(make("astype", levels, dtype="float32")), 6, 32, 130)
        scaled = bb.emit(make("multiply", real, graph.Constant.of(scales[:, None])))
        return make("matmul", x, shaped(bb.emit(make("add", scaled, graph.Constant.of(least[:, None]))), 192, 130))

    levels = ((words[:, None] >> order) & 15).reshape(6, 32, 130)
    weights = (levels * scales[:, None].astype(np.float64) + least[:, None]).reshape(192, 130)
    _check(function([graph.TensorInfo((2, 3, 192), "float32")], body), weights, shapes=((2, 3),))


def test_rows_of_a_group_that_lie_apart():
    """As GPTQ's order by activations has them: which group a row is of is an array."""
    q, scales = RNG.integers(0, 16, (192, 130)).astype(np.uint8), RNG.uniform(0.01, 0.1, (6, 130)).astype(np.float32)
    group = RNG.permutation(np.arange(192) // 32)

    def body(bb, x):
        real = bb.emit(make("astype", graph.Constant.of(q), dtype="float32"))
        own = bb.emit(make("take", graph.Constant.of(scales), graph.Constant.of(group), axis=0))
        return make("matmul", x, bb.emit(make("multiply", real, own)))

    _check(function([graph.TensorInfo((2, 3, 192), "float32")], body), q * scales[group].astype(np.float64), shapes=((2, 3),))


def test_whole_numbers_without_a_scale():
    """As torchao has them: results are scaled, not weights."""
    q = RNG.integers(-127, 128, (192, 130)).astype(np.int8)
    body = lambda bb, x: make("matmul", x, bb.emit(make("astype", graph.Constant.of(q), dtype="float32")))
    _check(function([graph.TensorInfo((2, 3, 192), "float32")], body), q.astype(np.float64), shapes=((2, 3),))


def test_small_matrices_and_others_are_widened():
    q = RNG.integers(-127, 128, (32, 70)).astype(np.int8)
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    compiled = rd.compile(_model(nodes, {"q": q, "s": np.float32(0.1)}, 32, 70))
    assert "packed_products" not in [k["rule"] for k in compiled.kernels.values()]


def schedules_agree(sketch, given, want, count, atol):
    """Some of a sketch's schedules, drawn at random, compute what is wanted of the constants in the layouts that they ask for."""
    table = sketch.candidates
    for k in RNG.choice(len(table), min(count, len(table)), replace=False):
        applied = sketch.schedule(table.decisions(int(k)))
        assert isinstance(applied.schedule, Schedule)
        shapes = [[n.value for n in b.shape] for b in applied.func.buffer_params]
        args = [relayout(a, applied.layouts[i], shapes[i]) if i in applied.layouts else a for i, a in enumerate(given)]
        out = np.full(want.shape, np.nan, np.float32)
        rd.build(IRModule({"main": applied.func}), threads=1)["main"](*args, out)
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=atol, err_msg=str(table.decisions(int(k))))


@pytest.mark.parametrize("rows", [1, 3, 11])
def test_every_schedule_computes_the_same(rows):
    """Rows and columns that fill no tile, groups of words with zero points of their own, whichever tiles are taken."""
    bits, groups, deep, columns = 4, 3, 2, 37
    per = WORD // bits
    info = lambda shape, dtype="float32": graph.Var("v", graph.TensorInfo(shape, dtype))
    words = RNG.integers(0, 1 << 32, (groups * deep, columns), dtype=np.uint32)
    scales, zero = RNG.standard_normal((groups, columns)).astype(np.float16), RNG.integers(0, 16, (groups, columns)).astype(np.uint8)
    x = RNG.standard_normal((rows, groups, deep, per)).astype(np.float32)
    given = [x, words, scales, x.sum((2, 3)), zero]
    call = make("packed_matmul", *(info(a.shape, str(a.dtype)) for a in given), bits=bits)
    program = Program.of(operator_program(call).func.with_attr("global_symbol", "main"), Target.host(), (1, 2, 4))
    sketch, = packed_products(program)
    levels = ((words[:, None] >> np.arange(0, 32, bits, dtype=np.uint32)[:, None]) & 15).reshape(groups, -1, columns)
    weights = ((levels - zero[:, None].astype(np.float64)) * scales[:, None]).reshape(-1, columns)
    schedules_agree(sketch, given, x.reshape(rows, -1) @ weights, 4, 1e-4)


needs_bytes = pytest.mark.skipif(not Target.host().has("avx512vnni") and not Target.host().has("avxvnni"), reason="no products of signed and unsigned bytes")


def _halves(rows_of_group, columns, scales):
    """A model whose matrix has numbers of four bits less eight, in groups with scales, and that matrix."""
    q = RNG.integers(0, 16, (len(scales), rows_of_group, columns)).astype(np.uint8)
    weights = ((q.astype(np.float64) - 8) * scales[:, None]).reshape(-1, columns)

    def body(bb, x):
        moved = bb.emit(make("subtract", bb.emit(make("astype", graph.Constant.of(q), dtype="float32")), graph.Constant.of(np.float32(8))))
        scaled = bb.emit(make("multiply", moved, graph.Constant.of(scales[:, None])))
        shape = graph.ShapeExpr(tuple(map(tir.index_const, weights.shape)))
        return make("matmul", x, bb.emit(make("reshape", scaled, shape)))

    n = tir.Var("n", "int64", size=True)
    return function([graph.TensorInfo((n, tir.index_const(len(weights))), "float32")], body), weights


@needs_bytes
@pytest.mark.parametrize("columns", [128, 176])
def test_slices_of_rows_lose_no_more_than_float32(columns):
    """Groups of very different sizes, zeros, numbers near the ends of the range; whatever a row has, it does nothing to others."""
    model, weights = _halves(32, columns, RNG.uniform(0.01, 0.1, (5, columns)).astype(np.float32))
    compiled = rd.compile(model, threads=1)
    assert "sliced_products" in [k["rule"] for k in compiled.kernels.values()]
    x = RNG.standard_normal((13, 160)).astype(np.float32)
    x[1] *= np.repeat(np.float32([1e-20, 1, 1e20, 1e-3, 0]), 32)
    x[2], x[3], x[4], x[5] = 0, x[3] * 1e-37, x[4] * 1e36, np.sign(x[5]) * (np.arange(160) % 32 == 7)
    x[6, 40], x[7, 3] = np.nan, np.inf
    got = compiled(x)
    most = np.maximum(np.abs(x.reshape(13, 5, 32)).max(2), 2.0**-100)  # smaller ones are multiples of 2^-123
    bound = np.einsum("ig,gn->in", most.astype(np.float64), np.abs(weights.reshape(5, 32, -1)).sum(1) + 8 * 32 * 0.1) * 2.0**-22 + 1e-37
    whole = np.arange(13)[(np.arange(13) != 6) & (np.arange(13) != 7)]
    assert (np.abs(got[whole] - x[whole].astype(np.float64) @ weights) <= bound[whole]).all()
    assert np.isnan(got[6]).all() and not np.isfinite(got[7]).any()
    assert "sliced_products" not in [k["rule"] for k in rd.compile(model, accuracy="strict").kernels.values()]
    for rows in (0, 1, 2):
        np.testing.assert_array_equal(compiled(x[8: 8 + rows]), got[8: 8 + rows])


@needs_bytes
@pytest.mark.parametrize(("rows", "bits", "deep"), [(1, 4, 4), (3, 8, 5), (11, 2, 3), (6, 4, 16)])
def test_every_schedule_of_slices_computes_the_same(rows, bits, deep):
    groups, columns, per = 3, 96, WORD // bits
    info = lambda a: graph.Var("v", graph.TensorInfo(a.shape, str(a.dtype)))
    words = RNG.integers(0, 1 << 32, (groups * deep, columns), dtype=np.uint32)
    scales, zero = RNG.standard_normal((groups, columns)).astype(np.float16), RNG.integers(0, 16, (groups, columns)).astype(np.uint8)
    x = RNG.standard_normal((rows, groups, deep, per // 4, 4)).astype(np.float32)
    most = np.abs(x).max((2, 3, 4))
    cut = make("byte_slices", info(x), info(most))
    given = [cut.op.numpy((x, most), cut.attrs), most, Packed(words, scales, bits, deep * per).by_bytes(), scales, x.sum((2, 3, 4)), zero]
    call = make("sliced_matmul", *map(info, given), bits=bits)
    levels = ((words[:, None] >> np.arange(0, 32, bits, dtype=np.uint32)[:, None]) & ((1 << bits) - 1)).reshape(groups, -1, columns)
    weights = ((levels - zero[:, None].astype(np.float64)) * scales[:, None]).reshape(-1, columns)
    want = x.reshape(rows, -1).astype(np.float64) @ weights
    np.testing.assert_allclose(call.op.numpy(tuple(given), call.attrs), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    program = Program.of(operator_program(call).func.with_attr("global_symbol", "main"), Target.host(), (2, 3, 5))
    sketch, = sliced_products(program)
    schedules_agree(sketch, given, want, 3, 1e-5 * np.abs(want).max())
