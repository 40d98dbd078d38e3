# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms along the last axis, of any length: complex to complex, real to complex, complex to real.

A length that is known is a product of small primes and transformed in passes (``fourier_passes``), real numbers as complex ones
of half the length. Where it has a large prime factor, it is a convolution of a longer transform (Bluestein's algorithm). A
symbolic length finds its factors when it runs. Roots of unity are worked out in float64; sums are in the operands' type, as
NumPy's and PyTorch's are. Multiply-add does not contract in the passes: what cancels by symmetry cancels exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.graph.make_call import make_call
from roundel.ir.op import FuseKind, OpDef, get_op, register

from .dims import fail, simplify, static, tensor_info
from .elementwise import widen
from .fourier_passes import Passes, factors, roots, run_time_passes

NORMS = (None, "root", "points")
LARGEST = 13  # prime factors that are passes
ZERO = tir.index_const(0)


def smooth(n: int) -> int:
    """The least length from n on without prime factors above 5."""
    while max(factors(n)) > 5:
        n += 1
    return n


def _make(name: str, *args: Any, **attrs: Any) -> graph.Call:
    return make_call(get_op(name), args, attrs)


class _Transform(OpDef):
    """What the three have in common: operands ``re`` and ``im`` (or ``x``), then the number of points where it is not theirs."""

    kind = FuseKind.OPAQUE
    form = ""

    def _operands(self, args: tuple[Any, ...]) -> tuple[list[graph.TensorInfo], Any]:
        infos = [tensor_info(self, a, args) for a in args if a is not None and not isinstance(a, graph.PrimInfo)]
        x = infos[0]
        if x.shape is None or not x.shape or not x.dtype.is_float:
            fail(self, "the operand is not a tensor of floating-point numbers with at least one dimension of known size", *args)
        if len(infos) > 1 and infos[1].dtype != x.dtype:
            fail(self, "real and imaginary parts have different types", *args)
        return infos, args[2].value if len(args) > 2 else x.shape[-1]

    def _check(self, attrs: Attrs, args: Any) -> None:
        if attrs["norm"] not in NORMS:
            fail(self, f"norm is {attrs['norm']!r}, not one of {', '.join(map(repr, NORMS))}", *args)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        parts = [a for a in args if isinstance(a.sinfo, graph.TensorInfo)]
        points = args[2].value if len(args) > 2 else parts[0].sinfo.shape[-1]
        dtype = parts[0].sinfo.dtype
        if dtype.bits >= 32:
            return self._settled(builder, parts, points, attrs)
        out = self._settled(builder, [builder.emit(_make("astype", p, dtype="float32")) for p in parts], points, attrs)
        fields = out.fields if isinstance(out, graph.Tuple) else None
        if fields is None and isinstance(out.sinfo, graph.TupleInfo):
            held = builder.emit(out)
            fields = [builder.emit(graph.TupleGetItem(held, k)) for k in (0, 1)]
        if fields is None:
            return _make("astype", builder.emit(out), dtype=dtype)
        return graph.Tuple(tuple(builder.emit(_make("astype", f, dtype=dtype)) for f in fields))

    def _settled(self, builder: Any, parts: list[Any], points: Any, attrs: Attrs) -> graph.GraphExpr:
        n, dtype = static(points), parts[0].sinfo.dtype
        if n is not None and max(factors(n)) > LARGEST:
            return self._convolution(builder, parts, n, attrs)
        length = graph.PrimValue(tir.as_index(points))
        table = [] if n is None else [graph.Constant.of(Passes.of(n, self.form).table().astype(dtype.numpy))]
        operands = graph.Tuple((*parts, *table))
        return _make("fft.passes", operands, length, form=self.form, **attrs)

    def _convolution(self, builder: Any, parts: list[Any], n: int, attrs: Attrs) -> graph.GraphExpr:
        """By complex numbers of the same length."""
        raise NotImplementedError


def _scale(norm: str | None, n: Any, dtype: Any) -> Any:
    """The factor of a norm, or None."""
    if norm is None:
        return None
    if isinstance(n, int):
        return tir.const(1 / n if norm == "points" else n ** -0.5, dtype)
    n = te.cast(n, "float64")
    return te.cast(1.0 / n if norm == "points" else 1.0 / te.sqrt(n), dtype)


def _np_scale(norm: str | None, n: int) -> float:
    return {None: 1.0, "root": max(n, 1) ** -0.5, "points": 1 / max(n, 1)}[norm]


def _np_pair(z: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return z.real.astype(like.dtype), z.imag.astype(like.dtype)


def _np_complex(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    return widen(re).astype(np.float64) + 1j * widen(im).astype(np.float64)


@register
class ComplexToComplex(_Transform):
    """The transform of re + i im, as two tensors. ``inverse``: with the other sign. ``norm``: divided by the ``root`` of the number
    of ``points``, or by it."""

    name, operands, attributes, num_outputs, form = "fft.c2c", ("re", "im"), {"inverse": False, "norm": None}, 2, "complex"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        self._check(attrs, args)
        infos, _ = self._operands(args)
        return graph.TupleInfo((infos[0], infos[0]))

    def _convolution(self, builder: Any, parts: list[Any], n: int, attrs: Attrs) -> graph.GraphExpr:
        emit = builder.emit
        re, im = reversed(parts) if attrs["inverse"] else parts
        dtype, last, m = re.sinfo.dtype, re.sinfo.ndim - 1, smooth(2 * n - 1)
        square = np.arange(n, dtype=object) ** 2 % (2 * n)
        chirp = roots(2 * n)[:, square.astype(np.int64)]
        kernel = np.zeros(m, np.complex128)
        kernel[:n] = chirp[0] - 1j * chirp[1]
        kernel[m - n + 1:] = kernel[1:n][::-1]
        spectrum = np.fft.fft(kernel)
        constants = lambda c: [graph.Constant.of(v.astype(dtype.numpy)) for v in c]

        def times(a: Any, b: Any, c: list[Any]) -> tuple[Any, Any]:
            ac, bd, ad, bc = (emit(_make("multiply", v, w)) for v, w in ((a, c[0]), (b, c[1]), (a, c[1]), (b, c[0])))
            return emit(_make("subtract", ac, bd)), emit(_make("add", ad, bc))

        def whole(a: Any, b: Any, inverse: bool, norm: str | None) -> list[Any]:
            held = emit(_make("fft.c2c", a, b, inverse=inverse, norm=norm))
            return [emit(graph.TupleGetItem(held, k)) for k in (0, 1)]

        turned = constants(chirp)
        width = (ZERO,) * (2 * last + 1) + (tir.index_const(m - n),)
        a, b = (emit(_make("nn.pad", v, pad_value=graph.Constant.of(np.zeros((), dtype.numpy)), pad_width=width)) for v in times(re, im, turned))
        a, b = times(*whole(a, b, False, None), constants((spectrum.real, spectrum.imag)))
        zero, one = (tir.index_const(v) for v in (0, 1))
        a, b = (emit(_make("strided_slice", v, axes=(last,), begin=(zero,), end=(tir.index_const(n),), strides=(one,)))
                for v in whole(a, b, True, "points"))
        factor = _np_scale(attrs["norm"], n)
        a, b = times(a, b, constants(chirp * factor))
        return graph.Tuple((b, a) if attrs["inverse"] else (a, b))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        z = _np_complex(*args)
        n = z.shape[-1]
        if not z.size:
            return args[0].copy(), args[1].copy()
        z = np.fft.ifft(z) * n if attrs["inverse"] else np.fft.fft(z)
        return _np_pair(z * _np_scale(attrs["norm"], n), args[0])


@register
class RealToComplex(_Transform):
    """The transform of real numbers, as two tensors: the first ``points // 2 + 1`` of each, or all, of which the rest are the conjugates."""

    name, operands, attributes, num_outputs, form = "fft.r2c", ("x",), {"onesided": True, "norm": None}, 2, "real"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        self._check(attrs, args)
        (x,), n = self._operands(args)
        if attrs["onesided"]:
            x = x.replace(shape=(*x.shape[:-1], simplify(tir.floordiv(n, 2) + 1)))
        return graph.TupleInfo((x, x))

    def _convolution(self, builder: Any, parts: list[Any], n: int, attrs: Attrs) -> graph.GraphExpr:
        (x,) = parts
        zeros = builder.emit(_make("multiply", x, graph.Constant.of(np.zeros((), x.sinfo.dtype.numpy))))
        both = builder.emit(_make("fft.c2c", x, zeros, norm=attrs["norm"]))
        out = [builder.emit(graph.TupleGetItem(both, k)) for k in (0, 1)]
        if attrs["onesided"]:
            span = {"begin": (ZERO,), "end": (tir.index_const(n // 2 + 1),), "strides": (tir.index_const(1),)}
            out = [builder.emit(_make("strided_slice", v, axes=(x.sinfo.ndim - 1,), **span)) for v in out]
        return graph.Tuple(tuple(out))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = widen(args[0]).astype(np.float64)
        n = x.shape[-1]
        if not x.size:
            shape = (*x.shape[:-1], n // 2 + 1 if attrs["onesided"] else n)
            return tuple(np.zeros(shape, args[0].dtype) for _ in range(2))
        return _np_pair((np.fft.rfft if attrs["onesided"] else np.fft.fft)(x) * _np_scale(attrs["norm"], n), args[0])


@register
class ComplexToReal(_Transform):
    """The real numbers, ``points`` of them, whose transform begins with re + i im (``points // 2 + 1`` numbers), times ``points``
    unless there is a ``norm``. The imaginary parts that symmetry makes 0 are taken as 0."""

    name, operands, attributes, scalars, form = "fft.c2r", ("re", "im", "points"), {"norm": None}, ("points",), "to_real"

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        self._check(attrs, args)
        (re, _), n = self._operands(args)
        half = simplify(tir.floordiv(n, 2) + 1)
        if static(half) is not None and static(re.shape[-1]) is not None and static(half) != static(re.shape[-1]):
            fail(self, f"{n} points need {half} numbers, not {re.shape[-1]}", *args)
        return re.replace(shape=(*re.shape[:-1], n))

    def _convolution(self, builder: Any, parts: list[Any], n: int, attrs: Attrs) -> graph.GraphExpr:
        k = np.arange(n)
        place = graph.Constant.of(np.minimum(k, n - k))
        sign = np.where(2 * k > n, -1.0, 1.0)
        sign[2 * k % n == 0] = 0
        dtype, last = parts[0].sinfo.dtype, parts[0].sinfo.ndim - 1
        re, im = (builder.emit(_make("take", v, place, axis=last)) for v in parts)
        im = builder.emit(_make("multiply", im, graph.Constant.of(sign.astype(dtype.numpy))))
        both = builder.emit(_make("fft.c2c", re, im, inverse=True, norm=attrs["norm"]))
        return graph.TupleGetItem(both, 0)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        re, im, n = args
        n = int(n)
        if not n or not re.size:
            return np.zeros((*re.shape[:-1], n), re.dtype)
        return (np.fft.irfft(_np_complex(re, im), n) * n * _np_scale(attrs["norm"], n)).astype(re.dtype)


@register
class FourierPasses(OpDef):
    """The tensor program of the three: ``parts`` are their operands and, for a known number of ``points``, the table of the passes."""

    name, operands, scalars, kind, contract = "fft.passes", ("parts", "points"), ("points",), FuseKind.OPAQUE, False
    (attributes,) = ({"form": "complex", "inverse": False, "onesided": True, "norm": None},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = tuple(tensor_info(self, f, args) for f in args[0].fields)
        op, more = _BY_FORM[attrs["form"]]
        operands = infos[:2] if attrs["form"] != "real" else infos[:1]
        return op.infer((*operands, args[1]) if attrs["form"] == "to_real" else operands, Attrs({k: attrs[k] for k in more}))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        parts, points = args
        n, form = static(points), attrs["form"]
        first = parts[0]
        *batch, _ = first.shape
        count = tir.floordiv(points, 2) + 1 if form == "real" and attrs["onesided"] else points
        scale = _scale(attrs["norm"], points if n is None else max(n, 1), first.dtype)
        flags = {"inverse": attrs["inverse"] or form == "to_real", "mirrored": form == "real" and not attrs["onesided"]}
        outputs = [((*batch, simplify(count)), first.dtype)] * (1 if form == "to_real" else 2)
        if n is None:
            table = te.compute((2, points), _root(points), "roots")
            build = run_time_passes(points, form, scale, **flags)
            scratch = [((2, 2, points), "float64"), ((4,), "int64")]
            return te.extern(outputs, [*parts, table], build, "fft", over=batch, scratch=scratch)
        passes = Passes.of(n, form)
        scratch = [((2, 2, passes.length), first.dtype)] if passes.length else []
        return te.extern(outputs, list(parts), passes.program(scale, **flags), "fft", over=batch, scratch=scratch)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        parts, points = args
        op, more = _BY_FORM[attrs["form"]]
        operands = tuple(parts[:2]) if attrs["form"] != "real" else tuple(parts[:1])
        return op.numpy((*operands, points) if attrs["form"] == "to_real" else operands, Attrs({k: attrs[k] for k in more}))


def _root(points: Any) -> Any:
    def body(part: Any, k: Any) -> Any:
        angle = te.cast(k, "float64") * (-2 * np.pi) / te.cast(points, "float64")
        return te.if_then_else(tir.eq(part, 0), te.cos(angle), te.sin(angle))

    return body


_BY_FORM: dict[str, tuple[OpDef, tuple[str, ...]]] = {
    "complex": (get_op("fft.c2c"), ("inverse", "norm")), "real": (get_op("fft.r2c"), ("onesided", "norm")), "to_real": (get_op("fft.c2r"), ("norm",)),
}
