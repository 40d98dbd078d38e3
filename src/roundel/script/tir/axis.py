# SPDX-License-Identifier: Apache-2.0
"""Iteration variables of blocks: ``T.axis.spatial(128, i)``, ``T.axis.remap("SR", [i, k])``, ..."""

from __future__ import annotations

from typing import Any

from ...ir.dtype import DType
from ...ir.tir import IterKind
from ..marks import Axes

_LETTERS = {"S": IterKind.SPATIAL, "R": IterKind.REDUCE, "O": IterKind.OPAQUE, "C": IterKind.SCAN}


def _one(kind: IterKind, dom: Any, value: Any, dtype: Any) -> Axes:
    for given in (dom, value):
        if isinstance(given, float):
            raise TypeError(f"an axis runs over integers, not {given}")
    return Axes([kind], [dom], [value], DType(dtype) if dtype is not None else None)


def spatial(dom: Any, value: Any = None, dtype: Any = None) -> Axes:
    """Iterations are independent. ``dom`` is an extent or (begin, end)."""
    return _one(IterKind.SPATIAL, dom, value, dtype)


def reduce(dom: Any, value: Any = None, dtype: Any = None) -> Axes:
    """Iterations accumulate."""
    return _one(IterKind.REDUCE, dom, value, dtype)


def opaque(dom: Any, value: Any = None, dtype: Any = None) -> Axes:
    """Nothing is known of the iterations."""
    return _one(IterKind.OPAQUE, dom, value, dtype)


def scan(dom: Any, value: Any = None, dtype: Any = None) -> Axes:
    """Iterations run in order."""
    return _one(IterKind.SCAN, dom, value, dtype)


S, R = spatial, reduce


def remap(kinds: str, bindings: Any, dtype: Any = None) -> Axes:
    """One axis per letter (S, R, O, C for scan), with the domain of the loop it is bound to."""
    bindings = list(bindings)
    if len(kinds) != len(bindings):
        raise ValueError(f"{len(kinds)} kinds ({kinds!r}) for {len(bindings)} bindings: T.axis.remap takes a letter for each")
    unknown = set(kinds) - set(_LETTERS)
    if unknown:
        raise ValueError(
            f"unknown axis kind {sorted(unknown)[0]!r}; kinds are S (spatial), R (reduce), O (opaque), C (scan)"
        )
    return Axes(
        [_LETTERS[k] for k in kinds], [None] * len(bindings), bindings, DType(dtype) if dtype is not None else None
    )
