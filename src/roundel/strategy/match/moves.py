# SPDX-License-Identifier: Apache-2.0
"""Blocks that only move data on its way to a reduction, such as joining the keys of the past with new ones, or transposing a matrix.

    for k, j: joined[k, j] = past[k, j] if k < p else new[k - p, j]            for k < p: total[j] += x[k] * past[k, j]
    for k, j: total[j] += x[k] * joined[k, j]                           ->     for k >= p: total[j] += x[k] * new[k - p, j]

A reduction that reads each element only a few times should read it where it lies. So the block that moves the data is inlined after the
reduction is scheduled, and ``lower/partition_loops.py`` cuts the loop at p.
"""

from __future__ import annotations

from ...ir import tir
from ...ir.visit import free_vars
from .accesses import BlockInfo, extent_of, product

READS = 8     # of each element, up to which moving it first does not pay
ASSUMED = 97  # of symbolic axes


def moves(info: BlockInfo) -> bool:
    """Whether each element of a block's result is an element of one of its operands."""
    return info.is_plain and not info.reduce and all(type(v) is tir.BufferLoad for v in _choices(info)[1])


def surrounds(info: BlockInfo) -> bool:
    """Whether each element of a block's result is an element of one of its operands or a number, such as what is around a picture."""
    return info.is_plain and not info.reduce and all(type(v) in (tir.BufferLoad, tir.IntImm, tir.FloatImm) for v in _choices(info)[1])


def keeps_rows(info: BlockInfo) -> bool:
    """Whether elements that were neighbours along the last axis (of more than one element) stay such."""
    axes = [a for a in info.spatial if extent_of(a) != 1]
    if not moves(info) or not axes:
        return False
    asked = any(axes[-1].var in free_vars(c) for c in _choices(info)[0])
    return not asked and all(a.steps(axes[-1].var, 1) for a in info.accesses)


def _choices(info: BlockInfo) -> tuple[list[tir.Expr], list[tir.Expr]]:
    """The conditions that say which value an element has, and the values."""
    conditions, values, todo = [], [], [info.block.body.value]
    while todo:
        value = todo.pop()
        if type(value) is tir.IfThenElse:
            conditions.append(value.condition)
            todo += [value.true_value, value.false_value]
        else:
            values.append(value)
    return conditions, values


def read_seldom(moved: BlockInfo, reader: BlockInfo) -> bool:
    """Whether a reduction reads each element of what a block moves only a few times."""
    iterations, elements = (product([extent_of(a) for a in i.block.iter_vars], ASSUMED) for i in (reader, moved))
    return bool(reader.reduce) and iterations <= READS * elements
