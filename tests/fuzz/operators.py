# SPDX-License-Identifier: Apache-2.0
"""The steps of random graphs: one per family of operators."""

from __future__ import annotations

import numpy as np
from onnx import helper

from .generator import DIMS, Generator, step

UNARY = ("Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Exp", "Erf", "Softplus", "HardSigmoid", "Elu", "Identity", "Selu", "LeakyRelu", "Celu", "Softsign",
         "Mish", "HardSwish", "Gelu", "Sin", "Cos", "Atan", "Sinh", "Asinh", "ThresholdedRelu", "Shrink", "Reciprocal")
POSITIVE = ("Sqrt", "Log", "Reciprocal")
INTEGER_UNARY = ("Abs", "Neg", "Sign", "Identity")
EXACT = {"Abs", "Neg", "Relu", "Identity", "Sign", "Max", "Min", "Add", "Sub"}
JUMPS = ("Floor", "Ceil", "Round", "Sign")
REDUCE = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceLogSumExp")


def number(v: np.ndarray) -> bool:
    return v.dtype.kind in "fi"


def real(v: np.ndarray) -> bool:
    return v.dtype.kind == "f"


def single(v: np.ndarray) -> bool:
    return v.dtype == np.float32


def ranked(v: np.ndarray) -> bool:
    return v.ndim > 0


def fits(x: np.ndarray):
    """Values of the same type that broadcast with ``x``."""
    def test(v: np.ndarray) -> bool:
        try:
            return v.dtype == x.dtype and np.broadcast_shapes(v.shape, x.shape) is not None
        except ValueError:
            return False

    return test


@step(3)
def unary(g: Generator) -> None:
    if name := g.pick(number):
        op = g.choose(UNARY if real(g.values[name]) else INTEGER_UNARY)
        g.emit(op, [name], exact=op in EXACT)


@step()
def positive(g: Generator) -> None:
    if name := g.pick(lambda v: real(v) and bool((v > 0.1).all())):
        g.emit(g.choose(POSITIVE), [name])


@step()
def rounding(g: Generator) -> None:
    if name := g.pick(real, jumps=True):
        g.emit(g.choose(JUMPS), [name], exact=True)


@step(3)
def binary(g: Generator) -> None:
    if name := g.pick(number):
        other = g.pick(fits(g.values[name]))
        if g.chance(0.3):
            shape = [d if g.chance(0.6) else 1 for d in g.values[name].shape]
            other = g.constant(g.array(shape[g.integer(0, len(shape) + 1):], g.values[name].dtype.name))
        op = g.choose(("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"))
        g.emit(op, [name, other] if g.chance(0.5) else [other, name], exact=op in EXACT)


@step()
def division(g: Generator) -> None:
    if name := g.pick(number):
        v = g.values[name]
        divisor = g.constant(np.where(g.array(v.shape[-1:], "bool"), 3, -2), v.dtype)
        op = g.choose(("Div", "Mod"))
        if real(v):
            g.emit("Div", [name, divisor])
        else:
            g.emit(op, [name, divisor], exact=True)


@step()
def power(g: Generator) -> None:
    if name := g.pick(lambda v: real(v) and bool((v > 0.1).all() and (v < 20).all())):
        g.emit("Pow", [name, g.constant(g.choose([2, 3, 0.5, -1]), g.values[name].dtype)])


@step()
def compare(g: Generator) -> None:
    if name := g.pick(number, jumps=True):
        op = g.choose(("Greater", "Equal", "LessOrEqual", "Less", "GreaterOrEqual"))
        g.emit(op, [name, g.constant(g.array((), g.values[name].dtype.name))], exact=True)


@step()
def logic(g: Generator) -> None:
    if name := g.pick(lambda v: v.dtype.kind == "b"):
        op = g.choose(("And", "Or", "Xor", "Not"))
        g.emit(op, [name] if op == "Not" else [name, g.pick(fits(g.values[name]))], exact=True)


@step()
def where(g: Generator) -> None:
    if (name := g.pick(number)) and (test := g.pick(lambda v: v.dtype.kind == "b")):
        g.emit("Where", [test, name, g.constant(g.array((), g.values[name].dtype.name))], exact=True)


@step(2)
def cast(g: Generator) -> None:
    to = g.choose(("float32", "float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"))
    if name := g.pick(lambda v: to[0] not in "u" or bool((v >= 0).all()), jumps=not to.startswith("f")):
        if to[0] != "f" and np.abs(g.values[name].astype("f8")).max(initial=0) > 100:
            return  # out of range: not defined
        g.emit("Cast", [name], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), exact=True)


@step()
def clip(g: Generator) -> None:
    if name := g.pick(number):
        dtype = g.values[name].dtype
        g.emit("Clip", [name, g.constant(-1, dtype), g.constant(2, dtype)] if g.chance(0.7) else [name, "", g.constant(1, dtype)], exact=True)


@step(2)
def transpose(g: Generator) -> None:
    if name := g.pick(ranked):
        g.emit("Transpose", [name], perm=[int(k) for k in g.rng.permutation(g.values[name].ndim)], exact=True)


@step(2)
def reshape(g: Generator) -> None:
    if name := g.pick():
        v = g.values[name]
        kind = g.integer(0, 5)
        if kind == 0 or v.ndim == 0:
            g.emit("Reshape", [name, g.constant([-1] if v.size else [0], np.int64)], exact=True, allowzero=int(not v.size))
        elif kind == 1:
            g.emit("Flatten", [name], axis=g.integer(0, v.ndim + 1), exact=True)
        elif kind == 2:
            g.emit("Unsqueeze", [name, g.constant([g.integer(-v.ndim - 1, v.ndim + 1)], np.int64)], exact=True)
        elif kind == 3 and 1 in v.shape:
            g.emit("Squeeze", [name, g.constant([v.shape.index(1)], np.int64)] if g.chance(0.5) else [name], exact=True)
        elif v.ndim >= 2 and v.size:
            g.emit("Reshape", [name, g.constant([0] * (v.ndim - 2) + [-1], np.int64)], exact=True)


@step()
def computed_reshape(g: Generator) -> None:
    """A shape that the model computes from another value's shape."""
    if name := g.pick(lambda v: v.ndim >= 2 and v.size > 0):
        shape, = g.emit("Shape", [name], exact=True) or ("",)
        if shape:
            head, = g.emit("Slice", [shape, g.constant([0], np.int64), g.constant([1], np.int64)], exact=True)
            target, = g.emit("Concat", [head, g.constant([-1], np.int64)], axis=0, exact=True)
            g.emit("Reshape", [name, target], exact=True)


@step()
def concat(g: Generator) -> None:
    if name := g.pick(ranked):
        v, axis = g.values[name], g.axis(name)
        others = g.pick(lambda o: o.dtype == v.dtype and o.ndim == v.ndim and all(
            a == b for k, (a, b) in enumerate(zip(o.shape, v.shape, strict=True)) if k != axis % v.ndim))
        g.emit("Concat", [name, others, name][: g.integer(1, 4)], axis=axis, exact=True)


@step()
def split(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim > 0 and v.shape[-1] > 1):
        n = g.values[name].shape[-1]
        first = g.integer(0, n)
        g.emit("Split", [name, g.constant([first, n - first], np.int64)], outputs=2, axis=-1, exact=True)


@step(2)
def slices(g: Generator) -> None:
    if name := g.pick(ranked):
        parts = [g.integer(-4, 4), g.integer(-4, 9), g.axis(name), g.choose([1, 1, 2, 3, -1, -2])]
        g.emit("Slice", [name, *(g.constant([p], np.int64) for p in parts)], exact=True)


@step()
def pad(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.size > 0):
        v = g.values[name]
        mode = g.choose(("constant", "constant", "edge", "reflect", "wrap"))
        least = min(v.shape) if mode in ("reflect", "wrap") else 3
        pads = [g.integer(0, max(1, min(3, least))) for _ in range(2 * v.ndim)]
        extra = [g.constant(g.array((), v.dtype.name))] if mode == "constant" else []
        g.emit("Pad", [name, g.constant(pads, np.int64), *extra], mode=mode, exact=True)


@step()
def expand(g: Generator) -> None:
    if name := g.pick():
        v = g.values[name]
        if g.chance(0.5):
            shape = [g.choose((2, 3)) if d == 1 and g.chance(0.5) else d for d in v.shape]
            g.emit("Expand", [name, g.constant([2, *shape] if g.chance(0.3) else shape, np.int64)], exact=True)
        elif v.ndim:
            g.emit("Tile", [name, g.constant([g.integer(0, 3) if g.chance(0.4) else 1 for _ in v.shape], np.int64)], exact=True)


@step(2)
def reduce(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.size > 0):
        v = g.values[name]
        axes = sorted({g.axis(name, signed=False) for _ in range(g.integer(1, 3))})
        op = g.choose(REDUCE if real(v) else REDUCE[:3])
        g.emit(op, [name, g.constant(axes, np.int64)] if g.chance(0.9) else [name], keepdims=g.integer(0, 2), exact=op in ("ReduceMax", "ReduceMin"))


@step()
def argument(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.size > 0, jumps=True):
        g.emit(g.choose(("ArgMax", "ArgMin")), [name], axis=g.axis(name), keepdims=g.integer(0, 2), select_last_index=g.integer(0, 2), exact=True)


@step()
def topk(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.size > 0, jumps=True):
        axis = g.axis(name)
        g.emit("TopK", [name, g.constant([g.integer(0, g.values[name].shape[axis] + 1)], np.int64)], outputs=2, axis=axis,
               largest=g.integer(0, 2), exact=True)


@step()
def cumulative(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.dtype.itemsize > 2):
        g.emit("CumSum", [name, g.constant(g.axis(name), np.int64)], exclusive=g.integer(0, 2), reverse=g.integer(0, 2))


@step(2)
def softmax(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim > 0 and v.size > 0 and real(v)):
        g.emit(g.choose(("Softmax", "LogSoftmax")), [name], axis=g.axis(name))


@step(2)
def matmul(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim >= 1 and real(v)):
        v = g.values[name]
        other = g.pick(lambda w: w.dtype == v.dtype and w.ndim >= 2 and w.shape[-2] == v.shape[-1])
        if other is None or g.chance(0.6):
            other = g.constant(g.array((v.shape[-1], g.choose(DIMS)), v.dtype.name))
        g.emit("MatMul", [name, other])


@step()
def gemm(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim == 2 and single(v)):
        v, n = g.values[name], g.choose(DIMS)
        ta, tb = g.integer(0, 2), g.integer(0, 2)
        k = v.shape[0] if ta else v.shape[1]
        w = g.constant(g.array((n, k) if tb else (k, n), "float32"))
        bias = [g.constant(g.array(g.choose([(n,), (1, n), ()]), "float32"))] if g.chance(0.7) else []
        g.emit("Gemm", [name, w, *bias], transA=ta, transB=tb, alpha=g.choose([1.0, 0.5]), beta=g.choose([1.0, 2.0]))


@step()
def integer_matmul(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim == 2 and v.dtype.name in ("int8", "uint8")):
        w = g.constant(g.array((g.values[name].shape[1], g.choose(DIMS)), "int8"))
        g.emit("MatMulInteger", [name, w, g.constant(1, g.values[name].dtype)], exact=True)


def windows(g: Generator, v: np.ndarray) -> dict[str, list[int]]:
    """Attributes of a window over the last dimensions of a value."""
    n = v.ndim - 2
    kernel = [g.integer(1, min(4, d + 1)) for d in v.shape[2:]]
    return {"kernel_shape": kernel, "strides": [g.integer(1, 3) for _ in range(n)], "pads": [g.integer(0, (k + 1) // 2) for k in kernel] * 2}


def image(v: np.ndarray) -> bool:
    return v.dtype == np.float32 and 3 <= v.ndim <= 4 and v.size > 0


def as_image(g: Generator) -> str | None:
    """A value of three or four dimensions: one that there is, or one made of another."""
    if name := g.pick(image):
        return name
    if (name := g.pick(lambda v: single(v) and 1 <= v.ndim <= 2 and v.size > 0)) is None:
        return None
    made = g.emit("Unsqueeze", [name, g.constant([0, 1] if g.values[name].ndim == 2 else [0, 1, 2], np.int64)], exact=True)
    return made[0] if made else None


@step(3)
def convolution(g: Generator) -> None:
    if name := as_image(g):
        v = g.values[name]
        c = v.shape[1]
        groups = g.choose([1, 1, c])
        out = groups * g.integer(1, 4)
        w = windows(g, v)
        dilations = [g.integer(1, 3) if d > 2 * k else 1 for d, k in zip(v.shape[2:], w["kernel_shape"], strict=True)]
        bias = [g.constant(g.array((out,), "float32"))] if g.chance(0.6) else []
        weights = g.constant(g.array((out, c // groups, *w["kernel_shape"]), "float32") / 4)
        g.emit("Conv", [name, weights, *bias], group=groups, dilations=dilations, **w)


@step()
def transposed_convolution(g: Generator) -> None:
    if name := as_image(g):
        v, out = g.values[name], g.integer(1, 4)
        w = windows(g, v)
        g.emit("ConvTranspose", [name, g.constant(g.array((v.shape[1], out, *w["kernel_shape"]), "float32") / 4)], **w)


@step(2)
def pool(g: Generator) -> None:
    if name := as_image(g):
        op = g.choose(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool" if g.values[name].ndim == 4 else "MaxPool"))  # the reference errs
        extra = {} if op[0] == "G" else windows(g, g.values[name])
        if op == "MaxPool" and len(set(extra["pads"])) > 1 and set(extra["strides"]) == {1}:
            return  # the reference takes the pads of one axis for those of another
        if op == "AveragePool":
            extra["count_include_pad"] = g.integer(0, 2)
        g.emit(op, [name], exact="Max" in op, **extra)


@step(2)
def normalization(g: Generator) -> None:
    kind = g.choose(("LayerNormalization", "BatchNormalization", "InstanceNormalization", "LpNormalization"))
    if kind in ("BatchNormalization", "InstanceNormalization"):
        if name := as_image(g):
            c = (g.values[name].shape[1],)
            scale, bias, mean = (g.constant(g.array(c, "float32")) for _ in range(3))
            if kind == "BatchNormalization":
                g.emit(kind, [name, scale, bias, mean, g.constant(np.abs(g.array(c, "float32")) + 1)], epsilon=1e-3)
            else:
                g.emit(kind, [name, scale, bias], epsilon=1e-2)
    elif name := g.pick(lambda v: single(v) and v.ndim > 0 and v.size > 0):
        axis = g.axis(name)
        shape = g.values[name].shape[axis:]
        if kind == "LayerNormalization":
            g.emit(kind, [name, g.constant(g.array(shape, "float32")), g.constant(g.array(shape, "float32"))], axis=axis, epsilon=1e-2)
        elif np.linalg.norm(g.values[name], axis=axis).min(initial=1) > 0.1:
            g.emit(kind, [name], axis=axis, p=2)


@step(2)
def gather(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim > 0 and v.size > 0):
        v, axis = g.values[name], g.axis(name)
        n = v.shape[axis]
        if g.chance(0.6):
            index = g.rng.integers(-n, n, size=g.shape(0, 3))
            g.emit("Gather", [name, g.constant(index, g.choose([np.int64, np.int32]))], axis=axis, exact=True)
        else:
            shape = [g.integer(0, d + 1) for d in v.shape]
            g.emit("GatherElements", [name, g.constant(g.rng.integers(-n, n, size=shape), np.int64)], axis=axis, exact=True)


@step()
def scatter(g: Generator) -> None:
    if name := g.pick(lambda v: number(v) and v.ndim > 0 and v.size > 0):
        v, axis = g.values[name], g.axis(name)
        count = g.integer(0, v.shape[axis] + 1)
        shape = [count if k == axis % v.ndim else d for k, d in enumerate(v.shape)]
        order = np.argsort(g.rng.random(v.shape), axis=axis)
        index = np.take(order, np.arange(count), axis=axis)
        how = g.choose(("none", "none", "add", "max"))
        g.emit("ScatterElements", [name, g.constant(index, np.int64), g.constant(g.array(shape, v.dtype.name))], axis=axis, reduction=how,
               exact=True)


@step()
def gather_nd(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim > 1 and v.size > 0):
        v = g.values[name]
        depth = g.integer(1, v.ndim + 1)
        index = np.stack([g.rng.integers(0, d, size=g.integer(1, 4) if k < 0 else 3) for k, d in enumerate(v.shape[:depth])], axis=-1)
        if g.chance(0.5) or not number(v):
            g.emit("GatherND", [name, g.constant(index, np.int64)], exact=True)
        else:
            updates = g.constant(g.array((3, *v.shape[depth:]), v.dtype.name))
            g.emit("ScatterND", [name, g.constant(index, np.int64), updates], reduction="add", exact=True)


@step()
def triangle(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim >= 2):
        g.emit("Trilu", [name, g.constant(g.integer(-2, 3), np.int64)], upper=g.integer(0, 2), exact=True)


@step()
def one_hot(g: Generator) -> None:
    if name := g.pick(lambda v: v.dtype.name in ("int64", "int32") and v.size <= 64):
        g.emit("OneHot", [name, g.constant(5, np.int64), g.constant([0.0, 1.0], np.float32)], axis=-1, exact=True)


@step()
def quantized(g: Generator) -> None:
    if name := g.pick(lambda v: single(v), jumps=True):
        kind = g.choose((np.uint8, np.int8))
        scale, zero = g.constant(0.25, np.float32), g.constant(3, kind)
        if q := g.emit("QuantizeLinear", [name, scale, zero], exact=True):
            g.emit("DequantizeLinear", [q[0], scale, zero], exact=True)


@step()
def resize(g: Generator) -> None:
    if name := as_image(g):
        v = g.values[name]
        scales = g.constant([1, 1, *(g.choose((1, 2, 0.5) if d > 1 else (1, 2)) for d in v.shape[2:])], np.float32)
        mode = g.choose(("nearest", "linear"))
        more = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"} if mode == "nearest" else {}
        g.emit("Resize", [name, "", scales], mode=mode, exact=mode == "nearest", **more)


@step()
def depth_to_space(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim == 4 and v.shape[1] % 4 == 0 and v.size > 0):
        g.emit("DepthToSpace", [name], blocksize=2, mode=g.choose(("DCR", "CRD")), exact=True)
    elif name := g.pick(lambda v: v.ndim == 4 and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0 and v.size > 0):
        g.emit("SpaceToDepth", [name], blocksize=2, exact=True)


@step()
def nonzero(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim > 0 and v.dtype.kind in "ib"):
        g.emit("NonZero", [name], exact=True)


@step()
def recurrent(g: Generator) -> None:
    if name := g.pick(lambda v: v.ndim == 3 and single(v) and v.size > 0 and v.shape[0] <= 7):
        kind, gates = g.choose((("RNN", 1), ("GRU", 3), ("LSTM", 4)))
        hidden, x = g.integer(1, 6), g.values[name]
        w, r = (g.constant(g.array((1, gates * hidden, k), "float32") / 4) for k in (x.shape[2], hidden))
        bias = [g.constant(g.array((1, 2 * gates * hidden), "float32") / 4)] if g.chance(0.5) else []
        g.emit(kind, [name, w, r, *bias], outputs=2, hidden_size=hidden)


@step()
def attention_scores(g: Generator) -> None:
    """Products of a value with itself, as attention makes them."""
    if name := g.pick(lambda v: v.ndim >= 2 and single(v) and v.size > 0):
        n = g.values[name].ndim
        perm = [*range(n - 2), n - 1, n - 2]
        if t := g.emit("Transpose", [name], perm=perm, exact=True):
            if s := g.emit("MatMul", [name, t[0]]):
                if p := g.emit("Softmax", [s[0]], axis=-1):
                    g.emit("MatMul", [p[0], name])
