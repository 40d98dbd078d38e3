# SPDX-License-Identifier: Apache-2.0
"""Small models of many kinds in Relay, each with the same model in PyTorch and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from roundel.frontend.relay import expr as relay

from .written import Node

MODELS: dict[str, Callable[[], Model]] = {}


@dataclass
class Model:
    """A module, tensors of its parameters, inputs by name, and what PyTorch gives for them."""

    module: relay.Module
    params: dict[str, np.ndarray]
    inputs: dict[str, np.ndarray]
    expected: tuple[np.ndarray, ...]


class Weights:
    """Random parameters, as variables of a function and as tensors."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.params: dict[str, np.ndarray] = {}
        self.variables: list[relay.Var] = []

    def __call__(self, name: str, *shape: int, positive: bool = False) -> relay.Var:
        data = (self.rng.standard_normal(shape) / max(1.0, np.prod(shape[1:])) ** 0.5).astype(np.float32)
        self.params[name] = (np.abs(data) + 0.5).astype(np.float32) if positive else data
        self.variables.append(relay.Var(name, relay.TensorType(tuple(shape), "float32")))
        return self.variables[-1]

    def t(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.params[name])

    def model(self, inputs: dict[str, np.ndarray], variables: list[relay.Var], body: relay.Expr, expected: Any) -> Model:
        results = expected if isinstance(expected, tuple) else (expected,)
        return Model(relay.Module({"main": relay.Function((*variables, *self.variables), body)}), self.params, inputs,
                     tuple(np.asarray(r.detach() if isinstance(r, torch.Tensor) else r) for r in results))


def op(name: str, *args: relay.Expr, **attrs: Any) -> relay.Call:
    return relay.Call(name, args, attrs)


def const(value: Any, dtype: str = "float32") -> relay.Constant:
    return relay.Constant(np.asarray(value, dtype))


def tensor(name: str, *shape: Any, dtype: str = "float32") -> relay.Var:
    return relay.Var(name, relay.TensorType(shape, dtype))


def model(fn: Callable[[], Model]) -> Callable[[], Model]:
    MODELS[fn.__name__] = fn
    return fn


def _norm(w: Weights, x: relay.Expr, name: str, channels: int) -> relay.Expr:
    names = [w(f"{name}_{k}", channels, positive=k == "var") for k in ("gamma", "beta", "mean", "var")]
    return relay.Item(op("nn.batch_norm", x, *names), 0)


def _torch_norm(w: Weights, x: torch.Tensor, name: str) -> torch.Tensor:
    return F.batch_norm(x, w.t(f"{name}_mean"), w.t(f"{name}_var"), w.t(f"{name}_gamma"), w.t(f"{name}_beta"))


def _conv(w: Weights, x: relay.Expr, name: str, out: int, inside: int, k: int, **attrs: Any) -> relay.Expr:
    return op("nn.conv2d", x, w(name, out, inside, k, k), channels=out, kernel_size=[k, k], **attrs)


@model
def resnet() -> Model:
    w, x = Weights(1), tensor("data", 2, 3, 17, 19)
    data = w.rng.standard_normal((2, 3, 17, 19)).astype(np.float32)
    h = op("nn.relu", _norm(w, _conv(w, x, "stem", 8, 3, 7, strides=[2, 2], padding=[3, 3, 3, 3]), "bn0", 8))
    h = op("nn.max_pool2d", h, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
    a = op("nn.relu", _norm(w, _conv(w, h, "a", 16, 8, 3, strides=[2, 2], padding=[1, 1, 1, 1]), "bn1", 16))
    a = _norm(w, _conv(w, a, "b", 16, 16, 3, padding=[1, 1, 1, 1]), "bn2", 16)
    h = op("nn.relu", op("add", a, _conv(w, h, "down", 16, 8, 1, strides=[2, 2])))
    h = op("nn.batch_flatten", op("nn.global_avg_pool2d", h))
    out = op("nn.softmax", op("nn.bias_add", op("nn.dense", h, w("fc", 10, 16), units=10), w("bias", 10), axis=-1))
    t = F.max_pool2d(F.relu(_torch_norm(w, F.conv2d(torch.from_numpy(data), w.t("stem"), stride=2, padding=3), "bn0")), 3, 2, 1)
    u = _torch_norm(w, F.conv2d(F.relu(_torch_norm(w, F.conv2d(t, w.t("a"), stride=2, padding=1), "bn1")), w.t("b"), padding=1), "bn2")
    t = F.relu(u + F.conv2d(t, w.t("down"), stride=2)).mean((2, 3))
    return w.model({"data": data}, [x], out, F.softmax(t @ w.t("fc").T + w.t("bias"), -1))


@model
def mobilenet() -> Model:
    w, x = Weights(2), tensor("data", 1, 3, 16, 16)
    data = w.rng.standard_normal((1, 3, 16, 16)).astype(np.float32)
    h = op("clip", _conv(w, x, "stem", 8, 3, 3, strides=[2, 2], padding=[1, 1]), a_min=0.0, a_max=6.0)
    e = op("clip", _conv(w, h, "expand", 24, 8, 1), a_min=0.0, a_max=6.0)
    d = op("clip", _conv(w, e, "depth", 24, 1, 3, padding=[1, 1, 1, 1], groups=24), a_min=0.0, a_max=6.0)
    h = op("add", _conv(w, d, "project", 8, 24, 1), h)
    multiplied = op("nn.conv2d", h, w("twice", 8, 2, 3, 3), channels=16, kernel_size=[3, 3], groups=8)
    out = op("mean", multiplied, axis=[2, 3])
    t = F.conv2d(torch.from_numpy(data), w.t("stem"), stride=2, padding=1).clamp(0, 6)
    d_t = F.conv2d(F.conv2d(t, w.t("expand")).clamp(0, 6), w.t("depth"), padding=1, groups=24).clamp(0, 6)
    t = F.conv2d(d_t, w.t("project")) + t
    return w.model({"data": data}, [x], out, F.conv2d(t, w.t("twice").reshape(16, 1, 3, 3), groups=8).mean((2, 3)))


@model
def alexnet() -> Model:
    w, x = Weights(3), tensor("data", 1, 3, 23, 23)
    data = w.rng.standard_normal((1, 3, 23, 23)).astype(np.float32)
    h = op("nn.relu", op("nn.bias_add", _conv(w, x, "c1", 8, 3, 5, strides=[2, 2]), w("b1", 8)))
    h = op("nn.avg_pool2d", op("nn.lrn", h, size=5, alpha=1e-3, bias=1.0), pool_size=[3, 3], strides=[2, 2], padding=[1, 1], count_include_pad=True)
    h = relay.Item(op("nn.dropout", op("nn.leaky_relu", op("nn.dense", op("nn.batch_flatten", h), w("fc", 12, 200), units=12), alpha=0.1)), 0)
    out = op("nn.log_softmax", op("nn.dense", h, w("fc2", 7, 12), units=7))
    t = F.local_response_norm(F.relu(F.conv2d(torch.from_numpy(data), w.t("c1"), w.t("b1"), stride=2)), 5, 1e-3, 0.75, 1.0)
    t = F.leaky_relu(F.avg_pool2d(t, 3, 2, 1, count_include_pad=True).flatten(1) @ w.t("fc").T, 0.1)
    return w.model({"data": data}, [x], out, F.log_softmax(t @ w.t("fc2").T, -1))


@model
def inception() -> Model:
    w, x = Weights(4), tensor("data", 1, 6, 11, 11)
    data = w.rng.standard_normal((1, 6, 11, 11)).astype(np.float32)
    branches = (_conv(w, x, "a", 4, 6, 1), _conv(w, x, "b", 5, 6, 3, padding=[1, 1]), _conv(w, x, "c", 3, 6, 3, padding=[2, 2], dilation=[2, 2]),
                op("nn.max_pool2d", x, pool_size=[3, 3], padding=[1, 1, 1, 1]))
    joined = op("concatenate", relay.Tuple(branches), axis=1)
    halves = op("split", joined, indices_or_sections=Node(2), axis=1)
    cut = op("split", joined, indices_or_sections=[4, 9], axis=1)
    out = relay.Tuple((op("multiply", relay.Item(halves, 0), relay.Item(halves, 1)), relay.Item(cut, 1),
                       op("strided_slice", joined, begin=[0, 1, 2], end=[1, 100, 9], strides=[1, 2, 3], axes=[0, 1, 2])))
    t = torch.from_numpy(data)
    j = torch.cat((F.conv2d(t, w.t("a")), F.conv2d(t, w.t("b"), padding=1), F.conv2d(t, w.t("c"), padding=2, dilation=2), F.max_pool2d(t, 3, 1, 1)), 1)
    return w.model({"data": data}, [x], out, (j[:, :9] * j[:, 9:], j[:, 4:9], j[:, 1::2, 2:9:3]))


@model
def unet() -> Model:
    w, x = Weights(5), tensor("data", 1, 2, 12, 12)
    data = w.rng.standard_normal((1, 2, 12, 12)).astype(np.float32)
    down = op("nn.relu", _conv(w, x, "down", 6, 2, 3, strides=[2, 2], padding=[1, 1]))
    up = op("nn.conv2d_transpose", down, w("up", 6, 4, 2, 2), channels=4, kernel_size=[2, 2], strides=[2, 2])
    near = op("nn.upsampling", down, scale_h=2.0, scale_w=2.0)
    linear = op("image.resize2d", down, size=[12, 12])
    h = op("concatenate", relay.Tuple((x, up, near, linear)), axis=1)
    out = op("sigmoid", _conv(w, op("nn.instance_norm", h, w("g", 18), w("b", 18)), "head", 1, 18, 1))
    t = torch.from_numpy(data)
    d = F.relu(F.conv2d(t, w.t("down"), stride=2, padding=1))
    j = torch.cat((t, F.conv_transpose2d(d, w.t("up"), stride=2), F.interpolate(d, scale_factor=2), F.interpolate(d, size=(12, 12), mode="bilinear")), 1)
    return w.model({"data": data}, [x], out, torch.sigmoid(F.conv2d(F.instance_norm(j, weight=w.t("g"), bias=w.t("b")), w.t("head"))))


def _linear(w: Weights, x: relay.Expr, name: str, out: int, inside: int) -> relay.Expr:
    return op("add", op("nn.dense", x, w(name, out, inside), units=out), w(f"{name}_bias", out))


@model
def bert() -> Model:
    w, ids, mask = Weights(6), tensor("ids", 2, 7, dtype="int32"), tensor("mask", 2, 7, dtype="int32")
    inputs = {"ids": w.rng.integers(0, 30, (2, 7)).astype(np.int32), "mask": np.array([[1] * 7, [1] * 5 + [0] * 2], np.int32)}
    e = op("add", op("take", w("words", 30, 16), ids, axis=Node(0)), w("places", 7, 16))
    e = op("nn.layer_norm", e, w("g0", 16), w("b0", 16), epsilon=1e-12)
    flat = op("reshape", e, newshape=[-1, 16])
    heads = [op("transpose", op("reshape", _linear(w, flat, n, 16, 16), newshape=[2, 7, 4, 4]), axes=[0, 2, 1, 3]) for n in "qkv"]
    q, k, v = (op("reshape", h, newshape=[-3, -2]) for h in heads)
    scores = op("divide", op("nn.batch_matmul", q, k, transpose_b=True), const(2.0))
    hidden = op("multiply", op("subtract", const(1.0), op("cast", mask, dtype="float32")), const(-10000.0))
    hidden = op("expand_dims", hidden, axis=1, num_newaxis=2)
    p = op("nn.softmax", op("add", op("reshape", scores, newshape=[2, 4, 7, 7]), hidden))
    c = op("reshape", op("nn.batch_matmul", op("reshape", p, newshape=[8, 7, 7]), v), newshape=[-4, 2, 4, -2])
    c = op("reshape", op("transpose", c, axes=[0, 2, 1, 3]), newshape=[-3, -3])
    h = op("add", _linear(w, c, "o", 16, 16), flat)
    up = _linear(w, h, "up", 32, 16)
    gelu = op("multiply", op("multiply", up, const(0.5)), op("add", op("erf", op("divide", up, const(2 ** 0.5))), const(1.0)))
    h = op("reshape", op("add", _linear(w, gelu, "down", 16, 32), h), newshape=[2, 7, 16])
    pooled = op("tanh", _linear(w, op("squeeze", op("strided_slice", h, begin=[0, 0, 0], end=[2, 1, 16], strides=[1, 1, 1]), axis=[1]), "pool", 16, 16))

    def lin(x: torch.Tensor, n: str) -> torch.Tensor:
        return F.linear(x, w.t(n), w.t(f"{n}_bias"))

    t = F.layer_norm(w.t("words")[torch.from_numpy(inputs["ids"])] + w.t("places"), (16,), w.t("g0"), w.t("b0"), 1e-12)
    tq, tk, tv = (lin(t, n).reshape(2, 7, 4, 4).transpose(1, 2) for n in "qkv")
    a = torch.softmax(tq @ tk.transpose(-1, -2) / 2 + (1 - torch.from_numpy(inputs["mask"]).float())[:, None, None] * -10000, -1)
    u = lin((a @ tv).transpose(1, 2).reshape(2, 7, 16), "o") + t
    u = lin(F.gelu(lin(u, "up")), "down") + u
    return w.model(inputs, [ids, mask], relay.Tuple((h, pooled)), (u, torch.tanh(lin(u[:, 0], "pool"))))


def _lstm_cell(w: Weights, x: relay.Expr, h: relay.Expr, c: relay.Expr) -> tuple[relay.Expr, relay.Expr]:
    weights = {v.name: v for v in w.variables}
    gates = op("add", op("nn.dense", x, weights["wx"], units=24), op("nn.dense", h, weights["wh"], units=24))
    gates = op("nn.bias_add", gates, weights["wb"], axis=-1)
    parts = op("split", gates, indices_or_sections=Node(4), axis=1)
    i, f, g, o = (relay.Item(parts, k) for k in range(4))
    c = op("add", op("multiply", op("sigmoid", f), c), op("multiply", op("sigmoid", i), op("tanh", g)))
    return op("multiply", op("sigmoid", o), op("tanh", c)), c


def _torch_lstm(w: Weights, data: np.ndarray) -> torch.Tensor:
    cell = torch.nn.LSTMCell(5, 6)
    state = {"weight_ih": w.t("wx"), "weight_hh": w.t("wh"), "bias_ih": w.t("wb"), "bias_hh": torch.zeros(24)}
    cell.load_state_dict(state)
    h, c, outs = torch.zeros(data.shape[0], 6), torch.zeros(data.shape[0], 6), []
    for t in range(data.shape[1]):
        h, c = cell(torch.from_numpy(data[:, t]), (h, c))
        outs.append(h)
    return torch.stack(outs, 1)


def _lstm_weights(seed: int) -> Weights:
    w = Weights(seed)
    w("wx", 24, 5), w("wh", 24, 6), w("wb", 24)
    return w


@model
def lstm_unrolled() -> Model:
    w, x = _lstm_weights(7), tensor("data", 2, 4, 5)
    data = w.rng.standard_normal((2, 4, 5)).astype(np.float32)
    h = c = const(np.zeros((2, 6)))
    outs = []
    for t in range(4):
        step = op("squeeze", op("strided_slice", x, begin=[0, t, 0], end=[2, t + 1, 5], strides=[1, 1, 1]), axis=[1])
        h, c = _lstm_cell(w, step, h, c)
        outs.append(h)
    return w.model({"data": data}, [x], op("stack", relay.Tuple(tuple(outs)), axis=Node(1)), _torch_lstm(w, data))


@model
def lstm_loop() -> Model:
    """The loop is a function of its own that calls itself, as converters of TensorFlow and ONNX loops write it."""
    w, x = _lstm_weights(8), tensor("data", 2, 4, 5)
    data = w.rng.standard_normal((2, 4, 5)).astype(np.float32)
    i, h, c = tensor("i", dtype="int32"), tensor("h", 2, 6), tensor("c", 2, 6)
    loop = relay.Var("while_loop")
    step = op("squeeze", op("take", x, op("expand_dims", i, axis=0), axis=Node(1)), axis=[1])
    new_h, new_c = _lstm_cell(w, step, h, c)
    body = relay.If(op("less", i, const(4, "int32")), relay.Call(loop, (op("add", i, const(1, "int32")), new_h, new_c)), relay.Tuple((i, h, c)))
    zero = const(np.zeros((2, 6)))
    result = relay.Let(loop, relay.Function((i, h, c), body), relay.Item(relay.Call(loop, (const(0, "int32"), zero, zero)), 1))
    return w.model({"data": data}, [x], result, _torch_lstm(w, data)[:, -1])


@model
def gru() -> Model:
    w, x, h = Weights(9), tensor("data", 3, 4), tensor("state", 3, 5)
    data, state = (w.rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (3, 5)))
    a = op("split", _linear(w, x, "wx", 15, 4), indices_or_sections=Node(3), axis=1)
    b = op("split", _linear(w, h, "wh", 15, 5), indices_or_sections=Node(3), axis=1)
    r, z = (op("sigmoid", op("add", relay.Item(a, k), relay.Item(b, k))) for k in range(2))
    n = op("tanh", op("add", relay.Item(a, 2), op("multiply", r, relay.Item(b, 2))))
    out = op("add", op("multiply", op("subtract", const(1.0), z), n), op("multiply", z, h))
    cell = torch.nn.GRUCell(4, 5)
    cell.load_state_dict({"weight_ih": w.t("wx"), "weight_hh": w.t("wh"), "bias_ih": w.t("wx_bias"), "bias_hh": w.t("wh_bias")})
    return w.model({"data": data, "state": state}, [x, h], out, cell(torch.from_numpy(data), torch.from_numpy(state)))


@model
def gpt() -> Model:
    """Causal attention, a fused function, and a module with functions of its own."""
    w, x = Weights(10), tensor("data", 1, 5, 8)
    data = w.rng.standard_normal((1, 5, 8)).astype(np.float32)
    causal = relay.Constant(np.tril(np.ones((5, 5), bool)))
    scores = op("multiply", op("nn.batch_matmul", x, x, transpose_b=True), const(0.25))
    p = op("nn.softmax", op("where", causal, scores, const(-1e9)), axis=-1)
    mixed = op("nn.batch_matmul", p, x)
    arg = tensor("p0", 1, 5, 8)
    cube = op("multiply", op("power", arg, const(3.0)), const(0.044715))
    inner = op("tanh", op("multiply", op("add", arg, cube), const(0.7978845608)))
    gelu = relay.Function((arg,), op("multiply", op("multiply", arg, const(0.5)), op("add", inner, const(1.0))), {"Primitive": 1, "hash": "abc"})
    residual = relay.Function((r := tensor("x", 1, 5, 8), s := tensor("y", 1, 5, 8)), op("add", r, s))
    out = relay.Call(relay.GlobalVar("residual"), (relay.Call(gelu, (mixed,)), x))
    ranked = op("topk", op("reshape", out, newshape=[5, 8]), k=Node(3), axis=1)
    t = torch.from_numpy(data)
    a = torch.softmax(torch.where(torch.tril(torch.ones(5, 5, dtype=torch.bool)), t @ t.transpose(1, 2) * 0.25, torch.tensor(-1e9)), -1) @ t
    expected = F.gelu(a, approximate="tanh") + t
    values, places = expected.reshape(5, 8).topk(3, 1)
    made = w.model({"data": data}, [x], relay.Tuple((out, relay.Item(ranked, 0), relay.Item(ranked, 1))), (expected, values, places.int()))
    made.module = relay.Module({"residual": residual, **made.module.functions})
    return made


@model
def wide_and_deep() -> Model:
    """Any number of rows."""
    w, ids, dense = Weights(11), tensor("ids", relay.ANY, 3, dtype="int64"), tensor("dense", relay.ANY, 4)
    inputs = {"ids": w.rng.integers(0, 20, (5, 3)), "dense": w.rng.standard_normal((5, 4)).astype(np.float32)}
    deep = op("reshape", op("take", w("table", 20, 6), ids, axis=Node(0)), newshape=[-1, 18])
    h = op("nn.relu", _linear(w, op("concatenate", relay.Tuple((deep, dense)), axis=1), "fc", 8, 22))
    wide = op("sum", op("take", w("wide", 20), ids), axis=[1], keepdims=True)
    out = op("sigmoid", op("add", _linear(w, h, "out", 1, 8), wide))
    i, d = torch.from_numpy(inputs["ids"]), torch.from_numpy(inputs["dense"])
    t = F.relu(F.linear(torch.cat((w.t("table")[i].reshape(5, 18), d), 1), w.t("fc"), w.t("fc_bias")))
    t = torch.sigmoid(F.linear(t, w.t("out"), w.t("out_bias")) + w.t("wide")[i].sum(1, keepdim=True))
    return w.model(inputs, [ids, dense], out, t)


@model
def quantised() -> Model:
    """Channels last and 8 bits, as converters of TFLite write it: weights HWIO and, of depthwise convolutions, HWOI."""
    w, x = Weights(12), tensor("data", 1, 8, 8, 4)
    data = w.rng.random((1, 8, 8, 4)).astype(np.float32)
    k1, k2 = w.rng.integers(-60, 60, (3, 3, 4, 8)).astype(np.int8), w.rng.integers(-60, 60, (3, 3, 8, 1)).astype(np.int8)
    bias = w.rng.integers(-500, 500, 8).astype(np.int32)
    s_in, s_w, s_mid, s_out = 0.00391, 0.01013, 0.05307, 0.09017
    q = op("qnn.quantize", x, const(s_in), const(-128, "int32"), out_dtype="int8")
    padded = op("nn.pad", q, const(-128, "int8"), pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])
    h = op("qnn.conv2d", padded, relay.Constant(k1), const(-128, "int32"), const(0, "int32"), const(s_in), const(s_w), channels=8, kernel_size=[3, 3],
           data_layout="NHWC", kernel_layout="HWIO")
    h = op("nn.bias_add", h, relay.Constant(bias), axis=3)
    h = op("qnn.requantize", h, const(s_in * s_w), const(0, "int32"), const(s_mid), const(-10, "int32"), out_dtype="int8")
    d = op("qnn.conv2d", h, relay.Constant(k2), const(-10, "int32"), const(0, "int32"), const(s_mid), const(s_w), channels=8, kernel_size=[3, 3], groups=8,
           data_layout="NHWC", kernel_layout="HWOI", padding=[1, 1, 1, 1])
    d = op("qnn.requantize", d, const(s_mid * s_w), const(0, "int32"), const(s_out), const(5, "int32"), out_dtype="int8")
    both = op("qnn.add", h, d, const(s_mid), const(-10, "int32"), const(s_out), const(5, "int32"), const(0.1), const(0, "int32"))
    out = op("qnn.dequantize", both, const(0.1), const(0, "int32"))

    def stored(v: np.ndarray, zero: int) -> np.ndarray:
        return np.clip(np.floor(v.astype(np.float64) + 0.5) + zero, -128, 127)

    def conv(v: np.ndarray, k: np.ndarray, **more: Any) -> np.ndarray:  # (n, h, w, c) and (h, w, in, out)
        out = F.conv2d(torch.from_numpy(v).permute(0, 3, 1, 2).double(), torch.from_numpy(k).permute(3, 2, 0, 1).double(), **more)
        return out.permute(0, 2, 3, 1).numpy()

    f = np.float32
    whole = stored(data / f(s_in), -128)
    mid = stored(((conv(whole + 128, k1, padding=1) + bias).astype(f) * (f(s_in * s_w) / f(s_mid))), -10)
    low = stored(conv(mid + 10, k2.transpose(0, 1, 3, 2), padding=1, groups=8).astype(f) * (f(s_mid * s_w) / f(s_out)), 5)
    total = stored(((mid + 10).astype(f) * f(s_mid) + (low - 5).astype(f) * f(s_out)) / f(0.1), 0)
    return w.model({"data": data}, [x], out, (total * f(0.1)).astype(f))


@model
def branches() -> Model:
    """A branch that data decide, over a tuple."""
    w, x = Weights(13), tensor("data", 3, 4)
    data = w.rng.standard_normal((3, 4)).astype(np.float32)
    total = op("sum", x)
    halves = op("split", x, indices_or_sections=Node(2), axis=1)
    choice = relay.If(op("greater", total, const(0.0)), relay.Tuple((op("exp", relay.Item(halves, 0)), op("abs", x))),
                      relay.Tuple((op("negative", relay.Item(halves, 1)), op("nn.relu", x))))
    out = relay.Tuple((op("add", relay.Item(choice, 0), const(1.0)), relay.Item(choice, 1)))
    t = torch.from_numpy(data)
    expected = (t[:, :2].exp() + 1, t.abs()) if t.sum() > 0 else (-t[:, 2:] + 1, F.relu(t))
    return w.model({"data": data}, [x], out, expected)
