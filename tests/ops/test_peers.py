# SPDX-License-Identifier: Apache-2.0
"""The NumPy definitions against PyTorch, an implementation that shares nothing with them."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = pytest.mark.peers


def drawn(*operands):
    """The arrays that opcheck draws for these operands."""
    rng = np.random.default_rng(0)
    return [torch.from_numpy(o.array({}, rng)) for o in operands if isinstance(o, T)]


def check(name, peer, *operands, tolerance=1e-4, **attrs):
    expected = peer(*drawn(*operands))
    expected = tuple(e.numpy() for e in expected) if isinstance(expected, tuple) else expected.numpy()
    opcheck(name, *operands, expected=expected, tolerance=tolerance, **attrs)


@pytest.mark.parametrize(
    "name, peer",
    [
        ("nn.gelu", F.gelu),
        ("nn.gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
        ("nn.silu", F.silu),
        ("nn.mish", F.mish),
        ("nn.selu", F.selu),
        ("nn.elu", F.elu),
        ("nn.celu", F.celu),
        ("nn.softplus", F.softplus),
        ("nn.hardswish", F.hardswish),
        ("nn.hardsigmoid", F.hardsigmoid),
        ("nn.relu6", F.relu6),
        ("nn.log_sigmoid", F.logsigmoid),
        ("nn.softsign", F.softsign),
        ("nn.leakyrelu", F.leaky_relu),
        ("erf", torch.erf),
        ("lgamma", torch.lgamma),
        ("round", torch.round),
        ("sigmoid", torch.sigmoid),
        ("nn.softmax", lambda x: F.softmax(x, -1)),
        ("nn.log_softmax", lambda x: F.log_softmax(x, -1)),
        ("cumsum", lambda x: torch.cumsum(x.flatten(), 0)),
        ("reduce_log_sum_exp", lambda x: torch.logsumexp(x, (0, 1))),
        ("variance", lambda x: x.var(correction=0)),
    ],
)
def test_functions(name, peer):
    check(name, peer, T(7, 9, low=-6, high=6))


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), ((2, 3), (1, 2), (2, 1), 4)])
def test_convolutions(stride, padding, dilation, groups):
    pads = padding if isinstance(padding, int) else (*padding, *padding)
    attrs = {"strides": stride, "padding": pads, "dilation": dilation, "groups": groups}
    check(
        "nn.conv2d",
        lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups),
        T(2, 4, 9, 10),
        T(8, 4 // groups, 3, 3),
        **attrs,
    )
    check(
        "nn.conv2d_transpose",
        lambda x, w: F.conv_transpose2d(x, w, None, stride, padding, 0, groups, dilation),
        T(2, 4, 6, 5),
        T(4, 3, 3, 4),
        **attrs,
    )


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("kernel, stride, padding", [(3, 2, 1), (2, 3, 0), ((3, 2), (2, 1), (1, 1)), (3, 2, 0)])
def test_pools(kernel, stride, padding, ceil):
    x = T(2, 3, 8, 7)
    attrs = {"pool_size": kernel, "strides": stride, "padding": padding, "ceil_mode": ceil}
    check("nn.max_pool2d", lambda v: F.max_pool2d(v, kernel, stride, padding, ceil_mode=ceil), x, **attrs)
    for include in (False, True):
        check(
            "nn.avg_pool2d",
            lambda v, i=include: F.avg_pool2d(v, kernel, stride, padding, ceil, i),
            x,
            count_include_pad=include,
            **attrs,
        )


def test_adaptive_pools_and_norms():
    x = T(2, 6, 7, 8)
    check("nn.adaptive_avg_pool2d", lambda v: F.adaptive_avg_pool2d(v, (3, 5)), x, output_size=(3, 5))
    check("nn.adaptive_max_pool2d", lambda v: F.adaptive_max_pool2d(v, (3, 5)), x, output_size=(3, 5))
    check("nn.layer_norm", lambda v, g, b: F.layer_norm(v, (8,), g, b), x, T(8), T(8))
    check("nn.rms_norm", lambda v, g: F.rms_norm(v, (8,), g, 1e-5), x, T(8))
    check("nn.group_norm", lambda v, g, b: F.group_norm(v, 3, g, b), x, T(6), T(6), num_groups=3)
    check("nn.instance_norm", lambda v, g, b: F.instance_norm(v, weight=g, bias=b), x, T(6), T(6))


@pytest.mark.parametrize("size", [(10, 13), (4, 3)])
def test_resizing(size):
    shape = (2, 3, *size)
    for corners, mode in ((True, "align_corners"), (False, "half_pixel")):
        for method, theirs in (("linear", "bilinear"), ("cubic", "bicubic")):
            check(
                "image.resize",
                lambda x, t=theirs, c=corners: F.interpolate(x, size, mode=t, align_corners=c),
                T(2, 3, 5, 7),
                shape,
                method=method,
                coordinate_transformation_mode=mode,
            )
    check(
        "image.resize",
        lambda x: F.interpolate(x, size, mode="nearest"),
        T(2, 3, 5, 7),
        shape,
        method="nearest",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [True, False])
def test_grid_sample(method, padding, corners):
    peer = lambda x, g: F.grid_sample(x, g.permute(0, 2, 3, 1), method, padding, corners)
    check(
        "image.grid_sample",
        peer,
        T(2, 3, 5, 6),
        T(2, 2, 4, 3, low=-1.3, high=1.3),
        method=method,
        padding_mode=padding,
        align_corners=corners,
        tolerance=1e-3,
    )


def test_attention_and_indexing():
    turned = lambda t: t.transpose(1, 2)
    peer = lambda q, k, v, c=False: turned(F.scaled_dot_product_attention(turned(q), turned(k), turned(v), is_causal=c))
    qkv = T(2, 5, 3, 4), T(2, 7, 3, 4), T(2, 7, 3, 6)
    check("nn.attention", peer, *qkv)
    check("nn.attention", lambda q, k, v: peer(q, k, v, True), *qkv, causal_mask="TopLeft")
    x, index = T(4, 5), T(values=np.random.default_rng(2).integers(0, 4, (3, 5)), dtype="int64")
    check("gather_elements", lambda v, i: torch.gather(v, 0, i), x, index)
    check("scatter_elements", lambda v, i, u: v.scatter_add(0, i, u), x, index, T(3, 5), reduction="add")
    check("scatter_elements", lambda v, i, u: v.scatter_reduce(0, i, u, "amax"), x, index, T(3, 5), reduction="max")
    for mode, theirs in (("reflect", "reflect"), ("edge", "replicate"), ("circular", "circular")):
        check(
            "nn.pad",
            lambda v, m=theirs: F.pad(v, (2, 1, 1, 3), m),
            T(1, 2, 5, 6),
            (0, 0, 0, 0, 1, 3, 2, 1),
            pad_mode=mode,
        )
