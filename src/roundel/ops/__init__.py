# SPDX-License-Identifier: Apache-2.0
"""The operators, one definition each, by family; importing this room fills the operator table."""

from __future__ import annotations

from typing import Any

from roundel.interp.graph import install_expansion
from roundel.ir import graph
from roundel.ir.op import get_op

from . import (
    activation,
    attention,
    binary,
    bounds,
    composed,
    conv,
    create,
    data_dependent,
    debug,
    fixed_scale,
    fourier,
    image,
    index,
    linalg,
    loss,
    manipulate,
    matmul,
    norm,
    outside_scaling,
    packed_matmul,
    pad,
    polynomials,
    pool,
    quantize,
    reduce,
    running,
    search,
    select,
    shape,
    sliced_matmul,
    sort,
    strassen,
    transform,
    unary,
    winograd,
)
from .expand import expand


def make(name: str, *args: Any, **attrs: Any) -> graph.Call:
    """A call of the operator ``name`` with inferred struct info; see ``graph.make_call`` for what is accepted."""
    return graph.make_call(get_op(name), args, attrs)


install_expansion(expand)

FAMILIES = (
    activation,
    attention,
    binary,
    bounds,
    composed,
    conv,
    create,
    data_dependent,
    debug,
    fourier,
    image,
    index,
    linalg,
    loss,
    manipulate,
    matmul,
    norm,
    outside_scaling,
    packed_matmul,
    pad,
    polynomials,
    pool,
    quantize,
    reduce,
    running,
    search,
    select,
    sliced_matmul,
    shape,
    sort,
    strassen,
    transform,
    unary,
    winograd,
)
__all__ = ["FAMILIES", "make"]
