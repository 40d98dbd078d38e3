# SPDX-License-Identifier: Apache-2.0
"""ATen operators on complex tensors (pairs of real ones), and discrete Fourier transforms."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext
from ..pairs import Pair, join, on_pairs, promoted, split
from ..registry import find
from .math import scalar, tensor


@on_pairs("view_as_real")
def _view_as_real(node: NodeContext, x: Pair) -> Any:
    return join(node.emit, x)


@on_pairs("view_as_complex")
def _view_as_complex(node: NodeContext, x: Any) -> Pair:
    return split(node.emit, x)


@on_pairs("complex")
def _complex(node: NodeContext, re: Any, im: Any) -> Pair:
    shape = node.out_shape()
    return Pair(*(node.make("broadcast_to", v, shape) for v in (re, im)))


@on_pairs("polar")
def _polar(node: NodeContext, size: Any, angle: Any) -> Pair:
    return _complex(node, *(node.make("multiply", size, node.make(f, angle)) for f in ("cos", "sin")))


@on_pairs("_conj", "conj", "_conj_physical", "conj_physical")
def _conj(node: NodeContext, x: Any) -> Any:
    return Pair(x.re, node.make("negative", x.im)) if isinstance(x, Pair) else x


@on_pairs("resolve_conj", "resolve_neg", "_to_copy", "to")
def _convert(node: NodeContext, x: Any, *_: Any, **__: Any) -> Any:
    dtype = node.out_dtype()
    if not node.complex_result:
        return tensor(node, x.re, dtype)
    return Pair(tensor(node, x.re, dtype), tensor(node, x.im, dtype)) if isinstance(x, Pair) else promoted(node, x)


@on_pairs("full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "scalar_tensor", "empty", "empty_like", "new_zeros", "new_ones", "new_full")
def _filled(node: NodeContext, *args: Any, **_: Any) -> Any:
    name = node.node.target.__name__.split(".")[0]
    value = complex(args[-1]) if "full" in name or name == "scalar_tensor" else 1 + 0j if "ones" in name else 0j
    dtype = node.out_dtype()
    if not node.complex_result:
        return node.make("full", node.out_shape(), node.emit(scalar(value.real, dtype)), dtype=dtype)
    return Pair(*(node.make("full", node.out_shape(), node.emit(scalar(v, dtype)), dtype=dtype) for v in (value.real, value.imag)))


def _product(node: NodeContext, a: Any, b: Any, op: str = "multiply") -> Pair:
    """The product of complex or real factors, elementwise or of matrices."""
    if not isinstance(a, Pair):
        return Pair(node.make(op, a, b.re), node.make(op, a, b.im))
    if not isinstance(b, Pair):
        return Pair(node.make(op, a.re, b), node.make(op, a.im, b))
    rr, ii, ri, ir = (node.make(op, x, y) for x, y in ((a.re, b.re), (a.im, b.im), (a.re, b.im), (a.im, b.re)))
    return Pair(node.make("subtract", rr, ii), node.make("add", ri, ir))


def _factor(node: NodeContext, v: Any) -> Any:
    if isinstance(v, Pair):
        return v
    return promoted(node, v) if isinstance(v, complex) and v.imag else tensor(node, v.real if isinstance(v, complex) else v, node.out_dtype())


@on_pairs("mul")
def _mul(node: NodeContext, a: Any, b: Any) -> Pair:
    return _product(node, _factor(node, a), _factor(node, b))


@on_pairs("mm", "bmm", "matmul", "mv", "dot")
def _matmul(node: NodeContext, a: Any, b: Any) -> Pair:
    return _product(node, a, b, "matmul")


@on_pairs("div")
def _div(node: NodeContext, a: Any, b: Any) -> Pair:
    b = _factor(node, b)
    if not isinstance(b, Pair):
        return Pair(*(node.make("divide", v, b) for v in (a.re, a.im)))
    size = node.make("add", node.make("multiply", b.re, b.re), node.make("multiply", b.im, b.im))
    over = _product(node, _factor(node, a), Pair(b.re, node.make("negative", b.im)))
    return Pair(*(node.make("divide", v, size) for v in (over.re, over.im)))


@on_pairs("reciprocal")
def _reciprocal(node: NodeContext, x: Pair) -> Pair:
    return _div(node, 1.0, x)


@on_pairs("abs")
def _abs(node: NodeContext, x: Pair) -> Any:
    a, b = node.make("abs", x.re), node.make("abs", x.im)
    big, small = node.make("maximum", a, b), node.make("minimum", a, b)
    one, zero = (scalar(v, x.sinfo.dtype) for v in (1, 0))
    ratio = node.make("where", node.make("equal", big, zero), zero, node.make("divide", small, big))
    return node.make("multiply", big, node.make("sqrt", node.make("add", node.make("multiply", ratio, ratio), one)))


@on_pairs("angle")
def _angle(node: NodeContext, x: Pair) -> Any:
    return node.make("atan2", x.im, x.re)


@on_pairs("sgn")
def _sgn(node: NodeContext, x: Pair) -> Pair:
    size, zero = _abs(node, x), scalar(0, x.sinfo.dtype)
    safe = node.make("equal", size, zero)
    return Pair(*(node.make("where", safe, zero, node.make("divide", v, size)) for v in (x.re, x.im)))


@on_pairs("exp")
def _exp(node: NodeContext, x: Pair) -> Pair:
    return _polar(node, node.make("exp", x.re), x.im)


@on_pairs("log")
def _log(node: NodeContext, x: Pair) -> Pair:
    return Pair(node.make("log", _abs(node, x)), _angle(node, x))


@on_pairs("sqrt")
def _sqrt(node: NodeContext, x: Pair) -> Pair:
    """The root in the right half plane: of the two parts the larger first, then the other from the product of both, which is half of ``im``."""
    half, zero = scalar(0.5, x.sinfo.dtype), scalar(0, x.sinfo.dtype)
    large = node.make("sqrt", node.make("multiply", node.make("add", node.make("abs", x.re), _abs(node, x)), half))
    none = node.make("equal", large, zero)
    small = node.make("where", none, x.im, node.make("divide", node.make("multiply", x.im, half), large))
    right = node.make("greater_equal", x.re, zero)
    below = node.make("less", node.make("atan2", x.im, scalar(-1, x.sinfo.dtype)), zero)  # -0 is below as well
    turned = node.make("where", below, node.make("negative", large), large)
    return Pair(node.make("where", right, large, node.make("abs", small)), node.make("where", right, small, turned))


@on_pairs("rsqrt")
def _rsqrt(node: NodeContext, x: Pair) -> Pair:
    return _reciprocal(node, _sqrt(node, x))


@on_pairs("pow")
def _pow(node: NodeContext, x: Any, power: Any) -> Pair:
    """Small whole powers by products, a root as such, the rest by exponential and logarithm (0 stays 0)."""
    if isinstance(power, int | float) and abs(power) in (1, 2, 3, 4):
        out = x
        for _ in range(int(abs(power)) - 1):
            out = _product(node, out, x)
        return out if power > 0 else _reciprocal(node, out)
    if power == 0.5:
        return _sqrt(node, x)
    x, power = (v if isinstance(v, Pair) else promoted(node, v) for v in (x, power))
    zero, one = (scalar(v, x.sinfo.dtype) for v in (0, 1))
    at_zero = node.make("equal", _abs(node, x), zero)
    plain = _exp(node, _product(node, power, _log(node, x)))
    none = node.make("equal", _abs(node, power), zero)
    return Pair(node.make("where", at_zero, node.make("where", none, one, zero), plain.re), node.make("where", at_zero, zero, plain.im))


def _parts(node: NodeContext, x: Pair, re: tuple[str, str], im: tuple[str, str]) -> Pair:
    """A function whose parts are products of a function of each part."""
    return Pair(*(node.make("multiply", node.make(f, x.re), node.make(g, x.im)) for f, g in (re, im)))


@on_pairs("sin")
def _sin(node: NodeContext, x: Pair) -> Pair:
    return _parts(node, x, ("sin", "cosh"), ("cos", "sinh"))


@on_pairs("cos")
def _cos(node: NodeContext, x: Pair) -> Pair:
    out = _parts(node, x, ("cos", "cosh"), ("sin", "sinh"))
    return Pair(out.re, node.make("negative", out.im))


@on_pairs("sinh")
def _sinh(node: NodeContext, x: Pair) -> Pair:
    return _parts(node, x, ("sinh", "cos"), ("cosh", "sin"))


@on_pairs("cosh")
def _cosh(node: NodeContext, x: Pair) -> Pair:
    return _parts(node, x, ("cosh", "cos"), ("sinh", "sin"))


@on_pairs("sigmoid")
def _sigmoid(node: NodeContext, x: Pair) -> Pair:
    e = _exp(node, Pair(*(node.make("negative", v) for v in (x.re, x.im))))
    return _reciprocal(node, Pair(node.make("add", e.re, scalar(1, x.sinfo.dtype)), e.im))


@on_pairs("linalg_vector_norm")
def _norm(node: NodeContext, x: Pair, *args: Any, **kwargs: Any) -> Any:
    real = find("linalg_vector_norm")
    assert real is not None
    return real(node, _abs(node, x), *args, **kwargs)


@on_pairs("eq", "ne")
def _compare(node: NodeContext, a: Any, b: Any) -> Any:
    op, both = ("equal", "logical_and") if ".eq" in str(node.node.target) else ("not_equal", "logical_or")
    dtype = (a if isinstance(a, Pair) else b).sinfo.dtype
    parts = [v if isinstance(v, Pair) else Pair(tensor(node, v.real, dtype), scalar(v.imag, dtype)) if isinstance(v, complex)
             else Pair(tensor(node, v, dtype), scalar(0, dtype)) for v in (a, b)]
    return node.make(both, *(node.make(op, x, y) for x, y in ((parts[0].re, parts[1].re), (parts[0].im, parts[1].im))))


# ---- discrete Fourier transforms


def _each(node: NodeContext, x: Any, fn: Any) -> Any:
    return Pair(fn(x.re), fn(x.im)) if isinstance(x, Pair) else fn(x)


def _along(node: NodeContext, x: Any, axis: int, fn: Any) -> Any:
    """``fn`` of the last axis applied to ``axis``."""
    n = x.sinfo.ndim
    axis %= n
    order = (*(k for k in range(n) if k != axis), axis)
    back = tuple(order.index(k) for k in range(n))
    if axis == n - 1:
        return fn(x)
    out = fn(_each(node, x, lambda v: node.make("permute_dims", v, axes=order)))
    return _each(node, out, lambda v: node.make("permute_dims", v, axes=back))


_NORMS = {0: None, 1: "root", 2: "points"}
"""Normalisation: none, by the root of the number of points, by the number."""


def _fields(node: NodeContext, both: Any) -> Pair:
    return Pair(*(node.emit(graph.TupleGetItem(both, k)) for k in (0, 1)))


def _complex_transform(node: NodeContext, x: Any, dim: int, mode: int, inverse: bool) -> Pair:
    x = x if isinstance(x, Pair) else promoted(node, x)
    return _along(node, x, dim, lambda v: _fields(node, node.make("fft.c2c", v.re, v.im, inverse=inverse, norm=_NORMS[mode])))


@on_pairs("_fft_c2c")
def _c2c(node: NodeContext, x: Any, dims: list[int], mode: int, forward: bool) -> Pair:
    for d in dims:
        x = _complex_transform(node, x, d, mode, not forward)
    return x


@on_pairs("_fft_r2c")
def _r2c(node: NodeContext, x: Any, dims: list[int], mode: int, onesided: bool) -> Pair:
    out = _along(node, x, dims[-1], lambda v: _fields(node, node.make("fft.r2c", v, onesided=onesided, norm=_NORMS[mode])))
    for d in dims[:-1]:
        out = _complex_transform(node, out, d, mode, False)
    return out


@on_pairs("_fft_c2r")
def _c2r(node: NodeContext, x: Pair, dims: list[int], mode: int, size: Any) -> Any:
    for d in dims[:-1]:
        x = _complex_transform(node, x, d, mode, True)
    points = graph.PrimValue(tir.as_index(size))
    return _along(node, x, dims[-1], lambda v: node.make("fft.c2r", v.re, v.im, points, norm=_NORMS[mode]))
