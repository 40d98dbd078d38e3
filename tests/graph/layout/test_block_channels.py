# SPDX-License-Identifier: Apache-2.0
"""Blocked layouts keep results, whatever lies between the convolutions."""

import numpy as np
import pytest

from roundel.driver import build_module, compile_module, prepare
from roundel.graph.layout.block_channels import block_channels
from roundel.interp import interpret
from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ops import make
from roundel.target import Target

from ..functions import function
from ..running import agree

RNG = np.random.default_rng(11)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _conv(bb, x, out, kernel=3, **attrs):
    into = x.sinfo.shape[1].value // attrs.get("groups", 1)
    return bb.emit(make("nn.conv2d", x, graph.Constant.of(_x(out, into, kernel, kernel) * 0.2), padding=kernel // 2, **attrs))


def _residual(bb, x):
    a = bb.emit(make("nn.relu", _conv(bb, x, 32)))
    b = _conv(bb, a, 32)
    return make("nn.relu", bb.emit(make("add", a, b)))


def _pooled(bb, x):
    a = _conv(bb, x, 16)
    p = bb.emit(make("nn.max_pool2d", a, pool_size=2, strides=2))
    return make("mean", _conv(bb, p, 32, 1), axis=(2, 3))


def _joined(bb, x):
    a, b = _conv(bb, x, 16), _conv(bb, x, 32, 1)
    return _conv(bb, bb.emit(make("concat", graph.Tuple((a, b)), axis=1)), 16, 1)


def _odd(bb, x):
    return _conv(bb, bb.emit(make("exp", _conv(bb, x, 7))), 5, 1)


def _depthwise(bb, x):
    a = _conv(bb, x, 16, 1)
    return _conv(bb, bb.emit(make("clip", _conv(bb, a, 16, 3, groups=16), min=0.0, max=6.0)), 24, 1)


def _grouped(bb, x):
    """Groups of whole blocks, of more inputs than results too, and groups that cut a block."""
    a = bb.emit(make("nn.relu", _conv(bb, bb.emit(make("nn.relu", _conv(bb, x, 96, 1))), 96, 3, groups=3, strides=2)))
    return _conv(bb, _conv(bb, a, 48, 3, groups=3), 48, 3, groups=12)


def _resized(bb, x):
    n, _, h, w = x.sinfo.shape
    size = lambda channels, down, across: graph.ShapeExpr((n, tir.index_const(channels), h * down, w * across))
    near = {"method": "nearest", "coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
    a = bb.emit(make("image.resize", _conv(bb, x, 16), size(16, 2, 3), scales=(1.0, 1.0, 2.0, 3.0), **near))
    b = bb.emit(make("image.resize", _conv(bb, x, 7), size(7, 2, 3)))
    return bb.emit(make("add", _conv(bb, a, 16), _conv(bb, b, 16, 1)))


def _escapes(bb, x):
    a = _conv(bb, x, 16)
    return graph.Tuple((a, bb.emit(make("permute_dims", a, axes=(0, 2, 3, 1))), _conv(bb, a, 16)))


@pytest.mark.parametrize("body", [_residual, _pooled, _joined, _odd, _depthwise, _grouped, _escapes, _resized])
def test_results_stay(body):
    mod = function([graph.TensorInfo((1, 3, 8, 6), "float32")], body)
    agree(mod, (_x(1, 3, 8, 6),), rtol=1e-3)


def _odd_blocks(bb, x):
    """Channels that are no multiple of a vector: 12, 24 and 40, through every kind of operator."""
    a = bb.emit(make("nn.relu", _conv(bb, x, 24, 3)))
    b = bb.emit(make("clip", _conv(bb, a, 24, 3, groups=24), min=0.0, max=6.0))
    c = bb.emit(make("nn.max_pool2d", bb.emit(make("concat", graph.Tuple((a, b)), axis=1)), pool_size=2, strides=1))
    d = bb.emit(make("nn.silu", _conv(bb, c, 12, 1)))
    e = bb.emit(make("multiply", d, bb.emit(make("sigmoid", bb.emit(make("mean", d, axis=(2, 3), keepdims=True))))))
    return _conv(bb, e, 40, 3, strides=2)


@pytest.mark.parametrize("width", [5, 13, None])
def test_odd_blocks(width):
    """All channels in one block, with rows of lengths that eight does not divide, known or not."""
    size = tir.Var("w", DType("int64"), True) if width is None else width
    mod = function([graph.TensorInfo((1, 3, 6, size), "float32")], _odd_blocks)
    reference, compiled = interpret(mod)["main"], build_module(mod)["main"]
    for w in [width] if width else [5, 16, 23]:
        x = _x(1, 3, 6, w)
        np.testing.assert_allclose(compiled(x), reference(x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("outer", "kernel"), [(24, (2, 2)), (1, (2, 3))])
def test_pieces_that_do_not_overlap(outer, kernel):
    """A transposed convolution whose stride is its kernel."""
    h, w = (tir.Var(x, DType("int64"), True) for x in "hw")

    def body(bb, x):
        y = bb.emit(make("nn.conv2d_transpose", _conv(bb, x, 24, 1), graph.Constant.of(_x(24, outer, *kernel)), strides=kernel))
        return make("nn.relu", bb.emit(make("add", y, graph.Constant.of(_x(1, outer, 1, 1)))))

    mod = function([graph.TensorInfo((1, 3, h, w), "float32")], body)
    agree(mod, (_x(1, 3, 5, 7),), rtol=1e-3)


TRANSPOSED = [
    ((1, 16, 7, 9), (16, 24, 4, 4), {"strides": 2, "padding": 1}),
    ((2, 3, 5, 6), (3, 16, 3, 3), {"strides": 2, "padding": 1, "output_padding": 1}),
    ((1, 16, 4, 3), (16, 5, 2, 5), {"strides": (3, 2), "padding": (0, 2, 1, 0)}),
    ((1, 8, 1, 6), (8, 16, 1, 8), {"strides": (1, 4), "padding": (0, 2)}),
    ((1, 16, 6, 6), (16, 32, 3, 3), {"strides": 4, "output_padding": 3}),
    ((1, 16, "h", "w"), (16, 8, 4, 4), {"strides": 2, "padding": 1}),
    ((1, 16, "h", "w"), (16, 8, 3, 3), {"strides": 2, "padding": 1}),
]


@pytest.mark.parametrize(("shape", "weight", "attrs"), TRANSPOSED, ids=str)
def test_phases_of_transposed_convolutions(shape, weight, attrs):
    """No product with an inserted zero is computed."""
    known = tuple(tir.Var(n, DType("int64"), True) if isinstance(n, str) else n for n in shape)
    kernel, bias = graph.Constant.of(_x(*weight) / 4), graph.Constant.of(_x(1, weight[1], 1, 1))
    body = lambda bb, x: make("nn.relu", bb.emit(make("add", bb.emit(make("nn.conv2d_transpose", x, kernel, **attrs)), bias)))
    mod = function([graph.TensorInfo(known, "float32")], body)
    assert "nn.conv2d_transpose" not in block_channels(mod).script()
    for size in (5, 2) if "h" in shape else (0,):
        agree(mod, (_x(*(n if isinstance(n, int) else size + (n == "w") for n in shape)),), rtol=1e-3)


# --- films: three axes of space


def _conv3d(bb, x, out, kernel=(3, 3, 3), **attrs):
    into = x.sinfo.shape[1].value // attrs.get("groups", 1)
    return bb.emit(make("nn.conv3d", x, graph.Constant.of(_x(out, into, *kernel) * 0.2), padding=tuple(k // 2 for k in kernel), **attrs))


def _film_residual(bb, x):
    a = bb.emit(make("nn.relu", bb.emit(make("add", _conv3d(bb, x, 32), graph.Constant.of(_x(1, 32, 1, 1, 1))))))
    b = _conv3d(bb, _conv3d(bb, a, 32, (1, 3, 3)), 32, (3, 1, 1))
    return make("nn.relu", bb.emit(make("add", b, _conv3d(bb, a, 32, (1, 1, 1)))))


def _film_pooled(bb, x):
    a = _conv3d(bb, x, 24, strides=(1, 2, 2))
    p = bb.emit(make("nn.max_pool3d", a, pool_size=(2, 3, 3), strides=(2, 1, 1), padding=(0, 1, 1)))
    q = bb.emit(make("nn.avg_pool3d", _conv3d(bb, p, 24, groups=24), pool_size=(2, 1, 1)))
    scores = bb.emit(make("sigmoid", bb.emit(make("mean", q, axis=(2, 3, 4), keepdims=True))))
    return make("multiply", bb.emit(make("mean", q, axis=(2,), keepdims=True)), scores)


def _film_joined(bb, x):
    """Blocks of one size and of several; a picture as large as the film's is another operand."""
    a, b = _conv3d(bb, x, 16), _conv3d(bb, x, 32, (1, 1, 1))
    c = _conv3d(bb, bb.emit(make("concat", graph.Tuple((a, b)), axis=1)), 24, (1, 1, 1))
    d = bb.emit(make("concat", graph.Tuple((c, _conv3d(bb, x, 12))), axis=1))
    return make("add", d, bb.emit(make("mean", x, axis=(1, 2), keepdims=True)))


def _film_resized(bb, x):
    n, _, d, h, w = x.sinfo.shape
    size = graph.ShapeExpr((n, tir.index_const(16), d * 2, h, w * 3))
    a = bb.emit(make("image.resize", _conv3d(bb, x, 16), size, scales=(1.0, 1.0, 2.0, 1.0, 3.0), method="linear"))
    return bb.emit(make("nn.conv3d_transpose", a, graph.Constant.of(_x(16, 24, 2, 3, 2)), strides=(1, 2, 2), padding=(0, 1, 0)))


def _film_and_picture(bb, x):
    """What is in blocks of four dimensions meets what is of five: its channels are added to pictures."""
    picture = _conv(bb, bb.emit(make("squeeze", bb.emit(make("mean", x, axis=(2,), keepdims=True)), axis=(2,))), 4)
    return make("add", _conv3d(bb, x, 16), picture)


@pytest.mark.parametrize("body", [_film_residual, _film_pooled, _film_joined, _film_resized, _film_and_picture])
def test_results_of_films_stay(body):
    mod = function([graph.TensorInfo((1, 3, 4, 7, 5), "float32")], body)
    agree(mod, (_x(1, 3, 4, 7, 5),), rtol=1e-3)


def test_films_stay_in_blocks_between_convolutions():
    """Only the result is converted, in the end."""
    mod = function([graph.TensorInfo((2, 3, 4, 16, 6), "float32")], _film_residual)
    text = block_channels(mod).script()
    assert (text.count("permute_dims") == 1 and text.count("NDCHW16c") >= 4) or Target.host().lanes("float32") != 16


ALONG_A_FILM = [
    {"padding": 1},
    {"padding": (2, 1, 1, 0, 1, 1), "dilation": (2, 1, 1)},
    {"padding": (0, 1, 1), "strides": (2, 1, 1)},
    {"kernel": (1, 3, 3), "padding": (0, 1, 1)},
]


@pytest.mark.parametrize("along", ALONG_A_FILM, ids=str)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("algorithm", ["winograd2", "winograd4"])
def test_films_by_the_algorithms_of_pictures(along, count, algorithm):
    """What one picture and its neighbours hold is the data of a convolution over two axes, whose results, bias and activation are made at once."""
    lanes = Target.host().lanes("float32")
    attrs, kernel = dict(along), graph.Constant.of(_x(lanes, lanes, *along.get("kernel", (3, 3, 3))) / 8)
    attrs.pop("kernel", None)

    def body(bb, x):
        y = bb.emit(make("nn.conv3d", bb.emit(make("nn.conv3d", x, graph.Constant.of(_x(lanes, 3, 1, 1, 1)))), kernel, **attrs))
        return make("nn.relu", bb.emit(make("add", y, graph.Constant.of(_x(1, lanes, 1, 1, 1)))))

    mod = function([graph.TensorInfo((count, 3, 5, 7, 9), "float32")], body)
    made = prepare(mod, choices={"*": algorithm})
    assert [c.taken for c in made.choices.made if c.kind == "algorithm"][-1] == algorithm
    assert not any("relu" in name for name in made if "winograd" not in name), "bias and activation are made with the products"
    x = _x(count, 3, 5, 7, 9)
    np.testing.assert_allclose(compile_module(mod, choices={"*": algorithm}).load()["main"](x), interpret(mod)["main"](x), rtol=1e-3, atol=1e-4)


def test_groups_of_whole_blocks_stay_in_blocks():
    """Only the result is converted, in the end."""
    lanes = Target.host().lanes("float32")
    body = lambda bb, x: _conv(bb, bb.emit(make("nn.relu", _conv(bb, _conv(bb, x, 4 * lanes, 1), 4 * lanes, 3, groups=4))), 4 * lanes, 1)
    assert block_channels(function([graph.TensorInfo((1, 3, 8, 6), "float32")], body)).script().count("permute_dims") == 1
