# SPDX-License-Identifier: Apache-2.0
"""Elementary functions of float32 as polynomials, within 4 units in the last place (tests/codegen/test_math.py).

Each function takes and returns float32 expressions of any number of lanes. What few lanes ever need is left to the C library.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import tir
from . import exponential, gamma, logarithm, remainder, trigonometric
from .convert import narrow, widen

EXPANSIONS: dict[str, Callable[..., tir.Expr]] = {
    **{f.__name__: f for f in (exponential.exp, exponential.exp_flushed, exponential.exp2, exponential.exp10, exponential.expm1, exponential.sinh,
                               exponential.cosh, exponential.tanh, exponential.sigmoid, exponential.erf, exponential.erfc)},
    **{f.__name__: f for f in (logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p, logarithm.asinh, logarithm.acosh, logarithm.atanh)},
    **{f.__name__: f for f in (trigonometric.sin, trigonometric.cos, trigonometric.tan, trigonometric.asin, trigonometric.acos, trigonometric.atan,
                               trigonometric.atan2)},
    "lgamma": gamma.lgamma,
    "pow": logarithm.power,
    "fmod": remainder.fmod,
}

COMPOSED = {"exp_flushed"}
"""Of these also float64 is expanded, to other functions."""


def expand_call(e: tir.Call, scales: bool = False) -> tir.Expr | None:
    """The expansion of a call of an elementary function, or None when the target's library does it. ``scales``: multiplying by
    a power of two, whatever over- or underflows, is one instruction (``ldexp`` with a float as exponent)."""
    rule = EXPANSIONS.get(e.op) if isinstance(e.op, str) else None
    if rule is None or not e.dtype.is_float or (e.dtype.bits > 32 and e.op not in COMPOSED):
        return None
    return rule(*e.args, scales=scales) if e.dtype.bits >= 32 else narrow(rule(*map(widen, e.args), scales=scales), e.dtype)
