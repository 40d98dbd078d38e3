# SPDX-License-Identifier: Apache-2.0
"""Machines with vectors of 1, 4, 8 and 16 lanes, with the instructions of this machine and of plainer ones: functions of each family of
operators at awkward sizes, and random graphs, must give on all of them what the interpreter gives."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from roundel.driver import compile_module
from roundel.frontend.onnx import from_onnx
from roundel.interp import interpret
from roundel.ir import IRModule, graph, tir
from roundel.ops import make
from roundel.target import Target
from tests.fuzz import operators  # noqa: F401  (fills the table of steps)
from tests.fuzz.generator import Generator
from tests.graph.functions import function

from .attempts import attempts

LANES = (1, 4, 8, 16)
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 3e-2}
Body = Callable[[Callable[..., Any], "Operands"], Sequence[Any]]


class Operands:
    """Inputs of a function and constants in it, by shape; the dimension "n" is symbolic."""

    def __init__(self, dtype: str) -> None:
        self.rng, self.dtype = np.random.default_rng(0), dtype
        self.n = tir.Var("n", tir.index_const(0).dtype, True)
        self.infos: list[graph.TensorInfo] = []
        self.params: Sequence[graph.Var] = ()

    def __call__(self, *shape: Any, dtype: str | None = None) -> graph.Var:
        """The next input."""
        self.infos.append(graph.TensorInfo(tuple(self.n if d == "n" else tir.index_const(d) for d in shape), dtype or self.dtype))
        return self.params[len(self.infos) - 1] if self.params else graph.Var(f"x{len(self.infos) - 1}", self.infos[-1])

    def weight(self, *shape: int) -> graph.Constant:
        """A constant."""
        return graph.Constant.of(self.array(shape, self.dtype))

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        if dtype in ("int8", "uint8"):
            return self.rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)
        return self.rng.standard_normal(shape).astype(graph.TensorInfo((), dtype).dtype.numpy)


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` functions, of the families first and then random graphs of the fuzzer, each on one machine of those above."""
    rng = np.random.default_rng(seed)
    known = [(name, dtype) for name in FAMILIES for dtype in (("float32",) if name == "integers" else TOLERANCE)]
    for k in attempts(range(count)):
        base = str(rng.choice(["", *plain_machines()]))
        target = machine(int(rng.choice(LANES)), base)
        if k < 4 * len(known):
            name, dtype = known[(k + seed) % len(known)]
            what, tolerance = f"{name} in {dtype}", TOLERANCE[dtype]
            made, inputs = family(name, dtype)
        else:
            of = int(rng.integers(1 << 31))
            generated = Generator(of)
            model = generated.model()
            if not model.graph.output:
                continue
            narrow = any(v.dtype == np.float16 for v in generated.values.values())
            what, tolerance = f"graph {of}", 2e-2 if narrow else 5e-4
            made, inputs = from_onnx(model), list(generated.inputs.values())
        try:
            found = differences(made, inputs, target, tolerance)
        except Exception as error:  # the compiler's own failure is a finding
            found = [f"{type(error).__name__}: {error}"]
        for problem in found:
            yield f"{what} on {target}: {problem}"


def convolutions(e: Any, x: Operands) -> Sequence[Any]:
    image, wide = x(2, 3, 9, 11), x(1, 8, 7, 7)
    return [
        e("nn.conv2d", image, x.weight(8, 3, 3, 3), padding=1),
        e("nn.relu", e("nn.conv2d", e("nn.conv2d", image, x.weight(5, 3, 1, 1)), x.weight(4, 5, 3, 3), strides=2, padding=1)),
        e("nn.conv2d", wide, x.weight(8, 1, 3, 3), padding=1, groups=8),
        e("nn.conv2d", wide, x.weight(6, 4, 3, 3), groups=2, dilation=2),
        e("nn.max_pool2d", e("nn.conv2d", wide, x.weight(16, 8, 5, 5), padding=2), pool_size=3, strides=2, padding=1),
        e("nn.conv2d", x("n", 1, 6, 6), x.weight(1, 1, 3, 3), padding=1),
    ]


def other_windows(e: Any, x: Operands) -> Sequence[Any]:
    signal, image = x(2, 3, 17), x(1, 4, 5, 6)
    return [
        e("nn.conv1d", signal, x.weight(7, 3, 4), strides=2, padding=1),
        e("nn.conv2d_transpose", image, x.weight(4, 3, 3, 3), strides=2, padding=1),
        e("nn.conv3d", x(1, 2, 4, 5, 5), x.weight(3, 2, 3, 3, 3), padding=1),
        e("nn.avg_pool2d", image, pool_size=2, strides=2),
        e("image.resize", image, graph.ShapeExpr((1, 4, 9, 11)), method="linear"),
    ]


def products(e: Any, x: Operands) -> Sequence[Any]:
    rows, some = x(7, 19), x("n", 33)
    return [
        e("nn.gelu", e("add", e("matmul", rows, x.weight(19, 40)), x.weight(40))),
        e("matmul", some, x.weight(33, 17)),
        e("matmul", some, x.weight(33, 2)),
        e("matmul", x(1, 19), x.weight(19, 1)),
        e("matmul", x(2, 5, 9), x(2, 9, 6)),
        e("matmul", rows, e("permute_dims", x(21, 19), axes=(1, 0))),
    ]


def attention(e: Any, x: Operands) -> Sequence[Any]:
    q, k, v = x(2, 3, 5, 12), x(2, 3, 9, 12), x(2, 3, 9, 12)
    weights = e("nn.softmax", e("matmul", q, e("permute_dims", k, axes=(0, 1, 3, 2))), axis=-1)
    return [e("matmul", weights, v)]


def rows(e: Any, x: Operands) -> Sequence[Any]:
    some, cube = x("n", 29), x(3, 5, 18)
    return [
        e("nn.softmax", some, axis=-1),
        e("nn.layer_norm", some, x.weight(29), x.weight(29), axes=[-1]),
        e("sum", cube, axis=[1]),
        e("max", cube, axis=[0, 2]),
        e("argmax", cube, axis=2),
        e("mean", cube, axis=[2], keepdims=True),
        e("cumsum", cube, axis=1),
    ]


def moves(e: Any, x: Operands) -> Sequence[Any]:
    cube, flat = x(3, 10, 7), x("n", 13)
    return [
        e("permute_dims", cube, axes=(2, 0, 1)),
        e("concat", graph.Tuple((flat, e("exp", flat))), axis=1),
        e("multiply", cube, e("permute_dims", x(7, 10), axes=(1, 0))),
        e("nn.pad", cube, graph.ShapeExpr(tuple(map(tir.index_const, (0, 0, 1, 2, 3, 0)))), pad_mode="constant"),
        e("where", e("greater", cube, graph.Constant.of(0.0, x.dtype)), cube, e("tanh", cube)),
        e("sort", flat, axis=-1),
    ]


def integers(e: Any, x: Operands) -> Sequence[Any]:
    pixels, weights = x(1, 8, 6, 6, dtype="uint8"), graph.Constant.of(x.array((8, 8, 3, 3), "int8"))
    return [
        e("nn.conv2d", pixels, weights, padding=1, out_dtype="int32"),
        e("matmul", x(5, 24, dtype="uint8"), graph.Constant.of(x.array((24, 10), "int8")), out_dtype="int32"),
    ]


FAMILIES: dict[str, Body] = {f.__name__: f for f in (convolutions, other_windows, products, attention, rows, moves, integers)}


def family(name: str, dtype: str = "float32") -> tuple[IRModule, list[np.ndarray]]:
    """The function of a family, and inputs for it."""
    operands = Operands(dtype)
    FAMILIES[name](make, operands)  # for the inputs' shapes
    infos, fresh = operands.infos, Operands(dtype)
    fresh.n = operands.n

    def body(bb: Any, *params: graph.Var) -> Any:
        fresh.params = params
        return graph.Tuple(tuple(FAMILIES[name](lambda op, *a, **attrs: bb.emit(make(op, *a, **attrs)), fresh)))

    shapes = [tuple(3 if d is operands.n else d.value for d in i.shape) for i in infos]
    return function(infos, body), [operands.array(s, str(i.dtype)) for s, i in zip(shapes, infos, strict=True)]


def machine(lanes: int, base: str = "") -> Target:
    """This machine (or ``base``) with vectors of so many float32."""
    return (Target(base) if base else Target.host()).with_(vector_bytes=4 * lanes)


def plain_machines() -> list[str]:
    """Machines that this one can stand in for and that lack instructions which it may have."""
    return ["x86-64", "x86-64-v2"] if platform.machine() == "x86_64" else []


def differences(mod: IRModule, inputs: Sequence[np.ndarray], target: Target, tolerance: float) -> list[str]:
    """What compiled code gives otherwise than the interpreter, one text for each result."""
    want, got = interpret(mod)["main"](*inputs), compile_module(mod, target=target).load()["main"](*inputs)
    several = isinstance(want, tuple | list)
    out = []
    for k, (w, g) in enumerate(zip(want if several else [want], got if several else [got], strict=True)):
        w, g = np.asarray(w), np.asarray(g)
        if w.shape != g.shape or w.dtype != g.dtype:
            out.append(f"result {k} is {g.dtype}{g.shape}, not {w.dtype}{w.shape}")
            continue
        w, g = w.astype("f8"), g.astype("f8")
        off = np.abs(w - g).max(initial=0.0) / max(1.0, np.abs(w).max(initial=0.0))
        if not off <= tolerance:
            out.append(f"result {k} is off by {off:.2g}")
    return out
