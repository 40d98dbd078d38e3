# SPDX-License-Identifier: Apache-2.0
"""Special functions, evaluated in float64: series near the origin, integrals over a period (which the rectangle rule gives to the last digit),
asymptotic series far out, Newton's method for inverses. The inverses of the error function have polynomials in float32 too.

The formulas are those of Abramowitz and Stegun, by their numbers: 6.3 digamma, 7 error functions, 9 Bessel functions, 10.4 Airy functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .table import decomposes

GAMMA = 0.57721566490153286061
FAR = 25.0
"""Where asymptotic series take over."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _wide(fn: Callable[..., Tensor], narrow: bool = False) -> Callable[..., Tensor]:
    """``fn`` in float64, its result in the type that PyTorch gives. ``narrow``: in float32 where that type is not wider."""

    def evaluate(*args: Tensor) -> Tensor:
        dtype = args[0].dtype if args[0].is_floating_point() else torch.get_default_dtype()
        within = torch.float32 if narrow and dtype != torch.float64 else torch.float64
        return fn(*(a.to(within) for a in args)).to(dtype)

    return evaluate


def special(*names: str, narrow: bool = False) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register an elementwise function written in float64, or (``narrow``) in both types."""

    def mark(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        decomposes(*names)(_wide(fn, narrow))
        return fn

    return mark


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    """By Horner's rule, the constant first."""
    out = torch.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


# ---- gamma and error functions


def _digamma(x: Tensor) -> Tensor:
    """Of x >= 0.5: stepped up to 10 (6.3.5), then 6.3.18."""
    below = torch.zeros_like(x)
    for k in range(10):
        below = below + torch.where(x < 10.0 - k, 1 / x, 0.0)
        x = torch.where(x < 10.0 - k, x + 1, x)
    y = 1 / (x * x)
    tail = _polynomial(y, [b / (2 * j) for j, b in enumerate(_BERNOULLI, 1)]) * y
    return torch.log(x) - 0.5 / x - tail - below


@special("digamma", "special_digamma", "special_psi")
def digamma(x: Tensor) -> Tensor:
    """The logarithmic derivative of gamma; below 1/2 by reflection, NaN at its poles."""
    reflected = x < 0.5
    direct = _digamma(torch.where(reflected, 1 - x, x))
    turn = x - torch.round(x)
    pole = (turn == 0) & (x < 0)
    out = torch.where(reflected, direct - math.pi / torch.tan(math.pi * turn), direct)
    return torch.where(pole | (x == -math.inf), math.nan, torch.where(x == 0, torch.where(1 / x > 0, -math.inf, math.inf), out))


@special("special_erfcx")
def erfcx(x: Tensor) -> Tensor:
    """exp(x^2) erfc(x), by the asymptotic series where both factors leave the range."""
    near, y = torch.exp(x * x) * torch.erfc(x), 1 / (2 * x * x)
    far = _polynomial(y, [1.0, -1.0, 3.0, -15.0, 105.0]) / (x * math.sqrt(math.pi))
    return torch.where(x > 20, far, near)


# the inverse of erf by its operand y, of w = -log(1 - y^2): in w - 2.5 below 5, in sqrt(w) - 3 to 16.8 (all of float32), then in sqrt(w) - 7 to 106
_INVERSE = (
    (1.5014093592810234, 0.2466402861609725, -4.17738677661129e-3, -1.252741889111063e-3, 2.1834444282259024e-4, -4.963341504145678e-6, -3.4627065835329673e-6,
     4.6616919255062216e-7, 2.3232834340549104e-8, -8.790944270500788e-9),
    (2.832976802726779, 1.0016749467607298, 9.44519275899802e-3, -7.6369535799530605e-3, 5.687804219178837e-3, -3.598993391912782e-3, 1.482868217259125e-3,
     -5.3761203461860365e-5, -3.077612810213071e-4, 1.1364571419851732e-4),
    (6.869019730777466, 1.0085962377126494, -5.129036559971132e-4, 5.440058020658401e-6, 6.207223681547459e-6, -1.3138358297382465e-6, 2.733969808512944e-7,
     -9.299027965639842e-8, 1.3747538271429018e-8),
)


def _inverse(w: Tensor, far: bool) -> Tensor:
    """The inverse of erf by its operand y in float32, of w = -log(1 - y^2), as M. Giles has it (Approximating the erfinv function, GPU Computing Gems 2).
    ``far``: w may be larger than float32's y lets it be."""
    near, middle, end = _INVERSE
    root = torch.sqrt(w)
    out = torch.where(w < 5, _polynomial(w - 2.5, [*near]), _polynomial(root - 3, [*middle]))
    return torch.where(root > 4.1, _polynomial(root - 7, [*end]), out) if far else out


def _erfcinv(q: Tensor) -> Tensor:
    """Of 0 < q <= 1: a rough start, improved by steps of third order on the logarithm of erfc."""
    if q.dtype == torch.float32:
        return (1 - q) * _inverse(-torch.log(q * (2 - q)), far=True)
    t = torch.sqrt(-2 * torch.log(q / 2))  # 26.2.23
    x = (t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) / math.sqrt(2)
    for _ in range(3):
        step = (torch.erfc(x) - q) / (-2 / math.sqrt(math.pi) * torch.exp(-x * x))
        x = x - step / (1 + x * step)
    return x


@special("erfinv", "special_erfinv", narrow=True)
def erfinv(y: Tensor) -> Tensor:
    """The inverse of erf; NaN outside of [-1, 1]."""
    if y.dtype == torch.float32:
        return y * _inverse(-torch.log((1 - y) * (1 + y)), far=False)
    size = y.abs()
    x = torch.sign(y) * _erfcinv(torch.where(size < 1, 1 - size, 1.0))
    near = torch.where(size < 1e-3, y * (math.sqrt(math.pi) / 2) * (1 + y * y * math.pi / 12), x)
    return torch.where(size == 1, torch.sign(y) * math.inf, torch.where(size < 1, near, math.nan))


@special("special_ndtri", narrow=True)
def ndtri(p: Tensor) -> Tensor:
    """The inverse of the normal distribution function."""
    low = torch.minimum(p, 1 - p)
    x = -math.sqrt(2) * _erfcinv(torch.where((low > 0) & (low <= 0.5), 2 * low, 1.0))
    x = torch.where(p > 0.5, -x, x)
    return torch.where(p == 0, -math.inf, torch.where(p == 1, math.inf, torch.where((p > 0) & (p < 1), x, math.nan)))


# ---- Bessel functions


def _period(n: int) -> Tensor:
    """Angles of the rectangle rule over a period."""
    return (torch.arange(n, dtype=torch.float64) + 0.5) * (2 * math.pi / n)


def _hankel(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """P and Q of 9.2.9 and 9.2.10."""
    mu, terms = 4.0 * order * order, [1.0]
    for k in range(1, 12):
        terms.append(terms[-1] * (mu - (2 * k - 1) ** 2) / (k * 8))
    y = 1 / x
    signs = [1, -1] * 3
    p = _polynomial(y * y, [s * t for s, t in zip(signs, terms[0::2])])
    q = _polynomial(y * y, [s * t for s, t in zip(signs, terms[1::2])]) * y
    return p, q


def _first_kind(x: Tensor, order: int) -> Tensor:
    """J0 or J1 of x >= 0: 9.1.18 and 9.1.21, or 9.2.5."""
    t = _period(128)
    near = torch.cos(t * order - torch.where(x > FAR, 0.0, x).unsqueeze(-1) * torch.sin(t)).mean(-1)
    p, q = _hankel(torch.where(x > FAR, x, FAR), order)
    angle = x - (0.5 * order + 0.25) * math.pi
    return torch.where(x > FAR, torch.sqrt(2 / (math.pi * x)) * (p * torch.cos(angle) - q * torch.sin(angle)), near)


def _second_kind(x: Tensor, order: int) -> Tensor:
    """Y0 or Y1 of x > 0: Neumann's series 9.1.89 (and its derivative) summed under the integral, or 9.2.6."""
    t = _period(256)
    weights = torch.zeros_like(t)
    for k in range(1, 45):
        weights = weights + torch.cos(2 * k * t) * ((-1) ** k / k)
    small = torch.where(x > FAR, 1.0, x)
    inner = small.unsqueeze(-1) * torch.sin(t)
    log = torch.log(small / 2) + GAMMA
    if order == 0:
        near = (2 * log * _first_kind(small, 0) - 4 * (torch.cos(inner) * weights).mean(-1)) / math.pi
    else:
        slope = (torch.sin(inner) * torch.sin(t) * weights).mean(-1)
        near = (2 * log * _first_kind(small, 1) - 2 * _first_kind(small, 0) / small - 4 * slope) / math.pi
    p, q = _hankel(torch.where(x > FAR, x, FAR), order)
    angle = x - (0.5 * order + 0.25) * math.pi
    far = torch.sqrt(2 / (math.pi * x)) * (p * torch.sin(angle) + q * torch.cos(angle))
    out = torch.where(x > FAR, far, near)
    return torch.where(x == 0, -math.inf, torch.where(x > 0, out, math.nan))


special("special_bessel_j0")(lambda x: _first_kind(x.abs(), 0))
special("special_bessel_j1")(lambda x: torch.sign(x) * _first_kind(x.abs(), 1))
special("special_bessel_y0")(lambda x: _second_kind(x, 0))
special("special_bessel_y1")(lambda x: _second_kind(x, 1))


def _modified(x: Tensor, order: int, scaled: bool) -> Tensor:
    """I0 or I1 of x >= 0, times exp(-x) where scaled: 9.6.16 and 9.6.19, or 9.7.1."""
    t = _period(128)
    small = torch.where(x > FAR, 0.0, x).unsqueeze(-1)
    near = (torch.exp(small * (torch.cos(t) - 1)) * torch.cos(t * order)).mean(-1)
    out = torch.where(x > FAR, _far(torch.where(x > FAR, x, FAR), order, -1) / torch.sqrt(2 * math.pi * x), near)
    return out if scaled else out * torch.exp(x)


def _far(x: Tensor, order: int, sign: int) -> Tensor:
    """The series of 9.7.1 (sign -1) and 9.7.2 (sign 1)."""
    mu, terms = 4.0 * order * order, [1.0]
    for k in range(1, 13):
        terms.append(terms[-1] * sign * (mu - (2 * k - 1) ** 2) / (k * 8))
    return _polynomial(1 / x, terms)


# I0 and I1 in float32. Near 0: I0, or 2 I1 / x, of (x / 2)^2 to 6.25. Far: sqrt(x) exp(-x) times each of them, of 1 / x to 1/5.
_MODIFIED_NEAR = (
    (1.0, 1.00000021, 0.249998808, 0.0277799175, 0.0017343923, 7.0150038e-05, 1.77622242e-06, 5.56702786e-08),
    (1.0, 0.500000036, 0.0833331509, 0.00694474269, 0.00034699929, 1.16605564e-05, 2.57665618e-07, 6.76695686e-09),
)
_MODIFIED_FAR = (
    (0.398942288, 0.0498626526, 0.0285833617, 0.00852432656, 0.425877245, -3.4773474, 16.4074596, -26.1981407),
    (0.398942271, -0.149597497, -0.0473550916, -0.0175966794, -0.483940516, 3.85313417, -18.1061722, 28.5490938),
)


def _modified_narrow(x: Tensor, order: int, scaled: bool) -> Tensor:
    """The same in float32, by minimax polynomials. What is not scaled overflows before 92, but the exponential before 89: e^4 is apart from it."""
    if not scaled:
        x = torch.where(x > 100, 100.0, x)
    far, half = x > 5, x * 0.5
    near = _polynomial(half * half, [*_MODIFIED_NEAR[order]])
    near = near * half if order else near
    tail = _polynomial(1 / x, [*_MODIFIED_FAR[order]]) / torch.sqrt(x)
    if scaled:
        return torch.where(far, tail, near * torch.exp(-x))
    return torch.where(far, tail * math.exp(4) * torch.exp(x - 4), near)


def _first_modified(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    """I0 or I1 of any x: even or odd, as its order is."""

    def evaluate(x: Tensor) -> Tensor:
        size = x.abs()
        out = _modified_narrow(size, order, scaled) if x.dtype == torch.float32 else _modified(size, order, scaled)
        return torch.where(x < 0, -out, out) if order else out

    return evaluate


for _order in (0, 1):
    special(f"i{_order}", f"special_i{_order}", f"special_modified_bessel_i{_order}", narrow=True)(_first_modified(_order, False))
    special(f"special_i{_order}e", narrow=True)(_first_modified(_order, True))


def _modified_second(x: Tensor, order: int, scaled: bool) -> Tensor:
    """K0 or K1, times exp(x) where scaled: 9.6.24 by the rectangle rule, its leading terms near 0, or 9.7.2."""
    t = torch.arange(0, 240, dtype=torch.float64) * 0.125
    weight = torch.where(t == 0, 0.0625, 0.125)
    middle = torch.where((x > FAR) | (x < 1e-9), 1.0, x).unsqueeze(-1)
    near = (torch.exp(-middle * (torch.cosh(t) - 1)) * torch.cosh(t * order) * weight).sum(-1)
    far = _far(torch.where(x > FAR, x, FAR), order, 1) * torch.sqrt(math.pi / (2 * x))
    tiny = 1 / x if order else -torch.log(x / 2) - GAMMA
    out = torch.where(x > FAR, far, torch.where(x < 1e-9, tiny, near))
    out = out if scaled else out * torch.exp(-x)
    return torch.where(x == 0, math.inf, torch.where(x > 0, out, math.nan))


special("special_modified_bessel_k0")(lambda x: _modified_second(x, 0, False))
special("special_modified_bessel_k1")(lambda x: _modified_second(x, 1, False))
special("special_scaled_modified_bessel_k0")(lambda x: _modified_second(x, 0, True))
special("special_scaled_modified_bessel_k1")(lambda x: _modified_second(x, 1, True))


@special("special_spherical_bessel_j0")
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """sin(x) / x, 1 at 0."""
    return torch.where(x == 0, 1.0, torch.where(x.abs() == math.inf, 0.0, torch.sin(x) / x))


@special("special_airy_ai")
def airy_ai(x: Tensor) -> Tensor:
    """10.4.2 within [-7, 5], 10.4.59 and 10.4.60 outside."""
    near = torch.where((x >= -7) & (x <= 5), x, 0.0)
    cube = near**3
    f, g, a, b = torch.ones_like(x), torch.ones_like(x), 1.0, 1.0
    a_terms, b_terms = [1.0], [1.0]
    for k in range(1, 45):
        a, b = a / ((3 * k - 1) * (3 * k)), b / ((3 * k) * (3 * k + 1))
        a_terms.append(a)
        b_terms.append(b)
    f, g = _polynomial(cube, a_terms), near * _polynomial(cube, b_terms)
    inner = 0.355028053887817239 * f - 0.258819403792806798 * g
    size = torch.where((x < -7) | (x > 5), x.abs(), 8.0)
    z = 2 / 3 * size**1.5
    c = [1.0]
    for k in range(1, 12):
        c.append(c[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    y = 1 / z
    right = torch.exp(-z) / (2 * math.sqrt(math.pi) * size**0.25) * _polynomial(y, [v * (-1) ** k for k, v in enumerate(c)])
    even = _polynomial(y * y, [v * (-1) ** k for k, v in enumerate(c[0::2])])
    odd = _polynomial(y * y, [v * (-1) ** k for k, v in enumerate(c[1::2])]) * y
    angle = z + math.pi / 4
    left = (torch.sin(angle) * even - torch.cos(angle) * odd) / (math.sqrt(math.pi) * size**0.25)
    return torch.where(torch.isnan(x), math.nan, torch.where(x > 5, right, torch.where(x < -7, left, inner)))


@decomposes("polygamma")
def polygamma(n: int, x: Tensor) -> Any:
    """The n-th derivative of digamma; of n >= 1 PyTorch's own rule serves."""
    return _wide(digamma)(x) if n == 0 else NotImplemented
