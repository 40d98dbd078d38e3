# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend.patterns``: patterns that many libraries have a kernel for."""

from __future__ import annotations

from typing import Any

from .....relax.common_patterns import make_fused_bias_activation_pattern
from .....relax.patterns import DFPattern, is_op, wildcard


def make_matmul_pattern(with_bias: bool = False, activation: str | None = None, transposed_rhs: bool = False) -> tuple[DFPattern, dict[str, DFPattern]]:
    """A product of matrices, then the sum with a bias, then an activation, as far as they are asked for, with the parts by name: lhs, rhs, bias, root;
    ``transposed_rhs``: of the second matrix transposed"""
    lhs, rhs = wildcard(), wildcard()
    parts: dict[str, Any] = {"lhs": lhs, "rhs": rhs}
    out: Any = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs)
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    parts["root"] = out = out if activation is None else is_op(activation)(out)
    return out, parts


__all__ = ["make_fused_bias_activation_pattern", "make_matmul_pattern"]
