# SPDX-License-Identifier: Apache-2.0
"""Runs a scripted module three ways (graph interpreted, host function interpreted, compiled) and compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel.driver import build_module, prepare
from roundel.interp import interpret
from roundel.ir import IRModule, assert_structural_equal
from roundel.ir.tir import PrimFunc
from roundel.lower import lower
from roundel.passes import Observer
from roundel.script import parse


def lowered(mod: IRModule, **options: Any) -> IRModule:
    """The module after the default pipeline: host functions and kernels. Its text is read back at every stage."""
    from roundel.target import Target

    made = prepare(mod, target=Target.host(), verify=True, observers=[ReadsBack()], **options)
    reads_back(made)
    reads_back(lower(made))
    return made


class ReadsBack(Observer):
    """Prints what a pass made and parses it."""

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        if after is not before:
            reads_back(after)


def reads_back(mod: IRModule) -> None:
    """The module's text parses to an equal module."""
    assert_structural_equal(parse(mod.script()), mod)


def agree(mod: IRModule, *calls: tuple[Any, ...], name: str = "main", want: Any = None, rtol: float = 1e-5) -> Any:
    """All three ways give the same for each tuple of arguments; returns the last result. ``want``: a NumPy function."""
    graph, host, native = interpret(mod), interpret(lowered(mod)), build_module(mod)
    result = None
    for args in calls:
        expected = graph[name](*args)
        if want is not None:
            same(expected, want(*args), rtol)
        same(host[name](*args), expected, rtol)
        result = native[name](*args)
        same(result, expected, rtol)
    return result


def same(got: Any, want: Any, rtol: float = 1e-5) -> None:
    """Equal structure, shapes, types and (nearly) values."""
    if isinstance(want, tuple | list):
        assert isinstance(got, tuple | list) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, rtol)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol / 10)


def host_of(mod: IRModule, name: str = "main") -> PrimFunc:
    """The host function of a lowered module."""
    return lowered(mod)[name]
