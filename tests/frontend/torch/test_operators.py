# SPDX-License-Identifier: Apache-2.0
"""Every converter: a small module through torch.export and the importer, run by the interpreter, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import roundel as rd
from roundel.frontend.torch import from_torch

F = torch.nn.functional


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def leaves(value):
    return [v for part in value for v in leaves(part)] if isinstance(value, tuple | list) else [value]


def check(function, *inputs, dynamic=None, again=(), tolerance=1e-4):
    """``function`` imported once agrees with PyTorch on ``inputs`` and on every set of inputs of ``again``."""
    main = rd.interpret(from_torch(Module(function), inputs, dynamic_shapes=dynamic))["main"]
    for arguments in (inputs, *again):
        expected, found = leaves(function(*arguments)), leaves(main(*arguments))
        assert len(expected) == len(found)
        for e, f in zip(expected, found):
            f = np.asarray(f)
            assert (f.shape, f.dtype) == (tuple(e.shape), e.numpy().dtype)
            np.testing.assert_allclose(f, e.numpy(), rtol=tolerance, atol=tolerance)


def draw(*shape, dtype=torch.float32, low=-3.0, high=3.0):
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    values = torch.rand(shape, generator=generator) * (high - low) + low
    return values.to(dtype)


X, Y, ROW = draw(3, 5), draw(3, 1), draw(5)
INTS = draw(3, 5, dtype=torch.int64, low=-9, high=9)
UNIT = draw(3, 5, low=-0.9, high=0.9)
POSITIVE = draw(3, 5, low=0.1, high=4)
IMAGE = draw(2, 4, 7, 9)
SPECIAL = torch.tensor([0.0, -0.0, 1.5, -2.5, float("inf"), -float("inf"), float("nan")])

ELEMENTWISE = {
    "abs": (torch.abs, X),
    "acos": (torch.acos, UNIT),
    "acosh": (torch.acosh, POSITIVE + 1),
    "asin": (torch.asin, UNIT),
    "asinh": (torch.asinh, X),
    "atan": (torch.atan, X),
    "atanh": (torch.atanh, UNIT),
    "ceil": (torch.ceil, X),
    "cos": (torch.cos, X),
    "cosh": (torch.cosh, X),
    "erf": (torch.erf, X),
    "exp": (torch.exp, X),
    "exp2": (torch.exp2, X),
    "expm1": (torch.expm1, X),
    "floor": (torch.floor, X),
    "log": (torch.log, POSITIVE),
    "log1p": (torch.log1p, POSITIVE),
    "log2": (torch.log2, POSITIVE),
    "log10": (torch.log10, POSITIVE),
    "neg": (torch.neg, INTS),
    "round": (torch.round, torch.tensor([0.5, 1.5, -2.5, 2.4])),
    "rsqrt": (torch.rsqrt, POSITIVE),
    "sigmoid": (torch.sigmoid, X),
    "sign": (torch.sign, X),
    "sin": (torch.sin, X),
    "sinh": (torch.sinh, X),
    "sqrt": (torch.sqrt, POSITIVE),
    "sqrt of ints": (torch.sqrt, INTS.abs()),
    "tan": (torch.tan, UNIT),
    "tanh": (torch.tanh, X),
    "trunc": (torch.trunc, X),
    "relu": (torch.relu, X),
    "erfc": (torch.erfc, X),
    "isnan": (torch.isnan, SPECIAL),
    "isinf": (torch.isinf, SPECIAL),
    "isfinite": (torch.isfinite, SPECIAL),
    "isfinite of ints": (torch.isfinite, INTS),
    "square": (torch.square, X),
    "reciprocal": (torch.reciprocal, POSITIVE),
    "logical_not": (torch.logical_not, INTS),
    "bitwise_not": (torch.bitwise_not, INTS),
    "not": (lambda x: ~(x > 0), X),
    "gelu": (F.gelu, X),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
    "silu": (F.silu, X),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), X),
    "elu": (lambda x: F.elu(x, 0.7), X),
    "selu": (F.selu, X),
    "celu": (F.celu, X),
    "hardsigmoid": (F.hardsigmoid, X),
    "hardswish": (F.hardswish, X),
    "hardtanh": (F.hardtanh, X),
    "relu6": (F.relu6, X * 3),
    "softplus": (F.softplus, X),
    "mish": (F.mish, X),
    "clamp": (lambda x: x.clamp(-1, 2), X),
    "clamp below": (lambda x: x.clamp(max=0.5), X),
    "clamp by tensors": (lambda x, y: torch.clamp(x, y, y + 1), X, Y),
    "to": (lambda x: x.to(torch.int32), X),
    "to bool": (lambda x: x.bool(), INTS),
    "add": (torch.add, X, Y),
    "add alpha": (lambda x, y: torch.add(x, y, alpha=2.5), X, Y),
    "add mixed": (torch.add, X, INTS),
    "sub": (torch.sub, X, ROW),
    "mul": (torch.mul, X, Y),
    "mul by number": (lambda x: x * 2, X),
    "ints by float": (lambda x: x * 1.5, INTS),
    "rsub": (lambda x: 3 - x, X),
    "div": (torch.div, X, POSITIVE),
    "div of ints": (torch.div, INTS, INTS * INTS + 1),
    "div floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), X, POSITIVE),
    "div floor of ints": (lambda x, y: torch.div(x, y, rounding_mode="floor"), INTS, INTS * INTS + 2),
    "div trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), X, POSITIVE),
    "div trunc of ints": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), INTS, INTS * INTS + 2),
    "floor_divide": (lambda x: x // 3, INTS),
    "remainder": (torch.remainder, X, POSITIVE),
    "remainder of ints": (lambda x: x % 4, INTS),
    "fmod": (torch.fmod, X, POSITIVE),
    "fmod of ints": (lambda x: torch.fmod(x, 4), INTS),
    "maximum": (torch.maximum, X, Y),
    "minimum": (torch.minimum, X, Y),
    "maximum nan": (torch.maximum, SPECIAL, SPECIAL.flip(0)),
    "atan2": (torch.atan2, X, Y),
    "pow": (torch.pow, POSITIVE, X),
    "pow 2": (lambda x: x**2, X),
    "pow 0.5": (lambda x: x**0.5, POSITIVE),
    "number pow": (lambda x: 2.0**x, X),
    "and": (torch.bitwise_and, INTS, INTS + 3),
    "or": (torch.bitwise_or, INTS, INTS + 3),
    "xor": (torch.bitwise_xor, INTS, INTS + 3),
    "logical_and": (torch.logical_and, INTS, X),
    "logical_or": (torch.logical_or, INTS, X),
    "logical_xor": (torch.logical_xor, INTS, X),
    "eq": (torch.eq, INTS, INTS.flip(0)),
    "ne": (torch.ne, INTS, INTS.flip(0)),
    "lt": (torch.lt, X, Y),
    "le": (torch.le, X, Y),
    "gt": (lambda x: x > 0.5, X),
    "ge mixed": (torch.ge, INTS, X),
    "int above float": (lambda x: x > 1.5, INTS),
    "where": (torch.where, X > 0, X, Y),
    "where number": (lambda x: torch.where(x > 0, x, -1.0), X),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -float("inf")), X),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), X, POSITIVE),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=0.5), X, POSITIVE),
}
REDUCE = {
    "sum": (torch.sum, X),
    "sum ints": (lambda x: x.int().sum(), INTS),
    "sum bool": (lambda x: (x > 0).sum(1), X),
    "sum dim": (lambda x: x.sum((0, -1)), IMAGE),
    "mean": (torch.mean, X),
    "mean keep": (lambda x: x.mean(-1, keepdim=True), IMAGE),
    "amax": (lambda x: x.amax((1, 2)), IMAGE),
    "amin": (lambda x: x.amin(0), X),
    "prod": (torch.prod, UNIT),
    "prod dim": (lambda x: x.prod(1), UNIT),
    "max": (torch.max, X),
    "min": (torch.min, X),
    "max dim": (lambda x: tuple(torch.max(x, 1)), X),
    "min dim": (lambda x: tuple(torch.min(x, 0, keepdim=True)), X),
    "argmax": (torch.argmax, X),
    "argmin dim": (lambda x: x.argmin(-1, keepdim=True), X),
    "any": (lambda x: (x > 2).any(), X),
    "any dim": (lambda x: (x > 2).any(1), X),
    "all": (lambda x: (x > -2).all(0), X),
    "var": (lambda x: x.var((0, 1)), X),
    "var biased": (lambda x: x.var(-1, correction=0, keepdim=True), X),
    "std": (torch.std, X),
    "cumsum": (lambda x: x.cumsum(1), X),
    "cumsum scalar": (lambda x: x.cumsum(0), torch.tensor(2.0)),
    "topk": (lambda x: tuple(x.topk(2, -1)), X),
    "topk smallest": (lambda x: tuple(x.topk(2, 0, largest=False)), X),
    "norm": (torch.linalg.vector_norm, X),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1, (0,), True), X),
    "norm inf": (lambda x: torch.linalg.vector_norm(x, float("inf"), -1), X),
    "norm 3": (lambda x: torch.linalg.vector_norm(x, 3, -1), X),
    "norm 0": (lambda x: torch.linalg.vector_norm(x, 0, -1), X),
    "round decimals": (lambda x: torch.round(x, decimals=1), X),
    "fmax": (torch.fmax, SPECIAL, SPECIAL.flip(0)),
    "fmin": (torch.fmin, SPECIAL, SPECIAL.flip(0)),
    "var_mean": (lambda x: tuple(torch.var_mean(x, 1)), X),
    "sort": (lambda x: tuple(x.sort(0, True)), X),
    "cumprod": (lambda x: x.cumprod(-1), UNIT),
    "mean of scalar": (lambda x: x.mean(-1), torch.tensor(3.0)),
    "max of scalar": (lambda x: tuple(x.max(0)), torch.tensor(3.0)),
    "bools": (lambda x: (x > 0) * (x < 1) + (x > 2), X),
    "normalize": (F.normalize, X),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), X),
    "softmax": (lambda x: x.softmax(0), X),
    "log_softmax": (lambda x: x.log_softmax(-1), X),
    "sum of scalar": (torch.sum, torch.tensor(3.0)),
}
MOVE = {
    "view": (lambda x: x.view(5, 3), X),
    "reshape": (lambda x: x.t().reshape(-1), X),
    "flatten": (lambda x: x.flatten(1), IMAGE),
    "unsqueeze": (lambda x: x[None, :, None], X),
    "squeeze": (lambda x: x.squeeze(1), Y),
    "permute": (lambda x: x.permute(0, -1, 1, 2).contiguous(), IMAGE),
    "transpose": (lambda x: x.transpose(-1, 1).contiguous(), IMAGE),
    "t": (lambda x: x.t().clone(), X),
    "expand": (lambda x: x.expand(2, 3, 5).clone(), Y),
    "cat": (lambda x, y: torch.cat([x, y], -1), X, Y),
    "cat mixed": (lambda x, y: torch.cat([x, y]), X, INTS),
    "stack": (lambda x: torch.stack([x, x + 1], 1), X),
    "slice": (lambda x: x[1:, -4:-1:2].clone(), X),
    "slice past the end": (lambda x: x[1:100].clone(), X),
    "empty slice": (lambda x: x[2:1].clone(), X),
    "select": (lambda x: x[-1].clone(), X),
    "split": (lambda x: [v + 0 for v in x.split(2, 1)], X),
    "split sizes": (lambda x: [v + 0 for v in x.split([1, 4], 1)], X),
    "chunk": (lambda x: [v + 0 for v in x.chunk(2, -1)], X),
    "unbind": (lambda x: [v + 0 for v in x.unbind(1)], X),
    "flip": (lambda x: x.flip(0, -1), X),
    "repeat": (lambda x: x.repeat(2, 1, 3), X),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), X),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=7.0), X),
    "pad crops": (lambda x: F.pad(x, (-1, 2)), X),
    "pad reflect": (lambda x: F.pad(x, (1, 2), mode="reflect"), X[None]),
    "pad replicate": (lambda x: F.pad(x, (1, 2, 2, 0), mode="replicate"), IMAGE),
    "tril": (torch.tril, X),
    "triu": (lambda x: x.triu(1), X),
    "roll": (lambda x: x.roll(2, 1), X),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE),
    "embedding": (lambda i: F.embedding(i, X), INTS.abs() % 3),
    "index_select": (lambda x: x.index_select(1, torch.tensor([3, 0, 0])), X),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 4], [1, 1], [2, 3]])), X),
    "index": (lambda x: x[torch.tensor([0, -1])], X),
    "index two": (lambda x: x[:, torch.tensor([0, 3]), torch.tensor([[1], [2]])], IMAGE),
    "index apart": (lambda x: x[torch.tensor([0, 1]), :, torch.tensor([3, -2])], IMAGE),
    "index slice": (lambda x: x[..., torch.tensor([3, 0])], IMAGE),
    "index_put": (lambda x: x.index_put((torch.tensor([0, -1]),), torch.ones(5)), X),
    "index_put add": (lambda x: x.index_put((torch.tensor([1, 1, 0]), torch.tensor([2, 2, -1])), torch.ones(3), accumulate=True), X),
    "index_put within": (lambda x: torch.ops.aten.index_put(x, [None, torch.tensor([0, 3])], torch.ones(7, 9)), IMAGE),
    "index_put apart": (lambda x: torch.ops.aten.index_put(x, [torch.tensor([0, 1]), None, torch.tensor([3, 2])], torch.ones(2, 4, 9)), IMAGE),
    "index_put mask": (lambda x: torch.ops.aten.index_put(x, [x > 0], torch.tensor(7.0)), X),
    "slice_scatter": (lambda x: x.slice_scatter(torch.ones(3, 2), 1, 1, 3), X),
    "select_scatter": (lambda x: x.select_scatter(torch.ones(3), 1, -1), X),
    "scatter": (lambda x: x.scatter(1, torch.tensor([[0, 4], [1, 2]]), torch.ones(2, 2)), X),
    "scatter value": (lambda x: x.scatter(0, torch.tensor([[2, 0]]), 5.0), X),
    "scatter_add": (lambda x: x.scatter_add(1, torch.tensor([[0, 0], [1, 1]]), torch.ones(2, 2)), X),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), IMAGE),
    "nearest size": (lambda x: F.interpolate(x, (5, 11)), IMAGE),
    "bilinear": (lambda x: F.interpolate(x, (5, 11), mode="bilinear"), IMAGE),
    "bicubic": (lambda x: F.interpolate(x, (5, 11), mode="bicubic"), IMAGE),
    "bilinear corners": (lambda x: F.interpolate(x, (5, 11), mode="bilinear", align_corners=True), IMAGE),
}
CREATE = {
    "full": (lambda x: x + torch.full((5,), 2.5), X),
    "zeros_like": (lambda x: torch.zeros_like(x) + x, X),
    "ones": (lambda x: x + torch.ones(3, 1), X),
    "arange": (lambda x: x + torch.arange(5), X),
    "arange float": (lambda x: x + torch.arange(0.5, 3, 0.5), X),
    "eye": (lambda x: torch.eye(3) @ x, X),
    "scalar_tensor": (lambda x: x + torch.scalar_tensor(2.0), X),
    "constant": (lambda x: x + torch.tensor([1, 2, 3, 4, 5]), X),
    "full_like": (lambda x: torch.full_like(x, 3) * x, X),
    "one_hot": (lambda i: F.one_hot(i, 4), INTS.abs() % 4),
    "linspace": (lambda x: x + torch.linspace(0, 1, 5), X),
    "new_zeros": (lambda x: x.new_zeros(3, 5) + x, X),
}
NEURAL = {
    "conv1d": (lambda x, w=draw(6, 4, 3), b=draw(6): F.conv1d(x, w, b, 2, 1), IMAGE[:, :, 0]),
    "conv2d": (lambda x, w=draw(6, 4, 3, 3): F.conv2d(x, w, None, (2, 1), (0, 2)), IMAGE),
    "conv grouped": (lambda x, w=draw(8, 2, 3, 3): F.conv2d(x, w, padding=1, groups=2), IMAGE),
    "conv depthwise": (lambda x, w=draw(4, 1, 3, 3): F.conv2d(x, w, padding="same", groups=4), IMAGE),
    "conv dilated": (lambda x, w=draw(3, 4, 2, 2): F.conv2d(x, w, dilation=3), IMAGE),
    "conv3d": (lambda x, w=draw(2, 4, 2, 2, 2): F.conv3d(x, w), IMAGE[:, :, None].repeat(1, 1, 3, 1, 1)),
    "transposed": (lambda x, w=draw(4, 3, 3, 3): F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), IMAGE),
    "linear": (lambda x, w=draw(4, 5), b=draw(4): F.linear(x, w, b), X),
    "linear 3d": (lambda x, w=draw(4, 9): F.linear(x, w), IMAGE),
    "mm": (torch.mm, X, draw(5, 2)),
    "bmm": (torch.bmm, IMAGE[0], draw(4, 9, 3)),
    "matmul": (torch.matmul, IMAGE, draw(9, 3)),
    "mv": (torch.mv, X, ROW),
    "dot": (torch.dot, ROW, ROW + 1),
    "addmm": (lambda x, w=draw(2), b=draw(5, 2): torch.addmm(w, x, b, beta=0.5, alpha=2), X),
    "einsum": (lambda x, w=draw(4, 3): torch.einsum("bchw,cd->bhwd", x, w).contiguous(), IMAGE),
    "batch_norm": (lambda x, m=draw(4), v=draw(4).abs(), w=draw(4): F.batch_norm(x, m, v, w, m), IMAGE),
    "layer_norm": (lambda x, w=draw(9), b=draw(9): F.layer_norm(x, (9,), w, b), IMAGE),
    "plain layer_norm": (lambda x: F.layer_norm(x, (7, 9)), IMAGE),
    "group_norm": (lambda x, w=draw(4), b=draw(4): F.group_norm(x, 2, w, b), IMAGE),
    "instance_norm": (F.instance_norm, IMAGE),
    "rms_norm": (lambda x, w=draw(9): F.rms_norm(x, (9,), w), IMAGE),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), IMAGE[:, :, 0]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE),
    "max_pool ceil": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), IMAGE),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE),
    "avg_pool without pad": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGE),
    "avg_pool divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), IMAGE),
    "one image": (lambda x: F.max_pool2d(x, 2), IMAGE[0]),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 3), IMAGE[0]),
    "adaptive 1": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), IMAGE),
    "dropout": (lambda x: F.dropout(x, 0.5, False), X),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q + 1, q - 1), IMAGE),
    "attention causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), IMAGE),
    "attention mask": (lambda q, m: F.scaled_dot_product_attention(q, q, q, m), IMAGE, draw(7, 7) > 0),
    "attention bias": (lambda q, m: F.scaled_dot_product_attention(q, q, q, m), IMAGE, draw(7, 7)),
    "attention grouped": (lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True, scale=0.3), IMAGE, IMAGE[:, :2]),
    "glu": (lambda x: F.glu(x, 1), IMAGE),
}
CASES = {**ELEMENTWISE, **REDUCE, **MOVE, **CREATE, **NEURAL}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    function, *inputs = CASES[name]
    check(function, *inputs)


N = torch.export.Dim("n", min=2, max=64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(-1, 4),
        lambda x: x * x.shape[0],
        lambda x: torch.cat([x, x * 2]),
        lambda x: x.softmax(0),
        lambda x: x + torch.arange(x.shape[0])[:, None],
        lambda x: x.view(x.shape[0], 2, 4).transpose(0, 1).reshape(2, -1),
        lambda x: (x @ x.t()).masked_fill(torch.ones(x.shape[0], x.shape[0]).triu(1).bool(), -1e4),
        lambda x: x.mean(0),
        lambda x: x.var(0),
        lambda x: F.pad(x, (0, 0, 1, 2)),
        lambda x: x[-1] + 0,
        lambda x: torch.zeros(x.shape[0] * 2, 3) + 1,
    ],
)
def test_a_dynamic_size(function):
    check(function, draw(6, 8), dynamic=(({0: N},),), again=[(draw(3, 8),), (draw(11, 8),)])
