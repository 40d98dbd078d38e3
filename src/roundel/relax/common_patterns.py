# SPDX-License-Identifier: Apache-2.0
"""Patterns that many libraries have a kernel for."""

from __future__ import annotations

from .patterns import DFPattern, is_op, wildcard


def make_fused_bias_activation_pattern(op_name: str, with_bias: bool = False, activation: str | None = None, allow_reshape: bool = False) -> DFPattern:
    """An operator of two operands, then the sum with a bias, then an activation, as far as they are asked for; ``allow_reshape``: the operator's
    result may be reshaped before."""
    out: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if allow_reshape:
        out = out | is_op("relax.reshape")(out, wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return out if activation is None else is_op(activation)(out)


__all__ = ["make_fused_bias_activation_pattern"]
