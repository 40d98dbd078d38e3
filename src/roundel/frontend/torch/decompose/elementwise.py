# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators by simpler ones; the bits of floats are looked at as integers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .table import decomposes

_LAYOUT = {torch.float64: (torch.int64, 52, 11), torch.float32: (torch.int32, 23, 8), torch.float16: (torch.int16, 10, 5), torch.bfloat16: (torch.int16, 7, 8)}
"""Integer type, bits of the fraction, bits of the exponent."""


def _bits(x: Tensor) -> Tensor:
    return x.view(_LAYOUT[x.dtype][0])


def _promoted(*values: Any) -> list[Tensor]:
    tensors = [v if isinstance(v, Tensor) else torch.full((), v) for v in values]
    dtype = torch.result_type(*values)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return [t.to(dtype) for t in tensors]


@decomposes("signbit")
def signbit(x: Tensor) -> Tensor:
    """Whether the sign's bit is set: true for -0.0, and for NaN as its bit says."""
    return _bits(x) < 0 if x.is_floating_point() else x < 0 if x.dtype != torch.bool else torch.zeros_like(x)


@decomposes("copysign")
def copysign(a: Tensor, b: Any) -> Tensor:
    """|a| with the sign of b."""
    a, b = _promoted(a, b)
    return torch.where(signbit(b), -a.abs(), a.abs())


@decomposes("hypot")
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """sqrt(a*a + b*b), scaled so that squares do not overflow."""
    a, b = (v.abs() for v in _promoted(a, b))
    big, small = torch.maximum(a, b), torch.minimum(a, b)
    ratio = torch.where(big == 0, 0, small / big)
    out = big * torch.sqrt(1 + ratio * ratio)
    return torch.where(torch.isinf(a) | torch.isinf(b), math.inf, out)


@decomposes("ldexp.Tensor")
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """x * 2**exponent."""
    return x * torch.pow(2.0, exponent)


@decomposes("frexp.Tensor")
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa in [0.5, 1) and exponent (int32) of each element; 0, infinities and NaN have the exponent 0."""
    integer, fraction, width = _LAYOUT[x.dtype]
    bias, mask = (1 << (width - 1)) - 2, (1 << width) - 1
    tiny = x.abs() < torch.finfo(x.dtype).tiny
    bits = _bits(torch.where(tiny, x * 2.0**(fraction + 1), x))
    exponent = ((bits >> fraction) & mask) - bias - torch.where(tiny, fraction + 1, 0)
    half = (bits & ~(mask << fraction)) | (bias << fraction)
    plain = torch.isfinite(x) & (x != 0)
    return torch.where(plain, half.to(integer).view(x.dtype), x), torch.where(plain, exponent, 0).to(torch.int32)


@decomposes("nextafter")
def nextafter(a: Tensor, b: Tensor) -> Tensor:
    """The next number after a in the direction of b, by steps of the bits."""
    integer = _LAYOUT[a.dtype][0]
    bits = _bits(a)
    away = (b > a) == (a > 0)
    moved = (bits + torch.where(away, 1, -1)).to(integer).view(a.dtype)
    smallest = torch.where(b > 0, 1, torch.iinfo(integer).min + 1).to(integer).view(a.dtype)
    return torch.where(torch.isnan(a) | torch.isnan(b), math.nan, torch.where(a == b, b, torch.where(a == 0, smallest, moved)))


@decomposes("angle")
def angle(x: Tensor) -> Any:
    """0 or pi, NaN of NaN (complex numbers are left to PyTorch's own rule)."""
    if x.is_complex():
        return NotImplemented
    out = torch.where(x < 0, math.pi, 0.0)
    return torch.where(torch.isnan(x), math.nan, out) if x.is_floating_point() else out


@decomposes("special_log_ndtr")
def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of the normal distribution function, by erfcx below 1."""
    t = x * math.sqrt(0.5)
    return torch.where(x < 1.0, torch.log(torch.special.erfcx(-t) / 2) - t * t, torch.log1p(-torch.erfc(t) / 2))


@decomposes("sinc")
def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    t = x * math.pi
    return torch.where(t == 0, 1.0, torch.sin(t) / t)
