# SPDX-License-Identifier: Apache-2.0
"""Small flat programs around one expression, as scalars and as vectors, built and run."""

from __future__ import annotations

import functools
import os

import numpy as np

from roundel.build import build
from roundel.ir import Attrs, DType, IRModule, Var, decl_buffer, tir
from roundel.ir.dtype import HANDLE, INT64

SERIAL = tir.ForKind.SERIAL


def c(value):
    return tir.index_const(value)


def loop(var, extent, body, low=0):
    return tir.For(var, c(low), extent if isinstance(extent, tir.Expr) else c(extent), SERIAL, body)


def func(buffers, body, scalars=(), kind="kernel", **attrs):
    handles = [Var(b.name, HANDLE) for b in buffers]
    return tir.PrimFunc((*handles, *scalars), body, tuple(zip(handles, buffers)), Attrs(kind=kind, **attrs))


def flat(program, **more):
    """Build what is flat already; for the target that the variable says, where it says one."""
    mod = program if isinstance(program, IRModule) else IRModule({"main": program})
    return build(mod, os.environ.get("ROUNDEL_TEST_TARGET") or None, pipeline=(), **more)


@functools.cache
def _elementwise(fn, dtypes, out, count, lanes):
    buffers = [decl_buffer((count,), t, f"x{k}") for k, t in enumerate(dtypes)]
    result = decl_buffer((count,), out, "y")
    i = Var("i", INT64)
    where = i if lanes == 1 else tir.Ramp(i * lanes, c(1), lanes)
    store = tir.BufferStore(result, fn(*(tir.BufferLoad(b, (where,)) for b in buffers)), (where,))
    return flat(func([*buffers, result], loop(i, count // lanes, store)))["main"]


def elementwise(fn, *arrays, out=None, lanes=1):
    """``fn`` applied to arrays element by element by compiled code."""
    dtypes = tuple(DType(a.dtype) for a in arrays)
    out = DType(out or dtypes[0])
    result = np.zeros(arrays[0].shape, out.numpy)
    _elementwise(fn, dtypes, out, arrays[0].size, lanes)(*arrays, result)
    return result
