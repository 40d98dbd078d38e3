# SPDX-License-Identifier: Apache-2.0
"""Scales of sums of integers become integers, where processors have no instructions for floats.

    cast("int8", clip(round(float(x) * scale + bias) + zero))   ->   nn.scaled_whole(x, scale, bias, scale * 2^32, bias * 2^32)

All scales and biases are constants, so what they are in integers is worked out when the model is compiled. Results are those of floats: where a number is
so near to the middle between two whole ones that it might be rounded otherwise, floats decide (``ops/fixed_scale.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import graph
from ...ir.module import IRModule
from ...ops import make
from ...ops.fixed_scale import LARGEST_BIAS, LARGEST_SCALE, PLACES
from ...passes import pass_
from ...target import Target
from ..pattern import Match, Pattern, PatternRewriter, commutative, is_const, is_op, wildcard
from ..tidy.dead_code import eliminate_dead_code

_MOST = 16384  # of zero points


@pass_("fixed_scales")
def fixed_scales(mod: IRModule) -> IRModule:
    """Have sums scaled in integers where a multiply-add of floats is a call of functions."""
    target = mod.attrs.get("target") or Target.host()
    if target.has_floats:
        return mod
    return eliminate_dead_code(PatternRewriter(mod, [_rule(shifted, moved) for shifted in (True, False) for moved in (True, False)]).module())


def _rule(shifted: bool, moved: bool) -> tuple[Pattern, Any]:
    """For a scale with a bias or without one, and a zero point or none."""
    x, scale, bias, zero, low, high = wildcard(), *(is_const() for _ in range(5))
    wide = is_op("astype")(x)
    scaled = commutative("multiply", wide, scale)
    added = commutative("add", scaled, bias) if shifted else scaled
    rounded = is_op("round")(added)
    placed = commutative("add", rounded, zero) if moved else rounded
    limited = is_op("minimum")(is_op("maximum")(placed, low), high)

    def replaced(m: Match) -> Any:
        call = m.call(result)
        limits = [_one(m[p]) for p in ((zero, low, high) if moved else (low, high))]
        if str(call.sinfo.dtype) not in ("int8", "uint8") or m[x].sinfo.dtype != "int32" or None in limits or m.use_count.get(call.args[0], 0) > 1:
            return None
        by, more = m[scale].data, m[bias].data if shifted else None
        if by.dtype != "float32" or (more is not None and more.dtype != "float32"):
            return None
        a, b = by.numpy(), np.zeros((), np.float32) if more is None else more.numpy()
        if not (np.abs(a) < LARGEST_SCALE).all() or not (np.abs(b) < LARGEST_BIAS).all() or any(v.ndim > m[x].sinfo.ndim for v in (a, b)):
            return None
        whole = np.floor(a.astype(np.float64) * 2.0**PLACES).astype(np.int32), np.floor(b.astype(np.float64) * 2.0**PLACES).astype(np.int64)
        numbers = dict(zip(("zero", "low", "high") if moved else ("low", "high"), limits, strict=True))
        return make("nn.scaled_whole", m[x], *map(graph.Constant.of, (a, b, *whole)), **numbers, out_dtype=str(call.sinfo.dtype))

    result = is_op("astype")(limited)
    return result, replaced


def _one(value: graph.Constant) -> int | None:
    """The small whole number that a constant is."""
    array = value.data.numpy()
    number = float(array.reshape(-1)[0]) if array.size == 1 else np.nan
    return int(number) if number == np.rint(number) and abs(number) <= _MOST else None
