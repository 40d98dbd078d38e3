# SPDX-License-Identifier: Apache-2.0
"""What names of a model stand for during import: tensors, integers with known content, sequences, absent optionals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...ir import graph, tir
from ...ir.dtype import INT64, DType
from ...ir.errors import ModelError, UnsupportedError
from ...ops import make
from . import symbolic


class Scope(Protocol):
    """Where values are bound: ``depth`` counts the branches and loop bodies that are open."""

    depth: int

    def emit(self, value: Any, hint: str = "lv") -> graph.GraphExpr:
        """Bind a call to a variable."""


class UnsupportedDataError(UnsupportedError):
    """Something that must be known when the model is compiled depends on its inputs."""


class UndecidedError(UnsupportedDataError):
    """The branches of an If give tensors of different ranks, and which one runs is not known. The import may try a decision."""


class Value:
    """A value of the model: a graph expression, or the known content of an integer tensor that becomes one when asked for.

    Strings are numbers that stand for them (see runtime/text); ``is_text`` tells them from numbers.
    """

    __slots__ = ("_expr", "_scope", "content", "dtype", "is_text")

    def __init__(self, expr: graph.GraphExpr | None = None, content: np.ndarray | None = None, dtype: DType = INT64,
                 scope: Scope | None = None, is_text: bool = False) -> None:
        self._expr, self.content, self.dtype, self._scope, self.is_text = expr, content, dtype, scope, is_text

    @property
    def expr(self) -> graph.GraphExpr:
        """As a tensor expression."""
        if self._expr is not None:
            return self._expr
        assert self._scope is not None
        made = self._materialize(self._scope.emit)
        if self._scope.depth == 0:  # what a branch or a loop's body makes is not seen outside of it
            self._expr = made
        return made

    def _materialize(self, emit: Callable[[graph.GraphExpr, str], graph.GraphExpr]) -> graph.GraphExpr:
        assert self.content is not None
        if symbolic.is_static(self.content):
            return graph.Constant.of(self.content.astype(self.dtype.numpy))
        flat = graph.ShapeExpr(tuple(tir.as_index(v) for v in self.content.reshape(-1)))
        out = emit(make("shape_to_tensor", flat), "shape")
        if self.dtype != INT64:
            out = emit(make("astype", out, dtype=self.dtype), "shape")
        return out if self.content.ndim == 1 else emit(make("reshape", out, graph.ShapeExpr(
            tuple(tir.as_index(n) for n in self.content.shape))), "shape")

    @property
    def is_constant(self) -> bool:
        """Whether the value is known at compile time."""
        return isinstance(self._expr, graph.Constant) if self.content is None else self.constant() is not None

    def constant(self) -> np.ndarray | None:
        """The value as an array when it is known at compile time, else None."""
        if self.content is not None:
            return self.content.astype(self.dtype.numpy) if symbolic.is_static(self.content) else None
        return self._expr.data.numpy() if isinstance(self._expr, graph.Constant) else None


class MapValue(Value):
    """A tensor whose rows stand for dictionaries with these keys."""

    __slots__ = ("keys",)

    def __init__(self, expr: graph.GraphExpr, keys: Sequence[Any]) -> None:
        super().__init__(expr)
        self.keys = tuple(keys)


class MapInput:
    """An input that is a map: its keys and its values, two tensors with as many elements as the map has entries."""

    __slots__ = ("keys", "values")
    content = None
    is_constant = False

    def __init__(self, keys: Value, values: Value) -> None:
        self.keys, self.values = keys, values

    @property
    def expr(self) -> graph.GraphExpr:
        """A map is no tensor: raises ModelError."""
        raise ModelError("this is a map where a tensor is wanted")

    def constant(self) -> None:
        """Nothing is known of a map as an array."""


class SequenceValue:
    """A sequence: it has no content that could be known, and it is no tensor."""

    __slots__ = ()
    content = None
    is_constant = False

    @property
    def expr(self) -> graph.GraphExpr:
        """A sequence is no tensor: raises ModelError."""
        raise ModelError("this is a sequence where a tensor is wanted")

    def constant(self) -> None:
        """Nothing is known of a sequence as an array."""


class ListValue(SequenceValue):
    """A sequence of values whose number is known when the model is compiled."""

    __slots__ = ("dtype", "items")

    def __init__(self, items: Sequence[Any], dtype: DType | None = None) -> None:
        self.items, self.dtype = tuple(items), dtype


class StackedValue(SequenceValue):
    """A sequence whose length only the run can tell: items of one shape are the first ``count`` rows of a tensor.

    ``count`` is a scalar tensor, None where every row is an item. ``room``: so many items can be inserted before ``rows`` is full.
    """

    __slots__ = ("count", "is_text", "room", "rows")

    def __init__(self, rows: graph.GraphExpr, count: graph.GraphExpr | None = None, room: int = 0, is_text: bool = False) -> None:
        self.rows, self.count, self.room, self.is_text = rows, count, room, is_text

    @property
    def capacity(self) -> tir.Expr:
        """The number of rows, items or not."""
        return self.rows.sinfo.shape[0]

    @property
    def item(self) -> graph.TensorInfo:
        """What an item is."""
        return graph.TensorInfo(self.rows.sinfo.shape[1:], self.rows.sinfo.dtype)


class EmptyOptional(ListValue):
    """An optional value that holds nothing."""

    def __init__(self) -> None:
        super().__init__(())
