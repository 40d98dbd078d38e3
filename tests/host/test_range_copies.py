# SPDX-License-Identifier: Apache-2.0
"""Concatenations of many tensors and many parts of one are copies of ranges in the host function; few of them stay tensor programs."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import LOWER, OPTIMIZE, prepare
from roundel.graph.programs.range_copies import MANY, MANY_SIZES
from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ops import make

from ..graph.functions import function
from ..graph.running import agree

N = tir.Var("n", DType("int64"), True)


def numbers(shape, dtype):
    values = np.arange(np.prod(shape)).reshape(shape) % 11
    return values > 5 if dtype == "bool" else values.astype(dtype)


def joined(axis, count):
    """Each part of another width, one of them empty, and one tensor twice."""
    def body(bb, *xs):
        return make("concat", graph.Tuple((*xs, *(xs[0],) * (count - len(xs)))), axis=axis)

    return body


def cut(parts, **facts):
    """The parts ``[begin, end)`` by axis of a tensor, all of them put to use."""
    def body(bb, x):
        made = []
        for part in parts:
            axes, begin, end = (tuple(map(tir.index_const, values)) for values in zip(*((a, b, e) for a, (b, e) in part.items()), strict=True))
            y = bb.emit(make("strided_slice", x, axes=axes, begin=begin, end=end, strides=(tir.index_const(facts.get("stride", 1)),) * len(axes)))
            made.append(bb.emit(make("sum", y, axis=list(part), keepdims=True)))
        return make("concat", graph.Tuple(tuple(made)), axis=next(iter(parts[0])))

    return body


def copied(mod):
    """Operators that are left for the host function to copy."""
    made = prepare(mod, pipeline=[*OPTIMIZE, *LOWER])
    return {"concat", "strided_slice"}.intersection(b.value.op.name for b in made["main"].body.bindings if isinstance(b.value, graph.Call))


def module(body, *shapes, dtype="float32"):
    return function([graph.TensorInfo(s, dtype) for s in shapes], body)


@pytest.mark.parametrize(("dtype", "axis"), [("float32", 0), ("float32", 1), ("float32", -1), ("float16", 1), ("int8", 2), ("int64", 0), ("bool", 1)])
def test_many_operands_of_any_type_along_any_axis(dtype, axis):
    shapes = [tuple(k if a == axis % 3 else n for a, n in enumerate((2, 3, 4))) for k in (1, 0, 5, 2)]
    mod = module(joined(axis, MANY + 1), *shapes, dtype=dtype)
    assert copied(mod) == {"concat"}
    xs = [numbers(s, dtype) for s in shapes]
    agree(mod, xs, want=lambda *xs: np.concatenate([*xs, *[xs[0]] * (MANY - 3)], axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(3, 5), (0, 5), (3, 0)])
def test_symbolic_sizes(axis, sizes):
    shape = tuple(N if a == axis else 3 for a in range(2))
    mod = module(joined(axis, MANY_SIZES + 1), shape, shape)
    assert copied(mod) == {"concat"}
    xs = [numbers(tuple(sizes[0] if a == axis else 3 for a in range(2)), "float32") + k for k in range(2)]
    agree(mod, xs, want=lambda a, b: np.concatenate([a, b, *[a] * (MANY_SIZES - 1)], axis))


@pytest.mark.parametrize("parts", [
    [{1: (k, k + 1 + k % 3)} for k in range(MANY + 1)],            # rows with others between
    [{0: (k, k + 2)} for k in range(MANY + 1)],                    # where the elements are
    [{0: (k % 3, 3), 1: (k, k + 4)} for k in range(MANY + 1)],     # along two axes
    [{1: (k, k)} for k in range(MANY)] + [{1: (0, 70)}, {1: (-3, 80)}],  # empty, whole, from behind
], ids=["rows", "views", "windows", "edges"])
def test_many_parts(parts):
    mod = module(cut(parts), (70, 70))
    assert "strided_slice" in copied(mod)
    agree(mod, [numbers((70, 70), "float32")])


def test_many_parts_of_a_symbolic_tensor():
    mod = module(cut([{1: (k, k + 1)} for k in range(MANY + 1)]), (N, 70))
    assert "strided_slice" in copied(mod)
    for n in (1, 4, 0):
        agree(mod, [numbers((n, 70), "float32")])


@pytest.mark.parametrize("mod", [
    module(joined(1, MANY), (2, 3)),
    module(joined(1, MANY_SIZES), (2, N)),
    module(cut([{1: (k, k + 1)} for k in range(MANY)]), (3, 70)),
], ids=["operands", "sizes", "parts"])
def test_few_of_them_are_programs(mod):
    assert not copied(mod)


def test_parts_with_gaps_are_programs():
    assert copied(module(cut([{1: (k, 70)} for k in range(MANY + 1)], stride=3), (3, 70))) == {"concat"}
