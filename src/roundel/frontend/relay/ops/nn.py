# SPDX-License-Identifier: Apache-2.0
"""Relay's neural operators: convolutions, pooling, products, normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _number(size: Any) -> int | None:
    return size.value if isinstance(size, tir.IntImm) else None


def kernel_of(node: NodeContext, x: Any, weight: Any, n: int) -> tuple[Any, str, int]:
    """Weights, their layout and the number of groups. Weights of depthwise convolutions are (channels, multiplier, ...) in Relay."""
    groups = node.attr("groups", 1)
    layout = node.attr("kernel_layout", "OI" + _SPACE[n])
    data = node.attr("data_layout", "NC" + _SPACE[n])
    if sorted(layout) != sorted("OI" + _SPACE[n]) or sorted(data) != sorted("NC" + _SPACE[n]):
        raise node.unsupported(f"data in layout {data} and weights in layout {layout}; layouts with blocks are converted by layout_transform")
    if groups == 1 or _number(x.sinfo.shape[data.index("C")]) != groups:
        return weight, layout, groups
    order = tuple(layout.index(a) for a in "OI" + _SPACE[n])
    if order != tuple(range(n + 2)):
        weight = node.make("permute_dims", weight, axes=order)
    shape = weight.sinfo.shape
    return node.reshape(weight, [shape[0] * shape[1], 1, *shape[2:]]), "OI" + _SPACE[n], groups


def convolved(node: NodeContext, x: Any, weight: Any, out_dtype: Any = None) -> Any:
    """A convolution over one to three axes of space by the node's attributes."""
    n = x.sinfo.ndim - 2
    if n not in _SPACE:
        raise node.error(f"a tensor of {x.sinfo.ndim} dimensions is convolved; batch, channels and one to three axes of space are expected")
    weight, layout, groups = kernel_of(node, x, weight, n)
    out = node.attr("out_layout", None)
    return node.make(f"nn.conv{n}d", x, weight, strides=node.ints("strides", (1,) * n), padding=node.ints("padding", (0,) * n),
                     dilation=node.ints("dilation", (1,) * n), groups=groups, data_layout=node.attr("data_layout", "NC" + _SPACE[n]), kernel_layout=layout,
                     out_layout=out, out_dtype=out_dtype or node.attr("out_dtype", None))


converter("nn.conv1d", "nn.conv2d", "nn.conv3d")(convolved)


@converter("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _transposed(node: NodeContext, x: Any, weight: Any) -> Any:
    """Weights are (in, out / groups, ...); up to TVM 0.11 their layout was called OIHW nevertheless, which ``saved`` mends."""
    n = x.sinfo.ndim - 2
    return node.make(node.kind, x, weight, strides=node.ints("strides", (1,) * n), padding=node.ints("padding", (0,) * n),
                     output_padding=node.ints("output_padding", (0,) * n), dilation=node.ints("dilation", (1,) * n), groups=node.attr("groups", 1),
                     data_layout=node.attr("data_layout", "NC" + _SPACE[n]), kernel_layout=node.attr("kernel_layout", "IO" + _SPACE[n]),
                     out_layout=node.attr("out_layout", None), out_dtype=node.attr("out_dtype", None))


def _pool(kind: str, n: int) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Any) -> Any:
        more = {"count_include_pad": node.flag("count_include_pad")} if kind == "avg" else {}
        return node.make(f"nn.{kind}_pool{n}d", x, pool_size=node.ints("pool_size"), strides=node.ints("strides", (1,) * n),
                         padding=node.ints("padding", (0,) * n), dilation=node.ints("dilation", (1,) * n), ceil_mode=node.flag("ceil_mode"),
                         layout=node.attr("layout", "NC" + _SPACE[n]), **more)

    return convert


def _global(op: str, n: int) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Any) -> Any:
        layout = node.attr("layout", "NC" + _SPACE[n])
        return node.make(op, x, axis=tuple(layout.index(a) for a in _SPACE[n]), keepdims=True)

    return convert


def _adaptive(kind: str, n: int) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Any) -> Any:
        wanted = node.ints("output_size", ()) or None
        wanted = wanted * n if wanted is not None and len(wanted) == 1 else wanted
        return node.make(f"nn.adaptive_{kind}_pool{n}d", x, output_size=wanted, layout=node.attr("layout", "NC" + _SPACE[n]))

    return convert


for _n in (1, 2, 3):
    for _kind, _op in (("avg", "mean"), ("max", "max")):
        converter(f"nn.{_kind}_pool{_n}d")(_pool(_kind, _n))
        converter(f"nn.global_{_kind}_pool{_n}d")(_global(_op, _n))
        converter(f"nn.adaptive_{_kind}_pool{_n}d")(_adaptive(_kind, _n))


def swapped(node: NodeContext, x: Any) -> Any:
    """The last two axes exchanged."""
    n = x.sinfo.ndim
    return node.make("permute_dims", x, axes=(*range(n - 2), n - 1, n - 2))


@converter("nn.dense")
def dense(node: NodeContext, x: Any, weight: Any) -> Any:
    """``x @ weight.T``."""
    return node.make("matmul", x, swapped(node, weight), out_dtype=node.attr("out_dtype", None))


@converter("nn.matmul", "nn.batch_matmul")
def _matmul(node: NodeContext, a: Any, b: Any) -> Any:
    a, b = (swapped(node, v) if node.flag(f) else v for v, f in ((a, "transpose_a"), (b, "transpose_b")))
    return node.make("matmul", a, b, out_dtype=node.attr("out_dtype", None))


@converter("einsum")
def _einsum(node: NodeContext, operands: tuple[Any, ...]) -> Any:
    return node.make("einsum", graph.Tuple(operands), subscripts=node.attr("equation").replace(" ", ""))


@converter("nn.softmax", "nn.fast_softmax", "nn.log_softmax")
def _softmax(node: NodeContext, x: Any) -> Any:
    return node.make("nn.log_softmax" if node.kind == "nn.log_softmax" else "nn.softmax", x, axis=node.attr("axis", -1))


@converter("nn.batch_norm")
def _batch_norm(node: NodeContext, x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    """With the moving mean and variance, which are the second and third result."""
    out = node.make("nn.batch_norm", x, gamma, beta, mean, variance, axis=node.attr("axis", 1), epsilon=float(node.attr("epsilon", 1e-5)),
                    center=node.flag("center", True), scale=node.flag("scale", True))
    return node.emit(graph.TupleGetItem(out, 0)), mean, variance


@converter("nn.layer_norm")
def _layer_norm(node: NodeContext, x: Any, gamma: Any, beta: Any) -> Any:
    axis = node.attr("axis", -1) % x.sinfo.ndim
    return _normalised(node, "nn.layer_norm", x, gamma, beta, axes=(axis,))


@converter("nn.group_norm")
def _group_norm(node: NodeContext, x: Any, gamma: Any, beta: Any) -> Any:
    axis = node.attr("axis", 1) % x.sinfo.ndim
    return _normalised(node, "nn.group_norm", x, gamma, beta, num_groups=node.attr("num_groups"), channel_axis=axis, axes=_others(x, axis))


@converter("nn.instance_norm")
def _instance_norm(node: NodeContext, x: Any, gamma: Any, beta: Any) -> Any:
    axis = node.attr("axis", 1) % x.sinfo.ndim
    return _normalised(node, "nn.instance_norm", x, gamma, beta, channel_axis=axis, axes=_others(x, axis))


def _others(x: Any, axis: int) -> tuple[int, ...]:
    """All axes but the batch and one."""
    return tuple(a for a in range(1, x.sinfo.ndim) if a != axis)


def _normalised(node: NodeContext, op: str, x: Any, gamma: Any, beta: Any, **attrs: Any) -> Any:
    return node.make(op, x, gamma, beta, epsilon=float(node.attr("epsilon", 1e-5)), center=node.flag("center", True), scale=node.flag("scale", True), **attrs)


@converter("nn.lrn")
def _lrn(node: NodeContext, x: Any) -> Any:
    return node.make("nn.lrn", x, size=node.attr("size", 5), axis=node.attr("axis", 1) % x.sinfo.ndim, bias=float(node.attr("bias", 2)),
                     alpha=float(node.attr("alpha", 1e-4)), beta=float(node.attr("beta", 0.75)))


@converter("nn.l2_normalize")
def _l2_normalize(node: NodeContext, x: Any) -> Any:
    """``x / sqrt(max(sum(x * x), eps))``."""
    axis = tuple(a % x.sinfo.ndim for a in node.ints("axis"))
    total = node.make("sum", node.make("square", x), axis=axis, keepdims=True)
    return node.make("multiply", x, node.make("rsqrt", node.make("maximum", total, node.like(node.attr("eps"), x))))
